"""Every part of a tokenizer.json file against the official library: models of
all kinds behind each normalizer and each pre-tokenizer, before each decoder.

MLXCEL_ORACLE_STRINGS sets how many strings a combination gets.
"""

import base64
import io
import json
import os
import subprocess

import pytest
import sentencepiece
from hard_text import HardText
from test_tokenizer import (ADDED, LLAMA3, MARK, PROBE, SPECIALS, differences,
                            no_unk, odd_pieces)
from tokenizers import (Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

STRINGS = int(os.environ.get("MLXCEL_ORACLE_STRINGS", "40"))
CORPUS = HardText(0).corpus(1500)


def sentencepiece_map(rule):
    """The character map that sentencepiece has for a rule."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e f g h"] * 9), model_writer=model,
        vocab_size=12, hard_vocab_limit=False, normalization_rule_name=rule, minloglevel=9)
    data = model.getvalue()
    # Field 3 (normalizer_spec), in it field 2 (precompiled_charsmap).
    return field(field(data, 3), 2)


def field(data, wanted):
    """The bytes of a field of a protocol buffer message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 2:
            size = varint()
            if key >> 3 == wanted:
                return data[at:at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            at += {1: 8, 5: 4}[key & 7]
    raise KeyError(wanted)


def precompiled(rule):
    return normalizers.Precompiled(sentencepiece_map(rule))


NORMALIZERS = {
    "none": lambda: None,
    "bert": lambda: normalizers.BertNormalizer(),
    "bert-cased": lambda: normalizers.BertNormalizer(lowercase=False),
    "bert-accents": lambda: normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, strip_accents=True,
        lowercase=False),
    "nfd-strip-accents": lambda: normalizers.Sequence(
        [normalizers.NFD(), normalizers.StripAccents()]),
    "nmt": normalizers.Nmt,
    "nmt-nfkc": lambda: precompiled("nmt_nfkc"),
    "nfkc-cf": lambda: normalizers.Sequence([
        precompiled("nfkc_cf"), normalizers.Replace(Regex(" {2,}"), " ")]),
    "byte-level": normalizers.ByteLevel,
    "nfkd-lower": lambda: normalizers.Sequence(
        [normalizers.NFKD(), normalizers.Lowercase()]),
    "nfc-prepend": lambda: normalizers.Sequence([
        normalizers.NFC(), normalizers.Prepend("x\u00e9")]),
    "replace-strip": lambda: normalizers.Sequence([
        normalizers.Replace("e", ""), normalizers.Replace(Regex("^."), "yy"),
        normalizers.Strip()]),
}
PRE_TOKENIZERS = {
    "none": lambda: None,
    "bert": pre_tokenizers.BertPreTokenizer,
    "delimiter": lambda: pre_tokenizers.CharDelimiterSplit("e"),
    "delimiter-wide": lambda: pre_tokenizers.CharDelimiterSplit("\u3000"),
    "scripts": pre_tokenizers.UnicodeScripts,
    "scripts-metaspace": lambda: pre_tokenizers.Sequence([
        pre_tokenizers.UnicodeScripts(), pre_tokenizers.Metaspace()]),
    "fixed-length": lambda: pre_tokenizers.FixedLength(3),
    "metaspace-first": lambda: pre_tokenizers.Metaspace(
        prepend_scheme="first"),
    "byte-level": lambda: pre_tokenizers.ByteLevel(),
    "byte-level-twice": lambda: pre_tokenizers.Sequence([
        pre_tokenizers.ByteLevel(use_regex=False),
        pre_tokenizers.Digits(True)]),
    "llama3": lambda: pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
    "whitespace": lambda: pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits()]),
    "punctuation": lambda: pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.Punctuation("merged_with_previous")]),
}
DECODERS = {
    "none": lambda: None,
    "word-piece": lambda: decoders.WordPiece(),
    "word-piece-plain": lambda: decoders.WordPiece("e", cleanup=False),
    "ctc": lambda: decoders.CTC("e", " ", True),
    "ctc-plain": lambda: decoders.CTC("<s>", "|", False),
    "bpe": lambda: decoders.BPEDecoder("e"),
    "bpe-fuse": lambda: decoders.Sequence(
        [decoders.BPEDecoder(), decoders.Fuse(), decoders.Strip("e", 1, 1)]),
    "fuse-bpe": lambda: decoders.Sequence(
        [decoders.Fuse(), decoders.BPEDecoder("e"), decoders.WordPiece("a")]),
    "fuse-ctc": lambda: decoders.Sequence(
        [decoders.Fuse(), decoders.CTC("<s>", "e", True)]),
    "ctc-byte-level": lambda: decoders.Sequence(
        [decoders.CTC("e", "|", True), decoders.ByteLevel()]),
    "metaspace": lambda: decoders.Metaspace(prepend_scheme="first"),
    "byte-level": decoders.ByteLevel,
}
POST_PROCESSORS = {
    "none": lambda: None,
    "bert": lambda: processors.BertProcessing(("</s>", 2), ("<s>", 1)),
    "roberta": lambda: processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 1), trim_offsets=True, add_prefix_space=True),
    "roberta-plain": lambda: processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 1), trim_offsets=True, add_prefix_space=False),
    "template": lambda: processors.TemplateProcessing(
        single="<s> $A </s> $A", pair="<s> $B:1 </s> $A <s>",
        special_tokens=[("<s>", 1), ("</s>", 2)]),
    "byte-level": lambda: processors.ByteLevel(
        trim_offsets=True, add_prefix_space=False),
    "byte-level-template": lambda: processors.Sequence([
        processors.ByteLevel(trim_offsets=True, add_prefix_space=True),
        processors.TemplateProcessing(
            single="<s> $A", pair="$A </s> $B", special_tokens=[
                ("<s>", 1), ("</s>", 2)])]),
    "bert-template": lambda: processors.Sequence([
        processors.BertProcessing(("</s>", 2), ("<s>", 1)),
        processors.ByteLevel(trim_offsets=True)]),
}


