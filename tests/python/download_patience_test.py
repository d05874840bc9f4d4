"""How long a download waits, for connections that hang as well as broken ones,
and whom it trusts; by way of download_probe, which has shorter limits."""

import subprocess
import time

import pytest
from download_test import (  # noqa: F401
    SHARD, WANTED, broken, clean_environment, content, expect_all,
    expect_error, files, hub, slowly, status, variables)
from fake_hub import Hub
from mlxcel_program import BUILD, Result, environment

PROBE = BUILD / "download_probe"
pytestmark = pytest.mark.skipif(
    not PROBE.exists(), reason=f"{PROBE} is not built")


def probe(server, folder, timeout=40, more=None, **limits):
    limits = {"first_pause": 0.05, **limits}
    words = [f"{name}={value}" for name, value in limits.items()]
    done = subprocess.run(
        [PROBE, folder / "m", *words], capture_output=True, timeout=timeout,
        check=False, env=environment(**variables(server, folder, **more or {})))
    return Result(done.returncode, done.stdout, done.stderr.decode())


def hanging(after, trickle=None):
    """A fault: so many bytes, then nothing, or a byte now and then."""
    def fault(handler, data, etag):
        def pause(sent):
            end = time.monotonic() + 20
            while sent >= after and time.monotonic() < end:
                time.sleep(0.2)
                if handler.server.owner.closed:
                    raise ConnectionResetError
        handler.send_file(data, etag, pause=pause)
    return fault


@pytest.fixture(autouse=True)
def closing(monkeypatch):
    """Lets faults that hang end with the server."""
    monkeypatch.setattr(Hub, "closed", False, raising=False)
    close = Hub.close

    def closed(self):
        self.closed = True
        close(self)
    monkeypatch.setattr(Hub, "close", closed)


def test_a_connection_that_hangs_is_given_up(hub, tmp_path):
    hub.faults[SHARD] = [hanging(65536)]
    start = time.monotonic()
    result = probe(hub, tmp_path, stall=1)
    assert result.status == 0, result.err
    assert 0.9 < time.monotonic() - start < 25
    assert "trying again" in result.text
    assert hub.requests(SHARD)[1].headers["range"] == "bytes=65536-"
    expect_all(hub, tmp_path)


def test_a_hub_that_says_nothing(hub, tmp_path):
    hub.always["list"] = lambda *_: time.sleep(15)
    start = time.monotonic()
    result = probe(hub, tmp_path, stall=1, tries=2)
    assert result.status == 1 and "/api/models/o/m" in result.err
    assert time.monotonic() - start < 25


def test_a_list_that_trickles(hub, tmp_path):
    def fault(handler, *_):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(300):
            handler.wfile.write(b" " * 300)
            time.sleep(0.05)

    hub.always["list"] = fault
    start = time.monotonic()
    result = probe(hub, tmp_path, answer=1, tries=2)
    assert result.status == 1 and time.monotonic() - start < 20


def test_tries_are_counted_anew_after_progress(hub, tmp_path):
    hub.faults[SHARD] = [broken(70_000)] * 4
    assert probe(hub, tmp_path, tries=2).status == 0
    expect_all(hub, tmp_path)


@pytest.mark.parametrize("fault", [broken(1), status(500), broken(0)])
def test_tries_end_without_progress(hub, tmp_path, fault):
    hub.always[SHARD] = fault
    result = probe(hub, tmp_path, tries=3)
    expect_error(result, "")
    assert len(hub.requests(SHARD)) == 3
    assert result.text.count("trying again") == 2


def test_pauses_grow(hub, tmp_path):
    hub.faults["list"] = [status(500)] * 4
    result = probe(hub, tmp_path, first_pause=0.1, longest_pause=0.2)
    assert result.status == 0
    words = [line.split()[-2] for line in result.text.splitlines()
             if line.startswith("note")]
    assert words == ["0.1", "0.2", "0.2", "0.2"]


def test_the_first_error_ends_the_others(tmp_path):
    many = {f"{i}.safetensors": content(400_000, seed=i) for i in range(6)}
    with Hub(many, large=list(many)) as hub:
        for name in many:
            hub.always[name] = slowly(2)
        hub.always["3.safetensors"] = status(404)
        start = time.monotonic()
        result = probe(hub, tmp_path)
        assert result.status == 1 and "3.safetensors" in result.err
        assert time.monotonic() - start < 10


def test_files_come_side_by_side_the_weights_last(tmp_path):
    many = {f"{i}.safetensors": content(200_000, seed=i) for i in range(12)}
    many["config.json"] = b"{}"
    with Hub(many, large=list(many)) as hub:
        for name in many:
            hub.always[name] = slowly(0.1)
        result = probe(hub, tmp_path, parallel=4)
        assert result.status == 0
        lines = result.text.splitlines()
        assert lines[0] == "begin 13 2400002"
        assert lines[1] == "fetched config.json"
        assert lines[-1] == "end 2400002 4 forwards"
        expect_all(hub, tmp_path, many.keys())
