"""`download`, against a local server that plays the hub."""

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import time

import pytest
from fake_hub import Hub
from mlxcel_program import (PROGRAM, environment, needs_program, run)

pytestmark = needs_program
CONFIG = b'{"model_type": "llama"}'
SHARD = "model.safetensors"
KEPT = {name: value for name, value in os.environ.items()
        if "proxy" not in name.lower() and not name.startswith("HF_")}


def content(size, seed=1):
    return random.Random(seed).randbytes(size)


def files(size=300_000, **more):
    return {"config.json": CONFIG, SHARD: content(size), "README.md": b"# m",
            "sub/tokenizer.json": b"{}", "pytorch_model.bin": b"no", **more}


WANTED = {"config.json", SHARD, "sub/tokenizer.json"}


@pytest.fixture
def hub():
    with Hub(files(), large=[SHARD]) as server:
        yield server


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in set(os.environ) - set(KEPT):
        monkeypatch.delenv(name)


def variables(server, home, **more):
    return {"HF_ENDPOINT": server.url, "HOME": str(home),
            "MLXCEL_OFFLINE": "", **more}


def download(server, folder, *options, repository="o/m", timeout=60, **more):
    return run("download", repository, "--local-dir", folder / "m", *options,
               timeout=timeout, **variables(server, folder, **more))


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


def expect_all(server, folder, names=None):
    """The wanted files are there, and nothing else."""
    names = WANTED if names is None else names
    assert tree(folder / "m") == {
        name: server.repository.files[name] for name in names}


def expect_error(result, *parts):
    assert result.status == 1, result
    last = result.err.splitlines()[-1]
    assert last.startswith("error: "), result.err
    assert len(last) < 1000
    for part in parts:
        assert part in last, result.err


def status(code, **headers):
    """A fault: this answer instead of the file."""
    def fault(handler, *_):
        handler.reply(code, b"no", **headers)
    return fault


def broken(after, **options):
    """A fault: the connection breaks after so many bytes."""
    def fault(handler, data, etag):
        handler.send_file(data, etag, stop=after, **options)
    return fault


def test_fetches_what_a_model_needs(hub, tmp_path):
    result = download(hub, tmp_path)
    assert result.status == 0, result.err
    expect_all(hub, tmp_path)
    *lines, last = result.text.splitlines()
    assert sorted(lines) == [
        "fetched config.json (23 B)", "fetched model.safetensors (293.0 KiB)",
        "fetched sub/tokenizer.json (2 B)"]
    assert last == str(tmp_path / "m") and result.err == ""
    assert hub.log[0].path == "/api/models/o/m/revision/main?blobs=true"
    # All files are of the commit that the list was of.
    assert all(f"/resolve/{'a' * 40}/" in request.path
               for request in hub.log[1:])
    assert all("authorization" not in request.headers for request in hub.log)


def test_a_second_time_nothing_is_fetched(hub, tmp_path):
    assert download(hub, tmp_path).status == 0
    hub.log.clear()
    result = download(hub, tmp_path)
    assert result.status == 0
    assert all(line.startswith("present")
               for line in result.text.splitlines()[:-1])
    assert hub.requests("/resolve/") == []
    assert download(hub, tmp_path, "--force").status == 0
    assert len(hub.requests("/resolve/")) == 3
    expect_all(hub, tmp_path)


@pytest.mark.parametrize("damaged", [b"", CONFIG + b" ", CONFIG[::-1]])
def test_what_differs_is_fetched_again(hub, tmp_path, damaged):
    assert download(hub, tmp_path).status == 0
    (tmp_path / "m" / "config.json").write_bytes(damaged)
    hub.log.clear()
    assert download(hub, tmp_path).status == 0
    assert len(hub.requests("/resolve/")) == 1
    expect_all(hub, tmp_path)


def test_into_the_store(hub, tmp_path):
    result = run("download", "m", "--models-dir", tmp_path / "store",
                 **variables(hub, tmp_path, MLXCEL_DEFAULT_ORG="o"))
    assert result.status == 0 and "taken as o/m" in result.err
    assert result.text.splitlines()[-1] == str(tmp_path / "store" / "o" / "m")