def trained(model, trainer, pre_tokenizer):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(CORPUS, trainer)
    return json.loads(tokenizer.to_str())


def special(**options):
    return {"show_progress": False, "special_tokens": ["<unk>", *SPECIALS],
            **options}


def bpe():
    return trained(
        models.BPE(unk_token="<unk>", fuse_unk=True),
        trainers.BpeTrainer(vocab_size=2000, limit_alphabet=250, **special()),
        pre_tokenizers.Whitespace())


def bpe_bytes():
    data = trained(
        models.BPE(), trainers.BpeTrainer(
            vocab_size=2000, limit_alphabet=250, **special()),
        pre_tokenizers.Metaspace())
    data["model"]["byte_fallback"] = True
    vocab = data["model"]["vocab"]
    for byte in range(256):
        vocab.setdefault(f"<0x{byte:02X}>", len(vocab))
    return data


def bpe_decorated():
    options = {"continuing_subword_prefix": "##",
               "end_of_word_suffix": "</w>"}
    data = trained(
        models.BPE(unk_token="<unk>", **options), trainers.BpeTrainer(
            vocab_size=2500, limit_alphabet=250, **options, **special()),
        pre_tokenizers.Whitespace())
    # The older spelling of merges.
    model = data["model"]
    model["merges"] = [" ".join(merge) for merge in model["merges"]]
    return data


def word_piece(limit=9):
    data = trained(
        models.WordPiece(unk_token="<unk>"), trainers.WordPieceTrainer(
            vocab_size=2500, limit_alphabet=250, **special()),
        pre_tokenizers.BertPreTokenizer())
    data["model"]["max_input_chars_per_word"] = limit
    return data


def word_level():
    return trained(
        models.WordLevel(unk_token="<unk>"),
        trainers.WordLevelTrainer(vocab_size=1500, **special()),
        pre_tokenizers.Whitespace())


def unigram(edit):
    data = trained(
        models.Unigram(), trainers.UnigramTrainer(
            vocab_size=6000, unk_token="<unk>", **special()),
        pre_tokenizers.Metaspace())
    edit(data["model"])
    return data


MODELS = {
    "bpe": bpe, "bpe-bytes": bpe_bytes, "bpe-decorated": bpe_decorated,
    "word-piece": word_piece, "word-level": word_level,
    "unigram": lambda: unigram(odd_pieces),
    "unigram-no-unk": lambda: unigram(no_unk),
}
for name, make in list(MODELS.items()):
    MODELS[name] = [make, None]


def model_of(name):
    make, data = MODELS[name]
    if data is None:
        data = MODELS[name][1] = make()
    return data


def combinations():
    """Each normalizer with each pre-tokenizer; the rest takes turns."""
    count = 0
    for normalizer in NORMALIZERS:
        for pre_tokenizer in PRE_TOKENIZERS:
            yield (normalizer, pre_tokenizer, list(MODELS)[count % len(MODELS)],
                   list(DECODERS)[count % len(DECODERS)],
                   list(POST_PROCESSORS)[count % len(POST_PROCESSORS)])
            count += 1


