"""`download` into directories and from lists that are broken or hostile."""

import contextlib
import os
import time

import pytest
from download_test import (  # noqa: F401
    CONFIG, SHARD, broken, clean_environment, content, download, expect_all,
    expect_error, hub, start, tree)
from mlxcel_program import needs_program

pytestmark = needs_program


# What lies where the files go.

def partial(folder):
    return next(path for path in (folder / "m").iterdir()
                if path.name.endswith(".part"))


def interrupted(hub, folder):
    """A directory with a part of the weights in it."""
    hub.always[SHARD] = broken(100_000)
    hub.faults[SHARD] = []
    child = start(hub, folder)
    while not any(path.stat().st_size >= 100_000
                  for path in (folder / "m").glob(".model*.part")):
        time.sleep(0.01)
    child.kill()
    child.communicate()
    del hub.always[SHARD]
    return partial(folder)


def test_a_part_that_is_damaged(hub, tmp_path):
    part = interrupted(hub, tmp_path)
    with open(part, "r+b") as file:
        file.write(b"damage")
    result = download(hub, tmp_path)
    assert result.status == 0 and "fetching it again" in result.err
    expect_all(hub, tmp_path)


def test_a_part_that_is_too_long(hub, tmp_path):
    part = interrupted(hub, tmp_path)
    part.write_bytes(content(400_000))
    assert download(hub, tmp_path).status == 0
    expect_all(hub, tmp_path)


@pytest.mark.parametrize("kind", ["link", "hard link", "directory", "fifo"])
def test_a_part_that_is_something_else(hub, tmp_path, kind):
    part = interrupted(hub, tmp_path)
    part.unlink()
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    if kind == "link":
        part.symlink_to(victim)
    elif kind == "hard link":
        os.link(victim, part)
    elif kind == "fifo":
        os.mkfifo(part)
    else:
        part.mkdir()
    assert download(hub, tmp_path).status == 0
    assert victim.read_bytes() == b"precious"
    expect_all(hub, tmp_path)


def test_links_at_the_target(hub, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(CONFIG)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").symlink_to(victim)
    assert download(hub, tmp_path, "--include", "*config.json").status == 0
    assert not (folder / "config.json").is_symlink()
    assert victim.read_bytes() == CONFIG
    (folder / "sub").symlink_to(elsewhere)
    expect_error(download(hub, tmp_path), "/m/sub", "link")
    assert list(elsewhere.iterdir()) == []


def test_a_directory_at_the_target(hub, tmp_path):
    (tmp_path / "m" / "config.json").mkdir(parents=True)
    expect_error(download(hub, tmp_path), "config.json", "a directory")


def test_a_link_as_lock(hub, tmp_path):
    victim = tmp_path / "victim"
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ".mlxcel-download.lock").symlink_to(victim)
    expect_error(download(hub, tmp_path), ".mlxcel-download.lock")
    assert not victim.exists()