def test_the_store_keeps_one_revision(hub, tmp_path):
    def fetch(*options):
        return run("download", "o/m", "--models-dir", tmp_path / "store",
                   *options, **variables(hub, tmp_path))

    assert fetch().status == 0
    other = fetch("--revision", "v2", "--force")
    assert other.status == 1 and "keeps one revision" in other.err
    assert run("rm", "o/m", "--yes", "--models-dir", tmp_path / "store",
               **variables(hub, tmp_path)).status == 0
    assert fetch("--revision", "v2").status == 0
    # It is remembered, also where it isn't said.
    hub.log.clear()
    assert fetch().status == 0
    assert "/revision/v2?" in hub.log[0].path
    assert fetch("--revision", "main").status == 1


@pytest.mark.parametrize("name", ["model-00001-of-00002.safetensors",
                                  "model.safetensors.index.json"])
def test_weights_of_another_revision_are_refused(hub, tmp_path, name):
    """They would be loaded as parts of the model."""
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / name).write_bytes(b"old")
    result = download(hub, tmp_path, "--force")
    assert result.status == 1 and str(tmp_path / "m" / name) in result.err
    assert os.listdir(tmp_path / "m") == [name]


def test_rm_waits_for_no_download(hub, tmp_path):
    """What another process downloads is not removed under its hands."""
    folder = tmp_path / "store" / "o" / "m"
    folder.mkdir(parents=True)
    with open(folder / ".mlxcel-download.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = run("rm", "o/m", "--yes", "--models-dir", tmp_path / "store",
                     **variables(hub, tmp_path))
        assert result.status == 1 and "another process" in result.err
        assert folder.exists()
    assert run("rm", "o/m", "--yes", "--models-dir", tmp_path / "store",
               **variables(hub, tmp_path)).status == 0
    assert not folder.exists()


def test_reuses_the_hugging_face_cache(hub, tmp_path):
    commit = "b" * 40
    folder = tmp_path / "cache" / "models--o--m"
    snapshot = folder / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    (snapshot / "config.json").write_bytes(CONFIG)
    (snapshot / SHARD).write_bytes(b"x")
    known = variables(hub, tmp_path, HF_HUB_CACHE=str(tmp_path / "cache"))
    result = run("download", "o/m", **known)
    assert result.status == 0 and result.text == f"{snapshot}\n"
    assert hub.log == []
    (snapshot / SHARD).unlink()
    result = run("download", "o/m", **known)
    assert result.status == 0 and "/models/o/m" in result.text
    assert set(os.listdir(snapshot)) == {"config.json"}


def test_a_model_that_is_named_is_fetched(hub, tmp_path):
    result = run("tokenize", "-m", "o/m", "x", **variables(hub, tmp_path))
    assert result.status == 1 and result.out == b""
    assert "fetched model.safetensors" in result.err
    assert tree(tmp_path / ".cache/mlxcel/models/o/m").keys() == WANTED


def test_offline(hub, tmp_path):
    result = download(hub, tmp_path, MLXCEL_OFFLINE="1")
    expect_error(result, "o/m", "MLXCEL_OFFLINE")
    assert hub.log == []


@pytest.mark.parametrize("globs,names", [
    (["*.json"], {"config.json", "sub/tokenizer.json"}),
    (["config*", "sub/"], {"config.json", "sub/tokenizer.json"}),
    (["[a-c]onfig.jso?"], {"config.json"}),
    (["*"], WANTED),
])
def test_include(hub, tmp_path, globs, names):
    options = [word for glob in globs for word in ("--include", glob)]
    assert download(hub, tmp_path, *options).status == 0
    expect_all(hub, tmp_path, names)


def test_include_of_nothing(hub, tmp_path):
    expect_error(download(hub, tmp_path, "--include", "*.bin"), "o/m", "wanted")
    assert not (tmp_path / "m").exists()


def test_names_and_revisions_are_encoded(tmp_path):
    name = "sub dir/token #1?%ä.json"
    with Hub({"config.json": CONFIG, name: b"{}", SHARD: b"x"}) as hub:
        hub.repository.commit = None
        assert download(hub, tmp_path, "--revision", "refs/pr/1").status == 0
        expect_all(hub, tmp_path, {"config.json", name, SHARD})
        assert hub.log[0].path.endswith("/revision/refs%2Fpr%2F1?blobs=true")
        assert hub.requests("/resolve/refs%2Fpr%2F1/sub%20dir/token%20%231%3F"
                            "%25%C3%A4.json")


# Answers that are errors.

