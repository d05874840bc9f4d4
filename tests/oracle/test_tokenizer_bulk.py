"""Very many hard texts for each tokenizer: ids, offsets and decoded text as the
official library gives them.
"""

import os

import pytest
import test_tokenizer
import test_tokenizer_parts as parts
from hard_text import HardText
from test_tokenizer import differences

STRINGS = int(os.environ.get("MLXCEL_ORACLE_BULK", "200000"))
BATCH = 10000
# One tokenizer for each normalizer, with every pre-tokenizer and model.
CHOSEN = [combination for i, combination in enumerate(parts.combinations())
          if i % (len(parts.PRE_TOKENIZERS) + 1) == 0]


def compare(case):
    for batch in range(0, STRINGS, BATCH):
        source = HardText(f"bulk {batch}", case.source.added)
        texts = [source.text() for _ in range(min(BATCH, STRINGS - batch))]
        encodings = [parts.official_answer(case.official.encode(text))
                     for text in texts]
        answers = [parts.our_answer(answer, encodings[0])
                   for answer in case.probe([{"text": t} for t in texts])]
        assert differences(texts, encodings, answers) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", test_tokenizer.VARIANTS)
def test_families(name, tmp_path):
    if name == "unigram-no-unk":
        pytest.skip("encodes hardly any text")
    compare(test_tokenizer.Case(name, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("combination", CHOSEN, ids="_".join)
def test_parts(combination, tmp_path):
    if "unigram-no-unk" in combination:
        combination = tuple("unigram" if part == "unigram-no-unk" else part
                            for part in combination)
    compare(parts.Case(tmp_path, *combination))