class Case:
    """A tokenizer of given parts, its file, and hard text for it."""

    def __init__(self, folder, normalizer, pre_tokenizer, model, decoder,
                 post_processor):
        tokenizer = Tokenizer.from_str(json.dumps(model_of(model)))
        for part, made in (
                ("normalizer", NORMALIZERS[normalizer]()),
                ("pre_tokenizer", PRE_TOKENIZERS[pre_tokenizer]()),
                ("decoder", DECODERS[decoder]()),
                ("post_processor", POST_PROCESSORS[post_processor]())):
            setattr(tokenizer, part, made)
        tokenizer.add_tokens(ADDED)
        self.official = tokenizer
        self.file = folder / "tokenizer.json"
        self.file.write_text(tokenizer.to_str())
        self.added = tokenizer.get_added_tokens_decoder()
        self.source = HardText(
            f"{normalizer} {pre_tokenizer} {model}",
            [token.content for token in self.added.values()])
        self.texts = [self.source.text() for _ in range(STRINGS)]

    def probe(self, lines, *options):
        result = subprocess.run(
            [PROBE, self.file, *options], capture_output=True, check=True,
            timeout=600,
            input="".join(json.dumps(line) + "\n" for line in lines).encode())
        return [json.loads(line) for line in result.stdout.splitlines()]

    def encode(self, *inputs, **options):
        """The official encoding, None for an error."""
        try:
            return self.official.encode(*inputs, **options)
        except BaseException as error:
            # A panic of the library is no Exception.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return None

    def decodable(self):
        """Lists of ids at random, without those of added tokens that
        normalization changes: the official decoder is at fault there."""
        normalizer = self.official.normalizer
        changed = {i for i, t in self.added.items()
                   if normalizer and t.normalized
                   and normalizer.normalize_str(t.content) != t.content}
        encodings = [self.encode(text) for text in self.texts]
        lines = [e.ids for e in encodings if e is not None]
        limit = max(self.official.get_vocab().values()) + 3
        draw = self.source.random.randrange
        lines += [[draw(limit) for _ in range(draw(12))]
                  for _ in range(STRINGS // 2)]
        lines = [[i for i in line if i not in changed] for line in lines]
        # The official decoders of BPE fail without tokens.
        return [line for line in lines if self.official.decoder is None
                or any(self.official.id_to_token(i) for i in line)]


@pytest.fixture(scope="module", params=combinations(), ids="_".join)
def case(request, tmp_path_factory):
    return Case(tmp_path_factory.mktemp("tokenizer"), *request.param)


def ours(answers):
    return [None if isinstance(a, dict) and "error" in a else a
            for a in answers]


def test_encode(case):
    expected = [None if e is None else e.ids
                for e in map(case.encode, case.texts)]
    assert differences(case.texts, expected, ours(case.probe(case.texts))) == []


def official_answer(encoding):
    return None if encoding is None else {
        "ids": encoding.ids, "types": encoding.type_ids,
        "characters": [list(pair) for pair in encoding.offsets],
        "attention": encoding.attention_mask}


def our_answer(answer, names):
    return None if "error" in answer else {n: answer[n] for n in names}


def compare_encodings(case, inputs, *options, **changes):
    """With offsets, but without those of pairs: which text they belong to
    is not told."""
    expected, actual = [], []
    answers = case.probe(
        [{"text": i[0], **({"pair": i[1]} if len(i) > 1 else {})}
         for i in inputs], *options)
    for texts, answer in zip(inputs, answers):
        official = official_answer(case.encode(*texts, **changes))
        if official and len(texts) > 1:
            del official["characters"]
        expected.append(official)
        actual.append(our_answer(answer, official or ()))
    assert differences(inputs, expected, actual) == []


def test_offsets(case):
    compare_encodings(case, [(text,) for text in case.texts])
    compare_encodings(case, [(text,) for text in case.texts[:20]],
                      "--no-special", add_special_tokens=False)


def test_pairs(case):
    texts = case.texts[:20]
    pairs = list(zip(texts, reversed(texts)))
    compare_encodings(case, pairs)
    compare_encodings(case, pairs, "--no-special", add_special_tokens=False)


def test_truncation_and_padding(case):
    choose = case.source.random.choice
    texts = case.texts[:15]
    case.official.enable_truncation(
        choose((5, 6, 9)), stride=choose((0, 0, 2)), strategy=choose(
            ("longest_first", "only_first", "only_second")),
        direction=choose(("left", "right")))
    case.official.enable_padding(
        direction=choose(("left", "right")), pad_id=2, pad_type_id=1,
        pad_token="</s>", length=choose((None, 4, 12)),
        pad_to_multiple_of=choose((None, 4)))
    case.file.write_text(case.official.to_str())
    try:
        for inputs in ([(text,) for text in texts],
                       list(zip(texts, reversed(texts)))):
            compare_encodings(case, inputs, "--truncate", "--pad")
    finally:
        case.official.no_truncation()
        case.official.no_padding()
        # The file tells nothing of it by itself.
        assert case.probe(texts) == [
            [] if e is None else e.ids for e in map(case.encode, texts)] or any(
                case.encode(text) is None for text in texts)


def test_decode(case):
    if case.official.decoder is None and "ByteLevel" in str(
            case.official.pre_tokenizer):
        pytest.skip("a missing byte-level decoder is put in")
    lines = case.decodable()
    for skip in (False, True):
        expected = [case.official.decode(line, skip_special_tokens=skip)
                    if not skip or any(
                        i not in case.added or not case.added[i].special
                        for i in line) else "" for line in lines]
        actual = case.probe(lines, *["--skip-special"] * skip)
        assert differences(lines, expected, actual) == []
    whole = case.probe(lines)
    pieces = case.probe(lines, "--stream")
    assert differences(lines, whole, ["".join(p) for p in pieces]) == []