@pytest.mark.parametrize("where", ["list", "config.json"])
@pytest.mark.parametrize("code,headers,parts", [
    (401, {}, ["no such repository, or a private one", "HF_TOKEN"]),
    (403, {"X_Error_Code": "GatedRepo", "X_Error_Message": "ask \x1b[2J first"},
     ["gated", "accept its terms", '"ask \\x1b[2J first"', "HTTP 403"]),
    (403, {}, ["access is refused", "--token"]),
    (404, {"X_Error_Code": "RepoNotFound"}, ["no such repository"]),
    (404, {"X_Error_Code": "RevisionNotFound"}, ["no such revision"]),
    (410, {}, ["HTTP 410"]),
    (429, {"Retry_After": "3600"}, ["too many requests", "HTTP 429"]),
    (503, {"Retry_After": "3600"}, ["the hub has a fault", "HTTP 503"]),
])
def test_refusals(hub, tmp_path, where, code, headers, parts):
    hub.always[where] = status(code, **headers)
    start = time.monotonic()
    subject = "o/m (main)" if where == "list" else where
    expect_error(download(hub, tmp_path), f"[download] {subject}: ", *parts)
    assert time.monotonic() - start < 20
    if where == "list":
        assert not (tmp_path / "m").exists()


def test_a_token_that_gives_no_access(hub, tmp_path):
    hub.always["list"] = status(401)
    result = download(hub, tmp_path, HF_TOKEN="hf_secret",
                      MLXCEL_ALLOW_INSECURE_ENDPOINT="1")
    expect_error(result, "the token that was sent gives no access")
    assert "hf_secret" not in result.err


@pytest.mark.parametrize("where", ["list", "config.json", SHARD])
def test_passing_faults_pass(hub, tmp_path, where):
    hub.faults[where] = [status(500), status(429, Retry_After="1")]
    start = time.monotonic()
    result = download(hub, tmp_path)
    assert result.status == 0, result.err
    assert result.err.count("trying again") == 2
    assert 1.4 < time.monotonic() - start < 25
    expect_all(hub, tmp_path)


def test_nobody_listens(tmp_path, hub):
    hub.close()
    start = time.monotonic()
    expect_error(download(hub, tmp_path), "127.0.0.1")
    assert time.monotonic() - start < 20


# Connections that break, and what was there.

@pytest.mark.parametrize("storage", [False, True])
def test_goes_on_where_a_connection_broke(tmp_path, storage):
    with Hub(files(), [SHARD], storage=storage) as hub:
        hub.faults[SHARD] = [broken(100_000), broken(100_000)]
        result = download(hub, tmp_path)
        assert result.status == 0 and result.err.count("trying again") == 2
        expect_all(hub, tmp_path)
        server = hub.storage or hub
        asked = [request.headers.get("range")
                 for request in server.requests(SHARD)]
        assert asked == [None, "bytes=100000-", "bytes=200000-"]
        etags = [request.headers.get("if-range")
                 for request in server.requests(SHARD)]
        assert etags[0] is None and etags[1] and etags[1] == etags[2]


def test_a_body_of_unknown_length_that_ends_early(hub, tmp_path):
    def fault(handler, data, etag):
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(data[:1000])
        handler.close_connection = True

    hub.faults[SHARD] = [fault]
    result = download(hub, tmp_path)
    assert result.status == 0 and "1000 of 300000" in result.err
    expect_all(hub, tmp_path)


def test_a_server_that_knows_no_ranges(hub, tmp_path):
    hub.faults[SHARD] = [
        broken(100_000),
        lambda handler, data, etag: handler.send_file(data, etag, ranges=False)]
    assert download(hub, tmp_path).status == 0
    expect_all(hub, tmp_path)


def test_a_range_that_is_refused(hub, tmp_path):
    hub.faults[SHARD] = [broken(100_000), status(416)]
    assert download(hub, tmp_path).status == 0
    expect_all(hub, tmp_path)


@pytest.mark.parametrize("same_etag", [False, True])
def test_a_file_that_changes_is_not_spliced(hub, tmp_path, same_etag):
    """The first part is another file's; with a liar's etag the hash tells."""
    other = content(300_000, seed=2)

    def fault(handler, data, etag):
        handler.send_file(other, etag if same_etag else '"other"', stop=100_000)

    hub.faults[SHARD] = [fault]
    result = download(hub, tmp_path)
    assert result.status == 0
    assert ("put together" in result.err) == same_etag
    expect_all(hub, tmp_path)


