"""Model references, the store, the Hugging Face cache, `list` and `rm`, each
in a home of its own and without a network."""

import json
import os
import pty
import shutil
import subprocess
import time

import pytest
from mlxcel_program import (  # noqa: F401
    PROGRAM, environment, expect_failure, letter_model, letters, needs_program,
    run, smollm2, write_safetensors)

pytestmark = needs_program
GIB = 1 << 30


class Home:
    """A home folder, and the program in it."""

    def __init__(self, path):
        self.path = path
        self.work = path / "work"
        self.store = path / ".cache" / "mlxcel" / "models"
        self.cache = path / ".cache" / "huggingface" / "hub"
        self.work.mkdir(parents=True)

    def run(self, *arguments, **more):
        more.setdefault("HOME", str(self.path))
        more.setdefault("cwd", self.work)
        return run(*arguments, **more)

    def entry(self, name, size=100, modified=None, root=None):
        """A model of `size` bytes in the store."""
        folder = (root or self.store) / name
        folder.mkdir(parents=True)
        config = b'{"model_type":"llama"}'
        (folder / "config.json").write_bytes(config)
        with open(folder / "model.safetensors", "wb") as file:
            file.truncate(size - len(config))
        if modified is not None:
            for file in folder.iterdir():
                os.utime(file, (modified, modified))
        return folder

    def snapshot(self, model, repository, commit="0123abcd", ref="main"):
        """The model in the Hugging Face cache: links to blobs."""
        owner, name = repository.split("/")
        folder = self.cache / f"models--{owner}--{name}"
        snapshot = folder / "snapshots" / commit
        blobs = folder / "blobs"
        snapshot.mkdir(parents=True)
        blobs.mkdir(exist_ok=True)
        for i, file in enumerate(sorted(model.iterdir())):
            blob = f"{commit}{i:04}"
            shutil.copyfile(file, blobs / blob)
            (snapshot / file.name).symlink_to(f"../../blobs/{blob}")
        if ref:
            (folder / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
            (folder / "refs" / ref).write_text(commit)
        return snapshot

    def tree(self):
        return sorted(str(path) for path in self.path.rglob("*"))


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


def answer(home, model, *options, prompt="7", **more):  # noqa: F811
    return home.run("generate", "-m", model, "--no-chat-template", "-p", prompt,
                    *options, **more)


# ---- where a model is found


def test_store_by_name(home, letters):  # noqa: F811
    shutil.copytree(letters, home.store / "some" / "letters")
    result = answer(home, "some/letters")
    assert (result.status, result.out) == (0, b"89\n"), result.err
    assert str(home.store / "some" / "letters") in result.err
    result = answer(home, "letters", MLXCEL_DEFAULT_ORG="some")
    assert (result.status, result.out) == (0, b"89\n"), result.err
    assert "letters means some/letters" in result.err
    for blank in ("", "  "):
        result = answer(home, "letters", MLXCEL_DEFAULT_ORG=blank)
        expect_failure(result, 1, "mlx-community/letters", "offline")
    expect_failure(answer(home, "letters", MLXCEL_DEFAULT_ORG="a/b"), 2,
                   "MLXCEL_DEFAULT_ORG", "a/b")


def test_root_of_the_store(home, letters, tmp_path):  # noqa: F811
    places = {name: tmp_path / name for name in ("flag", "models", "cache")}
    roots = {**places, "cache": places["cache"] / "models"}
    for root in (*roots.values(), home.store):
        shutil.copytree(letters, root / "o" / "n")
    variables = {"MLXCEL_MODELS_DIR": str(places["models"]),
                 "MLXCEL_CACHE_DIR": str(places["cache"])}

    def used(*options, **more):
        result = answer(home, "o/n", *options, **more)
        assert result.out == b"89\n", result.err
        return result.err

    assert str(roots["flag"]) in used("--models-dir", roots["flag"], **variables)
    assert str(roots["models"]) in used(**variables)
    assert str(roots["cache"]) in used(**{**variables, "MLXCEL_MODELS_DIR": ""})
    assert str(home.store) in used()
    (home.path / "own").mkdir()
    shutil.copytree(letters, home.path / "own" / "o" / "n")
    assert "own/o/n" in used(MLXCEL_MODELS_DIR="~/own")
    expect_failure(answer(home, "o/n", HOME=""), 2, "MLXCEL_MODELS_DIR",
                   "MLXCEL_CACHE_DIR", "--models-dir")


def test_snapshot_of_the_hugging_face_cache(home, letters):  # noqa: F811
    home.snapshot(letters, "some/letters")
    before = home.tree()
    result = answer(home, "some/letters")
    assert (result.status, result.out) == (0, b"89\n"), result.err
    assert "snapshots/0123abcd" in result.err
    # Every reader goes through the links.
    assert home.run("tokenize", "-m", "some/letters", "--ids", "7").out == (
        b"[55]\n")
    assert home.run("detokenize", "-m", "some/letters", "55").out == b"7"
    assert home.run("score", "-m", "some/letters", "--text", "78").status == 0
    messages = b'[{"role": "user", "content": "Hi"}]'
    assert home.run("template", "-m", "some/letters", "--messages", "-",
                    stdin=messages).out == b"user: Hi\nassistant:"
    assert home.run("bench", "some/letters", "-p", "4", "-n", "2", "-r",
                    "1").status == 0
    assert home.run("run", "some/letters", "-p", "x").status == 0
    assert home.tree() == before


@pytest.mark.parametrize("variables,place", [
    ({}, ".cache/huggingface/hub"), ({"HF_HOME": "{}/hf"}, "hf/hub"),
    ({"HF_HUB_CACHE": "{}/c", "HF_HOME": "{}/hf"}, "c"),
    ({"HF_HUB_CACHE": "~/c"}, "c"), ({"HF_HUB_CACHE": " "},
                                     ".cache/huggingface/hub")])
def test_place_of_the_hugging_face_cache(home, letters, variables,  # noqa: F811
                                         place):
    home.cache = home.path / place
    home.snapshot(letters, "o/n")
    variables = {key: value.format(home.path)
                 for key, value in variables.items()}
    assert answer(home, "o/n", **variables).out == b"89\n"


def test_revisions(home, letters, tmp_path):  # noqa: F811
    endless = letter_model(tmp_path / "endless", endless=True)
    home.snapshot(letters, "o/n", "aaaa", "main")
    home.snapshot(endless, "o/n", "bbbb", "refs/pr/1")
    for revision in ("bbbb", "refs/pr/1"):
        result = answer(home, "o/n", "--revision", revision, "-n", "3")
        assert result.out == b"89a\n", result.err
    for revision in ("aaaa", "main"):
        assert answer(home, "o/n", "--revision", revision).out == b"89\n"
    result = answer(home, "o/n", "--revision", "v2")
    expect_failure(result, 1, "o/n", '"v2"', "offline", str(home.cache))
    # The other places don't know revisions.
    shutil.copytree(letters, home.work / "models" / "n")
    result = answer(home, "o/n", "--revision", "v2")
    expect_failure(result, 1, '"v2"', "offline")
    shutil.copytree(letters, home.store / "o" / "n")
    result = answer(home, "o/n", "--revision", "v2")
    expect_failure(result, 1, "one revision", str(home.store / "o" / "n"))
    assert answer(home, "o/n", "--revision", "bbbb", "-n", "3").out == b"89a\n"
    expect_failure(answer(home, letters, "--revision", "main"), 2,
                   "--revision", "path")
    expect_failure(answer(home, "o/n", "--revision", "../../x"), 2,
                   "--revision")


def test_order_of_the_places(home, letters, tmp_path):  # noqa: F811
    legacy = home.work / "models" / "n"
    shutil.copytree(letters, legacy)
    snapshot = home.snapshot(letters, "o/n")
    entry = home.store / "o" / "n"
    shutil.copytree(letters, entry)
    for place in (legacy, snapshot, entry):
        result = answer(home, "o/n")
        assert result.out == b"89\n", result.err
        assert str(place.relative_to(home.path)).split("work/")[-1] in (
            result.err), place
        (place / "model.safetensors").unlink()
    result = answer(home, "o/n")
    expect_failure(result, 1, "o/n", "offline", "missing: *.safetensors",
                   str(snapshot), str(entry), "./models/n")
    # An existing path wins over all of them.
    shutil.copytree(letters, home.work / "o" / "n")
    assert " on " in answer(home, "o/n").err
    assert str(home.store) not in answer(home, "o/n").err


def test_name_alone_in_the_root(home, letters):  # noqa: F811
    shutil.copytree(letters, home.store / "letters")
    assert answer(home, "letters").out == b"89\n"
    expect_failure(answer(home, "other/letters"), 1, "other/letters")


# ---- what is no name


@pytest.mark.parametrize("text,parts", [
    ("https://huggingface.co/mlx-community/Qwen3-0.6B-4bit",
     ["mlx-community/Qwen3-0.6B-4bit"]),
    ("https://huggingface.co/o/n/tree/main?token=secret#x", ["repository: o/n"]),
    ("https://user:secret@hf.co/o/n", ["repository: o/n", "***@"]),
    ("HTTPS://HuggingFace.co/o/n/resolve/main/config.json", ["o/n"]),
    ("huggingface.co/o/n", ["repository: o/n"]),
    ("hf://o/n", ["repository: o/n"]),
    ("https://huggingface.co/datasets/o/n", ["owner/name"]),
    ("https://example.com/model.safetensors", ["owner/name"]),
    ("ftp://me:secret@example.com/x.gguf", ["URL"]),
    ("model.gguf", ["GGUF", "convert"]), ("o/n.GGUF", ["GGUF", "convert"]),
    ("m-00001-of-00003.gguf", ["split"]),
])
def test_refused_forms(home, text, parts):
    result = answer(home, text)
    expect_failure(result, 1, *parts)
    assert "secret" not in result.err


def test_gguf_that_exists(home, letters):  # noqa: F811
    (home.work / "m.gguf").write_bytes(b"GGUF")
    expect_failure(answer(home, "m.gguf"), 1, "m.gguf", "convert")
    shutil.copytree(letters, home.work / "folder.gguf")
    assert answer(home, "folder.gguf").out == b"89\n"


@pytest.mark.parametrize("text", [
    "../x", "./x", "a/b/c", "/none", "a b", "o/", "/n", "o//n", "..", "~x",
    "é", "a/..", "x" * 300])
def test_forms_are_listed(home, text):
    if text == "..":
        text = "o/.."
    expect_failure(answer(home, text), 1, "OWNER/NAME", "NAME alone",
                   "existing path", "mlx-community/NAME")


# ---- offline


@pytest.mark.parametrize("value,offline", [
    ("on", True), ("enabled", True), ("true", True), ("1", True),
    ("yes", False), ("TRUE", False), ("0", False), ("", False), (" 1", False)])
def test_offline_variable(home, value, offline):
    # A proxy that nobody listens at stands for the network.
    dead = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy":
            "http://127.0.0.1:9", "HF_ENDPOINT": "https://127.0.0.1:9"}
    for name in ("MLXCEL_OFFLINE", "LLAMA_ARG_OFFLINE"):
        variables = {"MLXCEL_OFFLINE": "", **dead, name: value}
        result = answer(home, "o/n", **variables)
        assert result.status == 1 and result.out == b""
        assert ("offline mode" in result.err) == offline, result.err
        result = answer(home, "o/n", "--offline", **variables)
        expect_failure(result, 1, "o/n", "offline mode")
    assert not (home.store / "o" / "n" / "config.json").exists()


