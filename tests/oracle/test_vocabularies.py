"""Real vocabularies in GGUF files: converted, they give the ids that their
official tokenizers gave (fetch_published_files.sh).
"""

import os
import subprocess
import unicodedata
from pathlib import Path

import gguf
import pytest
import sentencepiece
from hard_text import HardText
from sentencepiece import sentencepiece_model_pb2
from test_tokenizer import differences
from tokenize_oracle import BUILD, PEERS, probe
from tokenizers import Tokenizer

FOLDER = PEERS / "vocabularies-0.3.36"
STRINGS = int(os.environ.get("MLXCEL_ORACLE_BULK", "200000"))
BATCH = 10000
MARK = "\n__ggml_vocab_test__\n"

# Why a vocabulary can't be converted.
REFUSED = {
    "aquila": "tokenizer.ggml.pre: missing",
    "gpt-neox": "tokenizer.ggml.pre: missing",
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


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CHECKED, "nomic-bert-moe", "baichuan"])
def test_very_many_texts(folder, name, tmp_path):
    """Ids and decoded text as the tokenizers library has them."""
    result = convert(folder / f"ggml-vocab-{name}.gguf", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    written = Tokenizer.from_file(str(tmp_path / "out/tokenizer.json"))
    added = [t.content for t in written.get_added_tokens_decoder().values()]
    for batch in range(0, STRINGS, BATCH):
        source = HardText(f"{name} {batch}", [*added[:30], *added[-30:]])
        texts = [source.text() for _ in range(BATCH)]
        ids = [e.ids for e in written.encode_batch_fast(texts)]
        assert differences(texts, ids, probe(tmp_path / "out", texts)) == []
        for skip in (False, True):
            decoded = written.decode_batch(ids, skip_special_tokens=skip)
            actual = probe(tmp_path / "out", ids, *["--skip-special"] * skip)
            assert differences(ids, decoded, actual) == []


def sentencepiece_of(file):
    """The sentencepiece model that a GGUF file of kind t5 was made from."""
    fields = gguf.GGUFReader(file).fields
    field = {name.removeprefix("tokenizer.ggml."): value
             for name, value in fields.items()}
    model = sentencepiece_model_pb2.ModelProto()
    kinds = model.SentencePiece
    for text, score, kind in zip(field["tokens"].contents(),
                                 field["scores"].contents(),
                                 field["token_type"].contents()):
        # The names of what is added to a text are tokens in it as well.
        kind = kinds.USER_DEFINED if kind == kinds.CONTROL else kind
        model.pieces.add(piece=text, score=score, type=kind)
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.unk_id = field["unknown_token_id"].contents()
    for name in ("bos", "eos", "pad"):
        setattr(model.trainer_spec, f"{name}_id", -1)
    spec = model.normalizer_spec
    spec.precompiled_charsmap = bytes(field["precompiled_charsmap"].contents())
    spec.add_dummy_prefix = field["add_space_prefix"].contents()
    spec.remove_extra_whitespaces = (
        field["remove_extra_whitespaces"].contents())
    return sentencepiece.SentencePieceProcessor(
        model_proto=model.SerializeToString())


def test_unigram(folder, tmp_path):
    """Against the library and the file that was written."""
    file = folder / "ggml-vocab-nomic-bert-moe.gguf"
    result = convert(file, tmp_path / "out")
    assert result.returncode == 0, result.stderr
    texts = (folder / "ggml-vocab-llama-spm.gguf.inp").read_text().split(MARK)
    source = HardText("unigram")
    texts += [source.text() for _ in range(2000)]
    actual = probe(tmp_path / "out", texts)
    written = Tokenizer.from_file(str(tmp_path / "out/tokenizer.json"))
    assert actual == [e.ids for e in written.encode_batch(texts)]
    assert all(ids[0] == 0 and ids[-1] == 2 for ids in actual)
    # The two libraries read a character map differently where a combining
    # mark follows; ours is the first's.
    official = sentencepiece_of(file)
    same = [
        (t, ids) for t, ids in zip(texts, actual)
        if official.normalize(t).removeprefix("▁") ==
        written.normalizer.normalize_str(t).replace(" ", "▁").strip("▁")]
    assert len(same) > len(texts) / 2
    # Of ways that are equally likely the rounding of a sum decides.
    def likelihood(ids):
        return round(sum(map(official.get_score, ids)), 2)

    wrong = [t for t, ids in same
             if (theirs := official.encode(t)) != ids[1:-1]
             and likelihood(theirs) != likelihood(ids[1:-1])]
    assert wrong == []
    assert written.encode("a", "b").tokens == [
        "<s>", "▁a", "</s>", "</s>", "▁b", "</s>"]


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
    assert names == {*CHECKED, *REFUSED, *UNCHECKED, "nomic-bert-moe"}
