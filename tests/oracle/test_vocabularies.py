"""Real vocabularies in GGUF files: converted, they give the ids that their
official tokenizers gave (fetch_published_files.sh).
"""

import json
import os
import subprocess
import unicodedata
from pathlib import Path

import pytest
from tokenizers import Tokenizer

BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", "build/release"))
PEERS = Path(os.environ.get("MLXCEL_PEERS_DIR",
                            Path.home() / ".cache/mlxcel-peers"))
FOLDER = PEERS / "vocabularies-0.3.36"
MARK = "\n__ggml_vocab_test__\n"

# Why a vocabulary can't be converted.
REFUSED = {
    "aquila": "tokenizer.ggml.pre: missing",
    "gpt-neox": "tokenizer.ggml.pre: missing",
    "nomic-bert-moe": "\"t5\" is not supported",
}
# Converted, but with nothing to compare.
UNCHECKED = {"baichuan"}


@pytest.fixture(scope="module")
def folder():
    if not FOLDER.is_dir():
        pytest.skip("run tests/oracle/fetch_published_files.sh")
    return FOLDER


def convert(file, target):
    return subprocess.run(
        [BUILD / "mlxcel", "convert", "--tokenizer-only", file, target],
        capture_output=True, text=True, timeout=60)


def probe(folder, lines, *options):
    result = subprocess.run(
        [BUILD / "tokenize_probe", folder, *options], capture_output=True,
        check=True, timeout=60,
        input="".join(json.dumps(line) + "\n" for line in lines).encode())
    return [json.loads(line) for line in result.stdout.splitlines()]


CHECKED = ["bert-bge", "command-r", "deepseek-coder", "deepseek-llm",
           "falcon", "gemma-4", "gpt-2", "llama-bpe", "llama-spm", "mpt",
           "phi-3", "qwen2", "qwen35", "refact", "starcoder"]


@pytest.mark.parametrize("name", CHECKED)
def test_ids(folder, name, tmp_path):
    file = folder / f"ggml-vocab-{name}.gguf"
    result = convert(file, tmp_path / "out")
    assert result.returncode == 0, result.stderr
    texts = Path(f"{file}.inp").read_text().split(MARK)
    lines = Path(f"{file}.out").read_text().split("\n")
    expected = [[int(i) for i in line.split()] for line in lines]
    expected = expected[:len(texts)]
    actual = probe(tmp_path / "out", texts, "--no-special")
    # The tokenizers library reads the file that was written.
    written = Tokenizer.from_file(str(tmp_path / "out/tokenizer.json"))
    official = [e.ids for e in written.encode_batch(
        texts, add_special_tokens=False)]
    assert actual == official
    wrong = [(t, e, a) for t, e, a in zip(texts, expected, actual) if e != a]
    # The file's ids are llama.cpp's own, which doesn't normalize; Qwen3.5's
    # tokenizer does (transformers, tokenization_qwen3_5.py: NFC).
    if name == "qwen35":
        wrong = [w for w in wrong if unicodedata.is_normalized("NFC", w[0])]
    assert wrong == []


@pytest.mark.parametrize("name", REFUSED)
def test_refused(folder, name, tmp_path):
    result = convert(folder / f"ggml-vocab-{name}.gguf", tmp_path / "out")
    assert result.returncode != 0
    assert REFUSED[name] in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", UNCHECKED)
def test_round_trip(folder, name, tmp_path):
    result = convert(folder / f"ggml-vocab-{name}.gguf", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    texts = ["Hello world", "你好，世界 123", "  a\nb\t"]
    ids = probe(tmp_path / "out", texts)
    assert probe(tmp_path / "out", ids, "--skip-special") == texts


def test_nothing_else_is_there(folder):
    """Each vocabulary is checked, or has a reason."""
    names = {p.name.removeprefix("ggml-vocab-").removesuffix(".gguf")
             for p in folder.glob("*.gguf")}
    assert names == {*CHECKED, *REFUSED, *UNCHECKED}