def test_incomplete_entry_offline(home, letters):  # noqa: F811
    entry = home.store / "o" / "n"
    shutil.copytree(letters, entry)
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors",
                            "b": "model-00002-of-00002.safetensors"}}
    (entry / "model.safetensors.index.json").write_text(json.dumps(index))
    assert answer(home, "o/n").out == b"89\n"  # stale: the one file isn't in it
    (entry / "model.safetensors").rename(
        entry / "model-00001-of-00002.safetensors")
    expect_failure(answer(home, "o/n"), 1, str(entry),
                   'missing: "model-00002-of-00002.safetensors"',
                   'present: config.json, "model-00001-of-00002.safetensors"')


# ---- list


@pytest.fixture
def three(home):
    """Three models: `b/big` newest, `a/old`, and `alone` in the root."""
    now = time.time()
    home.entry("a/old", 3 << 10, now - 3 * 86400)
    home.entry("b/big", 5 * GIB, now - 7200)
    home.entry("alone", 700, now - 400 * 86400)
    (home.store / "a" / "no-model").mkdir()
    (home.store / ".hidden" / "x").mkdir(parents=True)
    (home.store / "a" / "file").write_text("x")
    return home


def test_list(three):
    result = three.run("list")
    assert result.status == 0 and result.err == ""
    assert result.text == (
        "3 models · 5.00 GiB · ~/.cache/mlxcel/models\n"
        "\n"
        "  NAME       SIZE  MODIFIED\n"
        "  a/old   3.0 KiB  3 days ago\n"
        "  alone     700 B  1 year ago\n"
        "  b/big  5.00 GiB  2 hours ago\n")
    assert three.run("ls").text == result.text
    verbose = three.run("list", "--verbose").text.splitlines()
    assert verbose[2] == "  NAME       SIZE  MODIFIED     PATH"
    assert verbose[3] == ("  a/old   3.0 KiB  3 days ago   "
                          "~/.cache/mlxcel/models/a/old")


