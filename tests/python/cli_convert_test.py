"""`convert`: a GGUF file or another directory becomes one that runs, or nothing
at all."""

import json
import os
import struct

import gguf
import numpy as np
import pytest
from mlxcel_program import (
    CHAT, END, LETTERS, WIDTH, byte_alphabet, expect_failure, letters,
    needs_program,
    run, successor)

pytestmark = needs_program
MEMORY = 4 << 30


def write_gguf(path, types=gguf.GGMLQuantizationType.Q8_0, **changes):
    """The letter model as GGUF, by the official writer."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(WIDTH // 4)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(WIDTH)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    tokens = byte_alphabet() + ["<|end|>", "ab"]
    tokens += [f"<|unused{i}|>" for i in range(len(tokens), WIDTH)]
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3, 1] + [3] * (WIDTH - 258))
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(END)
    writer.add_chat_template(CHAT)

    def add(name, values):
        data = values.astype(np.float32)
        if values.ndim == 2:
            data = gguf.quantize(data, types)
            writer.add_tensor(name, data, raw_dtype=types)
        else:
            writer.add_tensor(name, data)

    head = np.zeros((WIDTH, WIDTH))
    for i, after in successor(endless=False).items():
        head[after, i] = 1
    add("token_embd.weight", np.eye(WIDTH))
    add("output.weight", head)
    add("output_norm.weight", np.ones(WIDTH))
    for norm in ("attn_norm", "ffn_norm"):
        add(f"blk.0.{norm}.weight", np.ones(WIDTH))
    for name, rows, cols in [
            ("attn_q", WIDTH, WIDTH), ("attn_k", WIDTH // 2, WIDTH),
            ("attn_v", WIDTH // 2, WIDTH), ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", 64, WIDTH), ("ffn_up", 64, WIDTH),
            ("ffn_down", WIDTH, 64)]:
        add(f"blk.0.{name}.weight", np.zeros((rows, cols)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def letters_gguf(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "letters.gguf")


@pytest.mark.parametrize("options", [[], ["--dense"]])
def test_converted_it_runs(letters_gguf, tmp_path, options):
    result = run("convert", letters_gguf, tmp_path / "out", *options)
    assert result.status == 0, result.err
    assert "Q8_0" in result.text
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json",
            "tokenizer_config.json"} <= names
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert ("quantization" in config) == (not options)
    for mode in ([], ["--exact"]):
        answer = run("generate", "-m", tmp_path / "out", "-p", "!", *mode)
        assert (answer.status, answer.text) == (0, LETTERS + "\n"), answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_same_bytes_each_time(letters_gguf, tmp_path):
    for name in ("one", "two"):
        assert run("convert", letters_gguf, tmp_path / name).status == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_an_existing_directory_is_refused(letters_gguf, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    expect_failure(run("convert", letters_gguf, out), 2, str(out), "--force")
    assert [path.name for path in out.iterdir()] == ["notes.txt"]
    assert run("convert", letters_gguf, out, "--force").status == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "config.json").exists()
    expect_failure(run("convert", letters_gguf, letters_gguf), 2,
                   "letters.gguf", "no directory")
    assert letters_gguf.exists()


def refused(path, out, *parts, **more):
    result = run("convert", path, out, memory=MEMORY, timeout=30, **more)
    expect_failure(result, 1, *parts)
    left = [p.name for p in out.parent.iterdir() if p != path]
    assert left == [], left


def test_cut_anywhere(letters_gguf, tmp_path):
    data = letters_gguf.read_bytes()
    path = tmp_path / "cut.gguf"
    for size in [0, 3, 4, 8, 20, 24, 100, 1000, 5000, len(data) // 2,
                 len(data) - 100, len(data) - 1]:
        path.write_bytes(data[:size])
        refused(path, tmp_path / "out", "cut.gguf")


@pytest.mark.parametrize("offset,form,value", [
    (0, "<I", 0x46554746), (4, "<I", 1), (4, "<I", 4), (4, "<I", 0x03000000),
    (8, "<Q", 2**63), (8, "<Q", 2**64 - 1), (8, "<Q", 10**6), (8, "<Q", 0),
    (16, "<Q", 2**63), (16, "<Q", 10**9), (16, "<Q", 0),
    (24, "<Q", 2**62), (24, "<Q", 0)])
def test_header_fields(letters_gguf, tmp_path, offset, form, value):
    data = bytearray(letters_gguf.read_bytes())
    struct.pack_into(form, data, offset, value)
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    refused(path, tmp_path / "out", "bad.gguf")


@pytest.mark.parametrize("key,part", [
    (b"llama.attention.head_count", "llama.attention.head_count"),
    (b"llama.embedding_length", "llama.embedding_length"),
    (b"llama.block_count", "llama.block_count")])
def test_metadata_is_named(letters_gguf, tmp_path, key, part):
    data = bytearray(letters_gguf.read_bytes())
    at = data.index(struct.pack("<Q", len(key)) + key) + 8 + len(key)
    struct.pack_into("<II", data, at, 4, 0)  # u32 0
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    refused(path, tmp_path / "out", "bad.gguf", part)


def test_things_that_are_no_gguf(tmp_path):
    refused(tmp_path / "none.gguf", tmp_path / "out", "none.gguf")
    path = tmp_path / "pipe.gguf"
    os.mkfifo(path)
    refused(path, tmp_path / "out", "pipe.gguf", "regular file")
    path.unlink()
    refused("/dev/zero", tmp_path / "out", "/dev/zero", "regular file")
    refused(tmp_path, tmp_path / "out", str(tmp_path), "config.json")
    path.touch()
    os.truncate(path, 1 << 40)
    refused(path, tmp_path / "out", "pipe.gguf")


@pytest.mark.parametrize("limit", [0, 1000, 100000])
def test_full_disk(letters_gguf, tmp_path, limit):
    result = run("convert", letters_gguf, tmp_path / "out", file_size=limit)
    expect_failure(result, 1, str(tmp_path / "out"), "large")
    assert list(tmp_path.iterdir()) == []


def test_full_disk_below_an_existing_directory(letters_gguf, tmp_path):
    out = tmp_path / "out"
    assert run("convert", letters_gguf, out).status == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    result = run("convert", letters_gguf, out, "--force", "--dense",
                 file_size=1000)
    assert result.status == 1
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}


def test_a_directory_that_cannot_be_made(letters_gguf, tmp_path):
    result = run("convert", letters_gguf, "/proc/none/out")
    expect_failure(result, 1, "/proc/none")


def convert_letters(letters, tmp_path, *flags, **more):
    return run("convert", letters, tmp_path / "out", *flags, **more)


def test_a_directory_runs_after_conversion(letters, tmp_path):  # noqa: F811
    report = tmp_path / "report.json"
    result = convert_letters(letters, tmp_path, "--q-bits", "8",
                             "--q-group-size", "32", "--report", report)
    assert result.status == 0, result.err
    assert "affine 8-bit group 32" in result.text
    out = tmp_path / "out"
    beside = {path.name for path in letters.iterdir()}
    assert {path.name for path in out.iterdir()} == beside
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (out / name).read_bytes() == (letters / name).read_bytes()
    rows = {row["name"]: row for row in
            json.loads(report.read_text())["tensors"]}
    assert rows["lm_head.weight"]["target"] == "affine 8-bit group 32"
    assert 0 <= rows["lm_head.weight"]["relative_rms"] < 0.01
    assert rows["model.norm.weight"]["max_error"] == 0
    answer = run("generate", "-m", out, "-p", "!", "--exact")
    assert (answer.status, answer.text) == (0, LETTERS + "\n"), answer.err


def test_a_width_that_no_group_divides_stays_dense(letters, tmp_path):  # noqa: F811
    expect_failure(convert_letters(letters, tmp_path, "--q-group-size", "128"),
                   2, "no tensor could be quantised")
    result = convert_letters(letters, tmp_path, "--q-layer",
                             "*down_proj=4/128")
    assert result.status == 0, result.err
    assert ("left dense: model.layers.0.mlp.down_proj.weight, 64 columns are "
            "no multiple of 128") in result.text


@pytest.mark.parametrize("flags,parts", [
    (["--dense"], ["--dense", "--dequantize"]),
    (["--tokenizer-only"], ["--tokenizer-only"]),
    (["-q", "--dequantize"], ["--dequantize"]),
    (["--q-bits", "7"], ["7-bit", "2, 3, 4, 5, 6 or 8"]),
    (["--q-bits", "1"], ["1-bit"]),
    (["--q-mode", "mxfp4", "--q-bits", "8"], ["mxfp4", "4 bits"]),
    (["--quant-predicate", "mixed_2_6", "--q-bits", "4"], ["--q-bits"]),
    (["--quant-predicate", "mixed_2_6", "--q-mode", "mxfp8"], ["--q-mode"]),
    (["--q-layer", "lm_head"], ["lm_head", "PATTERN=FORMAT"]),
    (["--q-layer", "lm_head=9/x"], ["lm_head=9/x", "PATTERN=FORMAT"]),
    (["--q-layer", "*norm=8"], ["*norm", "matches no module"]),
])
def test_flags_that_do_not_go(letters, tmp_path, flags, parts):  # noqa: F811
    expect_failure(convert_letters(letters, tmp_path, *flags), 2, *parts)
    assert list(tmp_path.iterdir()) == []


def test_flags_of_directories_with_a_gguf_file(letters_gguf, tmp_path):
    expect_failure(run("convert", letters_gguf, tmp_path / "out", "-q"), 2,
                   "--quantize", "GGUF")


def test_the_output_is_not_the_input(letters, tmp_path):  # noqa: F811
    link = tmp_path / "link"
    link.symlink_to(letters)
    before = sorted(path.name for path in letters.iterdir())
    for out in (letters, link):
        expect_failure(run("convert", letters, out, "-q", "--force"), 2,
                       "the output is the input")
    assert sorted(path.name for path in letters.iterdir()) == before


@pytest.mark.parametrize("limit", [100, 5000, 100000])
def test_full_disk_of_a_directory(letters, tmp_path, limit):  # noqa: F811
    expect_failure(convert_letters(letters, tmp_path, "-q", file_size=limit),
                   1, "out")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_output_of_a_directory(letters, tmp_path):  # noqa: F811
    (tmp_path / "out").mkdir()
    (tmp_path / "out/notes.txt").write_text("mine")
    expect_failure(convert_letters(letters, tmp_path, "-q"), 2, "--force")
    assert convert_letters(letters, tmp_path, "-q", "--force").status == 0
    assert (tmp_path / "out/notes.txt").read_text() == "mine"
