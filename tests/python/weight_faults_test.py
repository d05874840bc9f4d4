"""Weights that are cut or written to under the program, and too little memory
for it, from outside: an error that names the file or says that memory ran out,
and a chat that goes on."""

import os
import shutil
import time

import pytest
from cli_repl_test import Terminal, terminal  # noqa: F401
from mlxcel_program import (  # noqa: F401
    LETTERS, endless_letters, expect_failure, letter_model, letters,
    needs_program, run, start)

pytestmark = needs_program
BACKENDS = [{}, {"MLXCEL_REFERENCE": "1"}]


@pytest.fixture
def model(letters, tmp_path):  # noqa: F811
    return shutil.copytree(letters, tmp_path / "model")


def write_into(path):
    """Other bytes of the same number, in the file itself."""
    data = bytearray(path.read_bytes())
    data[4096:] = data[4096:][::-1]
    with open(path, "r+b") as file:
        file.write(data)


def cut(path):
    os.truncate(path, 4096)


def cut_by_one(path):
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize("spoil", [cut, cut_by_one, write_into])
@pytest.mark.parametrize("variables", BACKENDS, ids=["default", "reference"])
def test_a_chat_whose_weights_go_bad_lives_on(  # noqa: F811
        model, terminal, spoil, variables):
    session = terminal("run", model, **variables)
    session.expect(">>> ")
    session.type("Hi\n")
    assert LETTERS in session.expect(">>> ")
    time.sleep(0.05)
    spoil(model / "model.safetensors")
    for _ in range(2):
        session.type("Ho\n")
        answer = session.expect(">>> ")
        assert "error: " in answer and "model.safetensors" in answer
        assert "load the model again" in answer
        assert "abc" not in answer
    session.type("/?\n")
    assert "/clear" in session.expect(">>> ")
    session.type("/bye\n")
    assert session.end() == 0


def test_a_file_that_another_replaces_is_kept(model, terminal):  # noqa: F811
    session = terminal("run", model)
    session.expect(">>> ")
    time.sleep(0.05)
    weights = model / "model.safetensors"
    shutil.copy(weights, model / "new")
    write_into(model / "new")
    os.replace(model / "new", weights)
    session.type("Hi\n")
    assert LETTERS in session.expect(">>> ")
    os.remove(weights)
    session.type("Hi\n")
    assert LETTERS in session.expect(">>> ")


@pytest.mark.parametrize("spoil", [cut, cut_by_one, write_into])
@pytest.mark.parametrize("options", [[], ["--reference"]],
                         ids=["default", "reference"])
def test_a_reply_whose_weights_go_bad_ends_with_an_error(  # noqa: F811
        endless_letters, tmp_path, spoil, options):
    model = shutil.copytree(endless_letters, tmp_path / "model")
    with open(tmp_path / "out", "wb") as out:
        child = start("generate", "-m", model, "-p", "a", *options, stdout=out)
        deadline = time.monotonic() + 60
        while (tmp_path / "out").stat().st_size < 100:
            assert time.monotonic() < deadline and child.poll() is None
            time.sleep(0.005)
        spoil(model / "model.safetensors")
        err = child.communicate(timeout=60)[1].decode()
    assert child.returncode == 1, err
    last = err.splitlines()[-1]
    assert last.startswith("error: ") and "model.safetensors" in last
    text = (tmp_path / "out").read_text().rstrip("\n")
    # Nothing that the weights don't say was shown.
    assert text in LETTERS + LETTERS * (len(text) // 26 + 2)


MIB = 1 << 20


def test_an_index_of_a_million_entries_takes_bounded_memory(model):
    (model / "model.safetensors").rename(model / "model-1.safetensors")
    entries = ",".join(f'"model.layers.{i}.w":"m-{i}.safetensors"'
                       for i in range(1_000_000))
    (model / "model.safetensors.index.json").write_text(
        '{"weight_map":{"lm_head.weight":"model-1.safetensors",' + entries +
        "}}")
    begin = time.monotonic()
    result = run("generate", "-m", model, "-p", "7", memory=1536 * MIB)
    expect_failure(result, 1, "incomplete download", "model-1.safetensors",
                   "more")
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("variables", BACKENDS, ids=["default", "reference"])
def test_address_space_of_every_size(letters, variables):  # noqa: F811
    """From too little to start up to enough: never a crash."""
    succeeded = 0
    for mebibytes in [*range(16, 400, 12), 512, 1024, 2048, 4096]:
        result = run("generate", "-m", letters, "-p", "7",
                     memory=mebibytes * MIB, **variables)
        assert result.status in (0, 1, 127), (mebibytes, result)
        if result.status == 0:
            assert result.text == LETTERS + "\n"
            succeeded += 1
        elif result.status == 1:
            last = result.err.splitlines()[-1]
            assert last.startswith("error: "), (mebibytes, result)
            assert "memory" in last or "cannot" in last, (mebibytes, result)
    assert succeeded > 1