@pytest.mark.parametrize("order,ids", [
    (None, ["a/old", "alone", "b/big"]), ("name", ["a/old", "alone", "b/big"]),
    ("size", ["b/big", "a/old", "alone"]),
    ("modified", ["b/big", "a/old", "alone"])])
def test_list_sorted(three, order, ids):
    options = [] if order is None else ["--sort", order]
    assert three.run("list", "-q", *options).text.split() == ids
    rows = json.loads(three.run("list", "--json", *options).text)
    assert [row["repo_id"] for row in rows] == ids
    lines = three.run("list", *options).text.splitlines()[3:]
    assert [line.split()[0] for line in lines] == ids


def test_list_json(three):
    text = three.run("list", "--json").text
    rows = json.loads(text)
    assert text == json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    assert [list(row) for row in rows] == (
        3 * [["repo_id", "size_bytes", "path", "modified"]])
    assert rows[2]["size_bytes"] == 5 * GIB
    assert rows[2]["path"] == str(three.store / "b" / "big")
    assert abs(rows[2]["modified"] - (time.time() - 7200)) < 60


def test_list_of_nothing(home):
    before = home.tree()
    lines = home.run("list").text.splitlines()
    assert len(lines) == 3
    assert "~/.cache/mlxcel/models" in lines[0]
    assert "mlxcel download" in lines[1] and "mlxcel arch" in lines[2]
    assert home.run("list", "--json").text == "[]\n"
    assert home.run("list", "--quiet").out == b""
    homeless = home.run("list", HOME="")
    assert homeless.status == 0
    first, *others = homeless.text.splitlines()
    assert others == lines[1:]
    for name in ("MLXCEL_MODELS_DIR", "MLXCEL_CACHE_DIR", "--models-dir"):
        assert name in first
    assert home.run("list", "--json", HOME="").text == "[]\n"
    assert home.tree() == before


