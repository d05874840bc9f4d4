"""The tokenizer against the official library: tokenizers trained on the spot,
over hard random text. Ids and decoded text must be equal.
"""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from hard_text import HardText
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, processors, trainers)

BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", "build/release"))
PROBE = BUILD / "tokenize_probe"
STRINGS = int(os.environ.get("MLXCEL_ORACLE_STRINGS", "1500"))

GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
        r"|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN3_5 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
           r"|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BAILING = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}"
           r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
DEEPSEEK = [
    r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"]
MARK = "\u2581"

SPECIALS = [
    AddedToken("<s>", special=True, normalized=False),
    AddedToken("</s>", special=True, normalized=False),
    AddedToken("<|im_start|>", special=True, normalized=False),
    AddedToken("<|left|>", special=True, normalized=False, lstrip=True),
    AddedToken("<|right|>", special=True, normalized=False, rstrip=True),
    AddedToken("<|both|>", special=True, lstrip=True, rstrip=True),
]
ADDED = [
    AddedToken("word", single_word=True),
    AddedToken("worder", single_word=True, normalized=False),
    AddedToken("Hello World", normalized=True),
    AddedToken("\n\n", normalized=False),
    AddedToken("  ", normalized=False),
    AddedToken("<tool é>", normalized=True),
    AddedToken("<tool", normalized=False),
]


def split(*patterns, **options):
    behavior = options.get("behavior", "isolated")
    return [pre_tokenizers.Split(Regex(p), behavior, options.get("invert",
                                                                 False))
            for p in patterns]


def byte_level(steps, prefix=False, regex=False, **options):
    """A byte-level BPE tokenizer behind some pre-tokenizers."""
    tokenizer = Tokenizer(models.BPE(**options.get("model", {})))
    last = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, last])
    tokenizer.decoder = decoders.ByteLevel()
    if "normalizer" in options:
        tokenizer.normalizer = options["normalizer"]
    trainer = trainers.BpeTrainer(
        vocab_size=options.get("size", 2500), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIALS)
    tokenizer.train_from_iterator(HardText(0).corpus(), trainer)
    return tokenizer


