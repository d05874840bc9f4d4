"""When weights become resident, and what `[TTFT]` says of it."""

import json
import re
import struct
import subprocess
from pathlib import Path

import pytest
from mlxcel_program import (PROGRAM, environment, expect_failure,
                            letter_model, needs_program, run,
                            write_safetensors)

pytestmark = needs_program

MB = 1_000_000
LOAD = re.compile(
    r"\[TTFT\] load total=[\d.]+ms construct=[\d.]+ms materialize=[\d.]+ms "
    r"bytes=(\d+) tensors=(\d+) mode=(\w+)")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A model of 84 MB, and 64 MB beside it that it has no use for."""
    path = letter_model(tmp_path_factory.mktemp("materialize") / "model")
    config = json.loads((path / "config.json").read_text())
    config |= {"hidden_size": 512, "num_hidden_layers": 8,
               "num_attention_heads": 8, "num_key_value_heads": 8,
               "intermediate_size": 2048}
    config.pop("head_dim", None)
    (path / "model.safetensors").unlink()
    (path.parent / "config.json").write_text(json.dumps(config))
    made = run("synth", path.parent / "config.json", path, timeout=120)
    assert made.status == 0, made.err
    write_safetensors(path / "other.safetensors", {
        "unused.weight": ("BF16", (32, 1_000_000), bytes(64 * MB))})
    return path


def after_load(checkpoint, **variables):
    """The load's line, what stands before it, and resident bytes of files."""
    process = subprocess.Popen(
        [PROGRAM, "run", checkpoint, "-c", "64"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env=environment(MLXCEL_PROFILE_TTFT="1", **variables))
    before = []
    try:
        for line in process.stderr:
            text = line.decode()
            found = LOAD.search(text)
            if found:
                status = Path(f"/proc/{process.pid}/status").read_text()
                resident = 1024 * int(
                    status.split("RssFile:")[1].split()[0])
                return found, before, resident
            before.append(text)
    finally:
        process.kill()
        process.communicate()
    pytest.fail("".join(before))


def planes(checkpoint):
    raw = (checkpoint / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    return {name: entry["data_offsets"][1] - entry["data_offsets"][0]
            for name, entry in header.items() if len(entry["shape"]) == 2}


def test_the_model_is_resident_when_it_is_loaded(checkpoint):
    wanted = planes(checkpoint)
    assert sum(wanted.values()) > 60 * MB
    eager, _, full = after_load(checkpoint)
    lazy, _, bare = after_load(
        checkpoint, MLXCEL_WEIGHT_MATERIALIZATION=" Lazy ")
    assert (int(eager[1]), int(eager[2]), eager[3]) == (
        sum(wanted.values()), len(wanted), "eager")
    assert (int(lazy[1]), int(lazy[2]), lazy[3]) == (0, 0, "lazy")
    # All that the model keeps and nothing of what it has no use for.
    assert abs(full - bare - sum(wanted.values())) < 4 * MB, (full, bare)


def test_an_unknown_mode_is_told_and_eager(checkpoint):
    found, before, _ = after_load(
        checkpoint, MLXCEL_WEIGHT_MATERIALIZATION="sometimes")
    assert found[3] == "eager"
    told = [line for line in before if "MLXCEL_WEIGHT_MATERIALIZATION" in line]
    assert len(told) == 1 and "sometimes" in told[0], before


def test_each_generation_is_told(checkpoint):
    result = run("generate", "-m", checkpoint, "-p", "abc", "-n", "3",
                 "--no-chat-template", MLXCEL_PROFILE_TTFT="1")
    assert result.status == 0, result.err
    found = re.search(
        r"\[TTFT\] generate setup=[\d.]+ms prefill=[\d.]+ms "
        r"decode=[\d.]+ms prompt=(\d+) tokens=(\d+)", result.err)
    assert found and int(found[1]) >= 1 and 1 <= int(found[2]) <= 3
    assert "[TTFT]" not in run(
        "generate", "-m", checkpoint, "-p", "abc", "-n", "3",
        "--no-chat-template").err


@pytest.mark.parametrize("variable", [
    "MLXCEL_SURGERY", "MLXCEL_PLE_IO", "MLXCEL_PLE_CACHE_BYTES",
    "MLXCEL_EXPERT_STREAM", "MLXCEL_EXPERT_ARENA_BYTES",
    "MLXCEL_DISABLE_FUSED_GLOBAL_SCALE"])
def test_variables_that_cannot_be_honoured_are_refused(checkpoint, variable):
    result = run("generate", "-m", checkpoint, "-p", "a", "-n", "1",
                 **{variable: "1"})
    expect_failure(result, 2, variable, "unset it")