def test_one_model_with_a_long_name(home):
    home.entry("owner/" + "n" * 60)
    lines = home.run("list").text.splitlines()
    assert lines[0].startswith("1 model · 100 B · ")
    name = "owner/" + 33 * "n" + "…"
    assert lines[2].startswith("  NAME" + 36 * " " + "   SIZE  ")
    assert lines[3].startswith(f"  {name}  100 B  ")


def terminal(home, *arguments, answer=None, **variables):
    """Everything that the program shows on a terminal, and its status."""
    controller, line = pty.openpty()
    child = subprocess.Popen(
        [PROGRAM, *arguments], stdin=line, stdout=line, stderr=line,
        env=environment(HOME=str(home.path), **variables), cwd=home.work)
    os.close(line)
    if answer is not None:
        os.write(controller, answer)
    shown = b""
    while True:
        try:
            piece = os.read(controller, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(controller)
    return child.wait(timeout=30), shown.decode()


def test_list_is_styled_on_a_terminal_alone(three):
    _, shown = terminal(three, "list", NO_COLOR="")
    dim, plain = "\033[2m", "\033[0m"
    assert f"· {dim}~/.cache/mlxcel/models{plain}" in shown
    assert f"  b/big  5.00 GiB  {dim}2 hours ago{plain}" in shown
    assert dim not in terminal(three, "list", NO_COLOR="1")[1]
    assert dim not in three.run("list", NO_COLOR="").text


# ---- rm


def test_rm(three):
    folder = three.store / "a" / "old"
    result = three.run("rm", "a/old", "--yes")
    assert result.status == 0 and result.err == ""
    assert result.text == f"Removed a/old (3.0 KiB, {folder})\n"
    assert not folder.exists() and (three.store / "a" / "no-model").exists()
    assert three.run("rm", "b/big", "-y").status == 0
    assert not (three.store / "b").exists()
    assert three.run("rm", "alone", "-y").status == 0
    assert not (three.store / "alone").exists() and three.store.exists()


def test_rm_of_a_partial_download(home):
    folder = home.store / "mlx-community" / "n"
    folder.mkdir(parents=True)
    (folder / "model.safetensors.part").write_bytes(b"x")
    assert home.run("list", "-q").out == b""
    assert home.run("rm", "n", "-y").status == 0
    assert not folder.exists()


def test_rm_never_removes_an_owner(three):
    for name in ("a", "b", "mlx-community/a"):
        expect_failure(three.run("rm", name, "-y"), 1, "list")
    assert (three.store / "a" / "old").exists()


def test_rm_of_what_is_not_there(home, letters):  # noqa: F811
    expect_failure(home.run("rm", "o/n", "-y"), 1, "o/n", str(home.store),
                   "mlxcel list")
    snapshot = home.snapshot(letters, "o/n")
    before = home.tree()
    expect_failure(home.run("rm", "o/n", "-y"), 1, "o/n", str(snapshot),
                   "Hugging Face", "ever deleted")
    expect_failure(home.run("rm", "o/n", "-y", "--revision", "v2"), 1,
                   "mlxcel list")
    assert home.tree() == before


def test_rm_asks(three):
    folder = three.store / "a" / "old"
    expect_failure(three.run("rm", "a/old"), 1, "--yes")
    expect_failure(three.run("rm", "a/old", stdin=b"y\n"), 1, "--yes")
    for no in (b"\n", b"n\n", b"yeah\n", b"yes please\n", b"\x04"):
        status, shown = terminal(three, "rm", "a/old", answer=no)
        assert status == 0 and "Nothing was removed." in shown, shown
        assert f"a/old (3.0 KiB, {folder})? [y/N]" in shown
        assert folder.exists()
    for i, yes in enumerate((b"y\n", b"YES\n", b" Yes \n")):
        if i:
            three.entry("a/old")
        status, shown = terminal(three, "rm", "a/old", answer=yes)
        assert status == 0 and "Removed a/old" in shown, shown
        assert not folder.exists()


def test_rm_stays_in_the_store(home, letters, tmp_path):  # noqa: F811
    outside = tmp_path / "outside"
    shutil.copytree(letters, outside / "model")
    # A link for an entry goes, what it leads to stays.
    (home.store / "o").mkdir(parents=True)
    (home.store / "o" / "n").symlink_to(outside / "model")
    assert home.run("list", "-q").text == "o/n\n"
    assert home.run("rm", "o/n", "-y").status == 0
    assert not (home.store / "o" / "n").is_symlink()
    assert (outside / "model" / "config.json").exists()
    # Links in an entry are not followed.
    folder = home.entry("o/n")
    (folder / "folder").symlink_to(outside)
    (folder / "file").symlink_to(outside / "model" / "config.json")
    assert home.run("rm", "o/n", "-y").status == 0
    assert not folder.exists()
    assert (outside / "model" / "config.json").exists()
    # An owner that is a link leads elsewhere.
    (home.store / "away").symlink_to(outside)
    expect_failure(home.run("rm", "away/model", "-y"), 1, "away", "link")
    assert (outside / "model" / "config.json").exists()


# ---- links


def test_links_out_of_an_ordinary_directory(home, letters, tmp_path):  # noqa: F811
    model = tmp_path / "model"
    shutil.copytree(letters, model)
    (model / "model.safetensors").rename(tmp_path / "private.safetensors")
    (model / "model.safetensors").symlink_to("../private.safetensors")
    expect_failure(answer(home, model), 1, "model.safetensors", "outside")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json",
                                  "tokenizer_config.json"])