@pytest.mark.parametrize("fault,parts", [
    (lambda handler, data, etag: handler.send_file(data[:-1], etag),
     ["300000 bytes", "299999"]),
    (lambda handler, data, etag: handler.send_file(data + b"x", etag),
     ["300000 bytes", "300001"]),
    (lambda handler, data, etag: handler.send_file(data[::-1], etag),
     ["SHA-256"]),
])
def test_a_wrong_file(hub, tmp_path, fault, parts):
    hub.always[SHARD] = fault
    expect_error(download(hub, tmp_path), f"[download] {SHARD}: ", *parts)
    assert not (tmp_path / "m" / SHARD).exists()
    assert not any(".safetensors." in name and (tmp_path / "m" / name).stat()
                   .st_size == 300_000 for name in os.listdir(tmp_path / "m"))
    del hub.always[SHARD]
    assert download(hub, tmp_path).status == 0
    expect_all(hub, tmp_path)


def test_a_small_file_with_a_wrong_hash(hub, tmp_path):
    hub.always["config.json"] = (
        lambda handler, data, etag: handler.send_file(data[::-1], etag))
    expect_error(download(hub, tmp_path), "config.json", "git blob")


def test_a_body_without_end(hub, tmp_path):
    def fault(handler, data, etag):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while True:
            handler.wfile.write(b"10000\r\n" + bytes(65536) + b"\r\n")

    hub.always[SHARD] = fault
    expect_error(download(hub, tmp_path), SHARD, "sends more")


def test_sizes_that_the_list_does_not_have(tmp_path):
    with Hub(files(), [SHARD], storage=True) as hub:
        full = hub.repository.listing
        hub.repository.listing = lambda: {"siblings": [
            {"rfilename": row["rfilename"]} for row in full()["siblings"]]}
        assert download(hub, tmp_path).status == 0
        expect_all(hub, tmp_path)
        assert {request.method for request in hub.log[:4]} == {"GET", "HEAD"}
        # The storage is not asked for what the hub says itself.
        assert all(request.method == "GET" for request in hub.storage.log)
        # The etag of a large file is its hash.
        hub.always[SHARD] = (
            lambda handler, data, etag: handler.send_file(data[::-1], etag))
        expect_error(download(hub, tmp_path, "--force"), SHARD, "SHA-256")


# Redirects, tokens, TLS.

def test_the_token_stays_with_the_hub(tmp_path):
    with Hub(files(), [SHARD], storage=True) as hub:
        result = download(hub, tmp_path, "--token", "hf_secret",
                          MLXCEL_ALLOW_INSECURE_ENDPOINT="1")
        assert result.status == 0
        expect_all(hub, tmp_path)
        assert all(request.headers["authorization"] == "Bearer hf_secret"
                   for request in hub.log)
        assert len(hub.storage.log) == 1
        assert "authorization" not in hub.storage.log[0].headers
        assert "hf_secret" not in result.err + result.text


def test_no_token_without_tls(hub, tmp_path):
    result = download(hub, tmp_path, HF_TOKEN="hf_secret")
    assert result.status == 0 and "HF_TOKEN is not sent" in result.err
    assert "hf_secret" not in result.err
    assert all("authorization" not in request.headers for request in hub.log)


@pytest.mark.parametrize("token", ["hf secret", "hf_\x7f", "hf_ä", "a\r\nX: y"])
def test_tokens_that_are_none(hub, tmp_path, token):
    result = download(hub, tmp_path, HF_TOKEN=token)
    assert result.status == 2 and "HF_TOKEN: a token is printable" in result.err
    assert token not in result.err and hub.log == []


def test_the_order_of_tokens(hub, tmp_path):
    def sent(*options, **more):
        hub.log.clear()
        assert download(hub, tmp_path, *options, **more,
                        MLXCEL_ALLOW_INSECURE_ENDPOINT="1").status == 0
        return hub.log[0].headers.get("authorization")

    both = {"HF_TOKEN": "two", "HUGGING_FACE_HUB_TOKEN": "three"}
    assert sent("--hf-token", "one", **both) == "Bearer one"
    assert sent(**both) == "Bearer two"
    assert sent(HF_TOKEN=" ", HUGGING_FACE_HUB_TOKEN="three\n") == "Bearer three"
    assert sent() is None


@pytest.mark.parametrize("endpoint", [
    "ftp://x", "file:///etc/passwd", "nonsense", "http://", "https://u:pw@h",
    "http://h/?q"])
def test_endpoints_that_are_none(hub, tmp_path, endpoint):
    result = download(hub, tmp_path, HF_ENDPOINT=endpoint)
    assert result.status == 2 and "HF_ENDPOINT" in result.err
    assert "pw" not in result.err


@pytest.mark.parametrize("target", [
    "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x",
    "http://user:pw@127.0.0.1/x"])