def test_old_parts_are_removed(hub, tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    old = folder / ".model.safetensors.0123456789abcdef.part"
    new = folder / ".model.safetensors.fedcba9876543210.part"
    other = folder / ".something.part"
    for path in (old, new, other):
        path.write_bytes(b"x")
    for path in (old, other):
        os.utime(path, (time.time() - 4000,) * 2)
    assert download(hub, tmp_path).status == 0
    assert not old.exists() and new.exists() and other.exists()


def test_an_old_part_of_this_file_is_continued(hub, tmp_path):
    part = interrupted(hub, tmp_path)
    os.utime(part, (time.time() - 100_000,) * 2)
    assert download(hub, tmp_path).status == 0
    assert hub.requests(SHARD)[-1].headers["range"].startswith("bytes=")


def test_a_disk_that_is_full(hub, tmp_path):
    result = download(hub, tmp_path, file_size=100_000)
    expect_error(result, "cannot write", ".part")
    assert partial(tmp_path).stat().st_size == 100_000
    assert download(hub, tmp_path).status == 0
    expect_all(hub, tmp_path)


def test_a_model_larger_than_the_disk(hub, tmp_path):
    full = hub.repository.listing()
    for row in full["siblings"]:
        if row["rfilename"] == SHARD:
            row["size"] = row["lfs"]["size"] = 1 << 60
    hub.repository.listing = lambda: full
    expect_error(download(hub, tmp_path), "are needed", "are free")
    assert hub.requests("/resolve/") == []


def test_a_folder_that_can_not_be_made(hub, tmp_path):
    (tmp_path / "m").write_bytes(b"")
    expect_error(download(hub, tmp_path), "/m")


# Lists that are hostile.

def listing(hub, rows, **more):
    hub.repository.listing = lambda: {"sha": "a" * 40, "siblings": rows, **more}


def row(name, **more):
    return {"rfilename": name, "size": 2, **more}


@pytest.mark.parametrize("name", [
    "../x.json", "/x.json", "a/../../x.json", "a//x.json", "./x.json",
    "a\\x.json", "x\0.json", "x\n.json", "", "a/", "y" * 300 + ".json"])
def test_unsafe_names_are_left_out(hub, tmp_path, name):
    listing(hub, [row("config.json", size=len(CONFIG)), row(name)])
    result = download(hub, tmp_path)
    assert result.status == 0, result.err
    assert "unsafe name" in result.err
    assert tree(tmp_path).keys() == {"m/config.json"}


@pytest.mark.parametrize("rows,parts", [
    ([row("a.json"), row("a.json")], ["listed twice", "siblings[1]"]),
    ([row("a.json"), row("A.json")], ['"a.json"', '"A.json"', "one name"]),
    ([row("a.json"), row("a.json/b.json")], ["directory"]),
    ([row("a" * 513)], ["513 bytes", "512"]),
    ([row("a.json", size=-1)], ["size"]),
    ([row("a.json", size="many")], ["size"]),
    ([row("a.json", size=1 << 62), row("b.json", size=1 << 62),
      row("c.json", size=1 << 62), row("d.json", size=1 << 62)], ["sizes"]),
    ([row("a.json", lfs={"sha256": "../../x", "size": 2})], ["sha256", "hash"]),
    ([row("a.json", lfs={"size": 2})], ["lfs.sha256"]),
    ([row("a.json", blobId="x")], ["blobId"]),
    ([{"size": 2}], ["rfilename"]),
    ([7], ["siblings[0]"]),
    ({"a": 1}, ["siblings"]),
    ([row(f"{i}.json") for i in range(16385)], ["16385 files", "16384"]),
    ([row(f"{i}.json") for i in range(8193)], ["8193 files", "8192"]),
    ([], ["no file"]),
])
def test_lists_that_are_wrong(hub, tmp_path, rows, parts):
    listing(hub, rows)
    expect_error(download(hub, tmp_path), "o/m (main)" if parts != ["sizes"]
                 and "one name" not in parts and parts != ["directory"] else "",
                 *parts)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("body,parts", [
    (b"[" * 100_000, ["nested deeper"]),
    (b"", ["JSON"]), (b"<html>", ["JSON"]), (b"[]", ["siblings"]),
    (b'{"siblings": null}', ["siblings"]),
    (b'{"sha": "main/../..", "siblings": []}', ["sha"]),
    (b'{"siblings": [], "siblings": []}', ["duplicate"]),
    (b'{"x": "\xff", "siblings": []}', ["JSON"]),
    (b'{"x": "' + b"x" * (9 << 20) + b'"}', ["more than 8388608 bytes"]),
])
def test_answers_that_are_no_list(hub, tmp_path, body, parts):
    hub.always["list"] = lambda handler, *_: handler.reply(200, body)
    expect_error(download(hub, tmp_path), "o/m (main)", *parts)


def test_headers_without_end(hub, tmp_path):
    def fault(handler, *_):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(b"X: " + b"y" * 8000 + b"\r\n")

    hub.always["list"] = fault
    expect_error(download(hub, tmp_path), "headers")