def test_other_links_out_of_an_ordinary_directory(home, letters, tmp_path,  # noqa: F811
                                                  name):
    model = tmp_path / "model"
    shutil.copytree(letters, model)
    (model / name).rename(tmp_path / name)
    (model / name).symlink_to(f"../{name}")
    expect_failure(answer(home, model), 1, str(model / name), "outside")
    expect_failure(home.run("tokenize", "-m", model, "x"), 1, "outside")


def test_links_from_a_snapshot_into_another_repository(home, letters):  # noqa: F811
    mine = home.snapshot(letters, "o/mine")
    home.snapshot(letters, "o/other")
    blob = os.readlink(mine / "model.safetensors").rsplit("/", maxsplit=1)[-1]
    (mine / "model.safetensors").unlink()
    (mine / "model.safetensors").symlink_to(
        f"../../../models--o--other/blobs/{blob}")
    expect_failure(answer(home, "o/mine"), 1, "model.safetensors", "outside")
    assert answer(home, "o/other").out == b"89\n"


# ---- a real model


@pytest.mark.parametrize("place", ["store", "local", "cache"])
def test_smollm2_by_name(home, smollm2, place):  # noqa: F811
    name = "mlx-community/SmolLM2-135M-Instruct"
    if place == "cache":
        home.snapshot(smollm2, name)
    else:
        root = (home.store / "mlx-community" if place == "store"
                else home.work / "models")
        root.mkdir(parents=True)
        (root / "SmolLM2-135M-Instruct").symlink_to(smollm2)
    question = ["-p", "What is the capital of France?", "-n", "12"]
    result = home.run("run", name, *question)
    assert result.status == 0, result.err
    assert len(result.text) > 12
    assert result.out == home.run("run", smollm2, *question).out
    assert "means" not in result.err
    again = home.run("run", "SmolLM2-135M-Instruct", *question)
    assert again.out == result.out and f"means {name}" in again.err