def test_redirects_that_lead_nowhere_good(hub, tmp_path, target):
    hub.always[SHARD] = status(302, Location=target)
    expect_error(download(hub, tmp_path), "[download] ")


def test_redirects_without_end(hub, tmp_path):
    def fault(handler, *_):
        handler.reply(302, Location=handler.path)

    hub.always[SHARD] = fault
    expect_error(download(hub, tmp_path), "redirects")
    assert len(hub.requests(SHARD)) < 12


def test_a_renamed_repository(hub, tmp_path):
    hub.faults["list"] = [status(307, Location="/api/models/new/m/revision/x")]
    result = download(hub, tmp_path, HF_TOKEN="t",
                      MLXCEL_ALLOW_INSECURE_ENDPOINT="1")
    assert result.status == 0
    assert hub.log[1].headers["authorization"] == "Bearer t"
    expect_all(hub, tmp_path)


# Killed, and two at once.

def start(server, folder, **options):
    return subprocess.Popen(
        [PROGRAM, "download", "o/m", "--local-dir", folder / "m"],
        env=environment(**variables(server, folder)), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def slowly(seconds):
    """A fault that is none: a pause between the pieces."""
    def fault(handler, data, etag):
        handler.send_file(data, etag, pause=lambda _: time.sleep(seconds))
    return fault


def bytes_in(folder):
    """Of the finished and the unfinished files; some change meanwhile."""
    total = 0
    for path in (folder / "m").rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def test_killed_at_any_moment(tmp_path):
    many = {f"model-{i:05}-of-00004.safetensors": content(1_500_000, seed=i)
            for i in range(1, 5)}
    whole = {"config.json": CONFIG, **many}
    chance = random.Random(7)
    with Hub(whole, large=list(many), storage=True) as hub:
        for name in many:
            hub.always[name] = slowly(0.003)
        for _ in range(20):
            goal = bytes_in(tmp_path) + chance.choice([0, 1, 400_000])
            child = start(hub, tmp_path)
            until = time.monotonic() + 2
            while bytes_in(tmp_path) < goal and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.03))
            child.kill()
            child.communicate()
            # What has its name is whole.
            for name, data in whole.items():
                path = tmp_path / "m" / name
                assert not path.exists() or path.read_bytes() == data
        resumed = sum("range" in request.headers
                      for request in hub.storage.log)
        result = download(hub, tmp_path)
        assert result.status == 0, result.err
        expect_all(hub, tmp_path, whole.keys())
        sent = len(hub.storage.log)
    assert resumed > 0 and sent > 8


def test_an_interrupt_keeps_what_is_there(hub, tmp_path):
    hub.always[SHARD] = slowly(0.1)
    child = start(hub, tmp_path)
    parts = []
    for _ in range(200):
        parts = list((tmp_path / "m").glob(".model*.part"))
        if parts and parts[0].stat().st_size > 0:
            break
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=10)
    assert child.returncode == 130
    assert parts and parts[0].stat().st_size > 0
    del hub.always[SHARD]
    assert download(hub, tmp_path).status == 0
    assert hub.requests(SHARD)[-1].headers["range"].startswith("bytes=")
    expect_all(hub, tmp_path)


def test_two_at_once(hub, tmp_path):
    hub.always[SHARD] = slowly(0.1)
    first = start(hub, tmp_path)
    while not list((tmp_path / "m").glob(".model*.part")):
        time.sleep(0.01)
    second = start(hub, tmp_path)
    outputs = [child.communicate(timeout=30) for child in (first, second)]
    assert first.returncode == second.returncode == 0
    assert "waiting for it" in outputs[1][1]
    assert "present model.safetensors" in outputs[1][0]
    assert len(hub.requests("/resolve/")) == 3
    expect_all(hub, tmp_path)


def test_many_at_once(hub, tmp_path):
    children = [start(hub, tmp_path) for _ in range(6)]
    for child in children:
        child.communicate(timeout=60)
        assert child.returncode == 0
    assert len(hub.requests("/resolve/")) == 3
    expect_all(hub, tmp_path)


def test_one_that_waits_goes_on_after_a_kill(hub, tmp_path):
    hub.always[SHARD] = slowly(0.2)
    first = start(hub, tmp_path)
    while not list((tmp_path / "m").glob(".model*.part")):
        time.sleep(0.01)
    second = start(hub, tmp_path)
    time.sleep(0.3)
    first.kill()
    first.communicate()
    del hub.always[SHARD]
    second.communicate(timeout=30)
    assert second.returncode == 0
    expect_all(hub, tmp_path)