def llama2(normalizer, pre_tokenizer, decoder, **options):
    """A character-level BPE tokenizer with byte fallback."""
    model = {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}
    model.update(options.get("model", {}))
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    bytes_ = [f"<0x{b:02X}>" for b in range(options.get("bytes", 256))]
    trainer = trainers.BpeTrainer(
        vocab_size=2500, show_progress=False, limit_alphabet=300,
        special_tokens=["<unk>", *SPECIALS, *bytes_])
    trained = Tokenizer(models.BPE(**model))
    trained.normalizer = normalizer
    # Whole lines would make tokens of several words.
    trained.pre_tokenizer = pre_tokenizer or pre_tokenizers.Split(
        MARK, "merged_with_next")
    trained.train_from_iterator(HardText(0).corpus(), trainer)
    data = json.loads(trained.to_str())
    whole = json.loads(tokenizer.to_str())
    whole["model"] = data["model"]
    whole["added_tokens"] = [t for t in data["added_tokens"]
                             if not t["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(whole))


def unigram(normalizer, pre_tokenizer, decoder, **options):
    """A Unigram tokenizer; `edit` changes its pieces."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.Split(
        MARK, "merged_with_next")
    tokenizer.train_from_iterator(
        HardText(0).corpus(), trainers.UnigramTrainer(
            vocab_size=options.get("size", 8000), show_progress=False,
            special_tokens=["<unk>", *SPECIALS], unk_token="<unk>",
            initial_alphabet=[]))
    tokenizer.pre_tokenizer = pre_tokenizer
    if decoder:
        tokenizer.decoder = decoder
    data = json.loads(tokenizer.to_str())
    model = data["model"]
    alphabet = {c for piece, _ in model["vocab"][300:] for c in piece}
    # The trainer keeps every character; real models don't.
    model["vocab"] = [p for i, p in enumerate(model["vocab"])
                      if i < 300 or len(p[0]) > 1 or ord(p[0]) < 0x250
                      or p[0] == MARK or hash_of(p[0]) % 3]
    model["vocab"] += [[f"<0x{b:02X}>", 0.0]
                       for b in range(options.get("bytes", 0))]
    model["byte_fallback"] = options.get("bytes", 0) > 0
    options.get("edit", lambda model: None)(model)
    assert alphabet
    return Tokenizer.from_str(json.dumps(data))


def hash_of(text):
    return sum(text.encode()) * 2654435761 >> 7


def odd_pieces(model):
    """Unknown runs that are pieces, equal scores, a piece given twice."""
    model["vocab"] += [["丽𝔸", -900.0], ["๙୧", -1000.0], ["aa", -3.0],
                       ["aaa", -4.5], ["a", -1.5], ["a", -2.5], ["", -1.0]]


def no_unk(model):
    model["unk_id"] = None


def sentencepiece_decoder(strip=True):
    steps = [decoders.Replace(MARK, " "), decoders.ByteFallback(),
             decoders.Fuse()]
    return decoders.Sequence(steps + [decoders.Strip(" ", 1, 0)] * strip)


def prepend_replace():
    return normalizers.Sequence(
        [normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])


def with_template(tokenizer, single):
    ids = [(t, tokenizer.token_to_id(t)) for t in ("<s>", "</s>")]
    template = processors.TemplateProcessing(
        single=single, pair=single + " $B", special_tokens=ids)
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=True), template])
    return tokenizer


def build_variants():
    metaspace = pre_tokenizers.Metaspace
    yield "gpt2", lambda: byte_level([], regex=True)
    yield "gpt2-prefix", lambda: byte_level([], regex=True, prefix=True)
    yield "llama3", lambda: with_template(
        byte_level(split(LLAMA3), model={"ignore_merges": True}), "<s> $A")
    yield "qwen2", lambda: byte_level(
        split(QWEN2), normalizer=normalizers.NFC())
    yield "qwen3.5", lambda: byte_level(
        split(QWEN3_5), normalizer=normalizers.NFC())
    yield "o200k", lambda: byte_level(split(O200K))
    yield "bailing", lambda: byte_level(split(BAILING))
    yield "deepseek", lambda: with_template(
        byte_level(split(*DEEPSEEK)), "<s> $A </s>")
    yield "smollm", lambda: byte_level(
        [pre_tokenizers.Digits(individual_digits=True)], regex=True)
    yield "falcon", lambda: falcon()
    yield "clip", clip
    yield "removed-inverted", lambda: byte_level(
        split(r"\p{L}+|\p{N}", behavior="removed", invert=True))
    yield "merged", lambda: byte_level(
        split(r"\s", behavior="merged_with_next")
        + split(r"\p{P}", behavior="merged_with_previous")
        + split(r"\d", behavior="contiguous"))
    yield "nfkc-lower-strip", lambda: byte_level(
        split(GPT2), normalizer=normalizers.Sequence([
            normalizers.NFKC(), normalizers.Lowercase(),
            normalizers.Strip()]))
    yield "nfd-nfkd", lambda: byte_level(
        split(GPT2), normalizer=normalizers.Sequence(
            [normalizers.NFD(), normalizers.Replace(Regex(r" {2,}"), " ")]))
    yield "nfkd", lambda: byte_level(
        split(GPT2), normalizer=normalizers.NFKD())
    yield "llama2", lambda: with_template(
        llama2(prepend_replace(), None, sentencepiece_decoder()), "<s> $A")
    yield "gemma", lambda: llama2(
        normalizers.Replace(" ", MARK),
        pre_tokenizers.Split(" ", "merged_with_previous"),
        sentencepiece_decoder(strip=False))
    yield "metaspace-first", lambda: llama2(
        None, metaspace(prepend_scheme="first", split=False),
        sentencepiece_decoder())
    yield "metaspace-first-normalized", lambda: llama2(
        normalizers.Sequence([
            normalizers.Replace(Regex("^ +"), " "), normalizers.NFKC(),
            normalizers.Strip(left=True, right=False)]),
        metaspace(prepend_scheme="first"), decoders.Metaspace())
    yield "metaspace-always", lambda: llama2(
        normalizers.NFKC(), metaspace(prepend_scheme="always"),
        decoders.Metaspace())
    yield "metaspace-never", lambda: llama2(
        None, metaspace(prepend_scheme="never"),
        decoders.Metaspace(prepend_scheme="never"))
    yield "few-bytes", lambda: llama2(
        prepend_replace(), None, sentencepiece_decoder(), bytes=0xd0)
    yield "unfused-unk", lambda: llama2(
        prepend_replace(), None, sentencepiece_decoder(),
        model={"byte_fallback": False, "fuse_unk": False})
    yield "fused-unk", lambda: llama2(
        None, pre_tokenizers.Whitespace(), None,
        model={"byte_fallback": False})
    yield "no-unk", lambda: llama2(
        None, pre_tokenizers.Sequence([
            pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]),
        decoders.Fuse(), model={"byte_fallback": False, "unk_token": None})


def unigram_variants():
    metaspace = pre_tokenizers.Metaspace
    yield "unigram-t5", lambda: with_template(
        unigram(None, metaspace(), decoders.Metaspace()), "$A </s>")
    yield "unigram-whole", lambda: unigram(
        prepend_replace(), None, sentencepiece_decoder())
    yield "unigram-bytes", lambda: unigram(
        normalizers.NFKC(), metaspace(prepend_scheme="first"),
        sentencepiece_decoder(), bytes=256)
    yield "unigram-few-bytes", lambda: unigram(
        None, metaspace(split=False), sentencepiece_decoder(), bytes=0xd0)
    yield "unigram-odd", lambda: unigram(
        None, metaspace(), decoders.Metaspace(), edit=odd_pieces)
    yield "unigram-no-unk", lambda: unigram(
        None, metaspace(), decoders.Metaspace(), edit=no_unk)
    yield "unigram-byte-level", lambda: unigram(
        None, pre_tokenizers.ByteLevel(), decoders.ByteLevel(), size=900)


def falcon():
    steps = [pre_tokenizers.Punctuation("contiguous"),
             pre_tokenizers.ByteLevel(add_prefix_space=False),
             pre_tokenizers.Digits(individual_digits=False),
             *split("[0-9][0-9][0-9]")]
    tokenizer = byte_level([], regex=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    return tokenizer


def clip():
    """Prefix and suffix of sub-words over byte-level pieces."""
    tokenizer = Tokenizer(models.BPE(
        continuing_subword_prefix="##", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        split(GPT2, behavior="removed", invert=True)
        + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(HardText(0).corpus(), trainers.BpeTrainer(
        vocab_size=2500, show_progress=False, special_tokens=SPECIALS,
        continuing_subword_prefix="##", end_of_word_suffix="</w>",
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


VARIANTS = {**dict(build_variants()), **dict(unigram_variants())}


class Case:
    """A trained tokenizer, its file, and hard text for it."""

    def __init__(self, name, folder):
        self.official = VARIANTS[name]()
        self.official.add_tokens(ADDED)
        self.file = folder / "tokenizer.json"
        self.file.write_text(self.official.to_str())
        added = [t.content
                 for t in self.official.get_added_tokens_decoder().values()]
        self.source = HardText(name, added)
        self.texts = [self.source.text() for _ in range(STRINGS)]

    def probe(self, lines, *options):
        result = subprocess.run(
            [PROBE, self.file, *options], capture_output=True, check=True,
            input="".join(json.dumps(line) + "\n" for line in lines).encode())
        return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module", params=VARIANTS)
def case(request, tmp_path_factory):
    return Case(request.param, tmp_path_factory.mktemp("tokenizer"))


def differences(inputs, expected, actual):
    assert len(expected) == len(actual)
    return [(i, e, a) for i, e, a in zip(inputs, expected, actual)
            if e != a][:3]


def official_ids(case, texts, **options):
    """Ids of each text, None for an error."""
    try:
        return [e.ids for e in case.official.encode_batch(texts, **options)]
    except Exception:
        if len(texts) == 1:
            return [None]
    return [ids for text in texts
            for ids in official_ids(case, [text], **options)]


def our_ids(case, texts, *options):
    return [None if isinstance(ids, dict) else ids
            for ids in case.probe(texts, *options)]


def test_encode(case):
    expected = official_ids(case, case.texts)
    assert differences(case.texts, expected, our_ids(case, case.texts)) == []


def test_encode_without_special_tokens(case):
    texts = case.texts[:300]
    case.official.encode_special_tokens = True
    expected = official_ids(case, texts, add_special_tokens=False)
    case.official.encode_special_tokens = False
    actual = our_ids(case, texts, "--no-special", "--plain")
    assert differences(texts, expected, actual) == []


def decodable(case):
    """Ids of texts, and ids at random. The official decoder is at fault
    where normalization changes an added token."""
    changed = set()
    if case.official.normalizer:
        changed = {
            i for i, t in case.official.get_added_tokens_decoder().items()
            if t.normalized
            and case.official.normalizer.normalize_str(t.content) != t.content}
    ids = [ids for ids in official_ids(case, case.texts) if ids is not None]
    limit = max(case.official.get_vocab().values()) + 3
    for _ in range(STRINGS // 3):
        count = case.source.random.randrange(12)
        ids.append([case.source.random.randrange(limit)
                    for _ in range(count)])
    return [[i for i in line if i not in changed] for line in ids]


def test_decode(case):
    if case.official.decoder is None and "ByteLevel" in str(
            case.official.pre_tokenizer):
        pytest.skip("a missing byte-level decoder is put in")
    lines = decodable(case)
    for skip in (False, True):
        expected = case.official.decode_batch(lines, skip_special_tokens=skip)
        actual = case.probe(lines, *["--skip-special"] * skip)
        assert differences(lines, expected, actual) == []


def test_stream(case):
    lines = decodable(case)[:STRINGS]
    whole = case.probe(lines)
    pieces = case.probe(lines, "--stream")
    joined = ["".join(texts) for texts in pieces]
    assert differences(lines, whole, joined) == []
    # Nothing is ever taken back: pieces hold whole characters by being JSON.
