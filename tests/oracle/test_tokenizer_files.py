"""Tokenizer files beside tokenizer.json against the official libraries:
trained on the spot, over hard random text. Ids and decoded text must be equal.
"""

import base64
import functools
import io
import json
import os
import re
import unicodedata
from pathlib import Path

import pytest
import sentencepiece as spm
import tiktoken
from hard_text import HardText
from sentencepiece import sentencepiece_model_pb2 as spm_model
from test_tokenizer import byte_level, differences, split
from tokenize_oracle import probe
from tokenizers import (Tokenizer, models, normalizers, pre_tokenizers,
                        trainers)
from transformers import AutoTokenizer

STRINGS = int(os.environ.get("MLXCEL_ORACLE_STRINGS", "1500"))

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# tokenization_kimi.py
KIMI = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+",
    r"\s+(?!\S)", r"\s+"])

NFC = normalizers.NFC()
# How many strings; 200,000 in the slow suite.
COUNTS = pytest.mark.parametrize(
    "count", [STRINGS, pytest.param(200_000, marks=pytest.mark.slow)],
    ids=["", "many"])


def write_config(folder, **fields):
    (folder / "tokenizer_config.json").write_text(json.dumps(fields))


def hard_texts(seed, added=(), count=STRINGS):
    return list(made_texts(seed, tuple(added), count))


@functools.lru_cache(maxsize=2)
def made_texts(seed, added, count):
    source = HardText(seed, added)
    return [source.text() for _ in range(count)]


def added_entry(content, **flags):
    entry = {"content": content, "lstrip": False, "normalized": False,
             "rstrip": False, "single_word": False, "special": False}
    return entry | flags


# Qwen2's vocab.json and merges.txt.

@pytest.fixture(scope="module", params=[False, True], ids=["", "prefix"])
def qwen2(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen2")
    trained = byte_level(split(QWEN2))
    trained.model.save(str(folder))
    vocab = json.loads((folder / "vocab.json").read_text())
    ids = range(len(vocab), len(vocab) + 5)
    names = [("<|endoftext|>", {"special": True}),
             ("<|chat|>", {"special": True}), ("<tool>", {}),
             ("<left>", {"lstrip": True}), ("<é>", {"single_word": True})]
    write_config(
        folder, tokenizer_class="Qwen2Tokenizer", eos_token="<|endoftext|>",
        pad_token="<|endoftext|>", unk_token="<|endoftext|>",
        add_prefix_space=request.param,
        added_tokens_decoder={str(i): added_entry(name, **flags)
                              for i, (name, flags) in zip(ids, names)})
    official = AutoTokenizer.from_pretrained(folder)
    return folder, official, [name for name, _ in names]


@COUNTS
def test_qwen2_files(qwen2, count):
    folder, official, added = qwen2
    texts = hard_texts("qwen2", added, count)
    expected = official(texts, add_special_tokens=True)["input_ids"]
    assert differences(texts, expected, probe(folder, texts)) == []
    for skip in (False, True):
        texts = official.batch_decode(
            expected, skip_special_tokens=skip,
            clean_up_tokenization_spaces=False)
        actual = probe(folder, expected, *["--skip-special"] * skip)
        assert differences(expected, texts, actual) == []


# tiktoken's tables of ranks.

def train_ranks(pattern):
    """Ranks that tiktoken can use: 256 bytes, then merges as trained."""
    trained = byte_level(split(pattern))
    data = json.loads(trained.to_str())["model"]
    alphabet = dict((c, i) for i, c in enumerate(bytes_to_unicode()))
    ranks = {bytes([b]): b for b in range(256)}
    for left, right in data["merges"]:
        token = bytes(alphabet[c] for c in left + right)
        ranks.setdefault(token, len(ranks))
    return ranks


def bytes_to_unicode():
    """The byte-level alphabet, in the order of bytes (GPT-2's encoder.py)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    return [chr(b if b in printable else next(extra)) for b in range(256)]


def write_ranks(path, ranks):
    path.write_text("".join(
        f"{base64.b64encode(token).decode()} {rank}\n"
        for token, rank in ranks.items()))


class Tiktoken:
    """One family: its folder, the official encoding and its names."""

    def __init__(self, family, folder):
        self.folder = folder
        self.nfc = family != "kimi"
        pattern = QWEN2 if self.nfc else KIMI
        ranks = train_ranks(pattern)
        first = len(ranks)
        extras = [f"<|extra_{i}|>" for i in range(205)]
        if family == "kimi":
            named = {first: "[BOS]", first + 1: "[EOS]", first + 9: "<|open|>"}
            names = [named.get(i, f"<|reserved_token_{i}|>")
                     for i in range(first, first + 256)]
            (folder / "config.json").write_text('{"model_type": "kimi_k3"}')
            write_config(folder, added_tokens_decoder={
                str(i): added_entry(name) for i, name in named.items()})
            write_ranks(folder / "tiktoken.model", ranks)
        elif family == "qwen":
            names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *extras,
                     "<ref>", "</ref>", "<box>", "</box>", "<quad>",
                     "</quad>", "<img>", "</img>", "<imgpad>"]
            write_config(folder, auto_map={
                "AutoTokenizer": ["tokenization_qwen.QWenTokenizer", None]})
            write_ranks(folder / "qwen.tiktoken", ranks)
        else:
            names = ["<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>",
                     "<|pad|>", *extras]
            names[7] = "<|other|>"
            write_config(folder, tokenizer_class="HYTokenizer",
                         add_bos_token=True, bos_token="<|bos|>",
                         added_tokens_decoder={
                             str(first + 7): added_entry("<|other|>")})
            write_ranks(folder / "hy.tiktoken", ranks)
        self.names = {name: first + i for i, name in enumerate(names)}
        self.official = tiktoken.Encoding(
            family, pat_str=pattern, mergeable_ranks=ranks,
            special_tokens=self.names)

    def encode(self, text, special=True):
        if self.nfc:
            text = unicodedata.normalize("NFC", text)
        allowed = {"allowed_special": "all"} if special else {}
        return self.official.encode(text, disallowed_special=(), **allowed)


@pytest.fixture(scope="module", params=["kimi", "qwen", "hunyuan"])
def tiktoken_case(request, tmp_path_factory):
    return Tiktoken(request.param, tmp_path_factory.mktemp(request.param))


@COUNTS
def test_tiktoken(tiktoken_case, count):
    case = tiktoken_case
    texts = hard_texts("tiktoken", list(case.names)[:20], count)
    texts = [t for t in texts if not unsettled(t, case.nfc)]
    expected = [case.encode(t) for t in texts]
    assert differences(texts, expected, probe(case.folder, texts)) == []
    plain = [case.encode(t, special=False) for t in texts]
    assert differences(texts, plain,
                       probe(case.folder, texts, "--plain")) == []
    decoded = [case.official.decode(ids) for ids in expected]
    assert differences(expected, decoded, probe(case.folder, expected)) == []
    broken = [ids[1:-1][::2] for ids in expected]
    decoded = [case.official.decode(ids) for ids in broken]
    assert differences(broken, decoded, probe(case.folder, broken)) == []


def unsettled(text, nfc):
    """Characters younger than one of the Unicode tables: of patterns, and of
    NFC, where ours is that of the tokenizers library and not Python's.
    """
    if nfc and NFC.normalize_str(text) != unicodedata.normalize("NFC", text):
        return True
    return any(unicodedata.category(c) == "Cn" for c in text)


def test_kimi_cuts_long_text(tmp_path):
    """tokenization_kimi.py, _encode_text_piece: 400,000 characters at once,
    25,000 in a row that are all spaces or all not."""
    case = Tiktoken("kimi", tmp_path)
    text = "ab" * 20000 + " " * 30000 + "x y" * 150000

    def cut(part, limit):
        run, start = 0, 0
        for i, c in enumerate(part):
            same = i > 0 and part[i - 1].isspace() == c.isspace()
            run = run + 1 if same else 1
            if run > limit:
                yield part[start:i]
                start, run = i, 1
        yield part[start:]

    expected = []
    for i in range(0, len(text), 400_000):
        for part in cut(text[i:i + 400_000], 25_000):
            expected += case.encode(part)
    assert probe(tmp_path, [text])[0] == expected


# Sentencepiece's tokenizer.model.

RULES = """\
0061\t0062
00E9\t0065 0301
0041 0042\t
0058\t0020 0020
1F600\t003A 002D 0029
"""
USER = ["<user>", "\u2581\u2581\u2581", "foo bar", "é!", "ab", "\t"]
SENTENCEPIECE = {
    "bpe": {"model_type": "bpe"},
    "bpe-llama": {"model_type": "bpe", "byte_fallback": True,
                  "normalization_rule_name": "identity",
                  "remove_extra_whitespaces": False,
                  "allow_whitespace_only_pieces": True},
    "bpe-user": {"model_type": "bpe", "byte_fallback": True,
                 "normalization_rule_name": "nfkc",
                 "user_defined_symbols": USER},
    "bpe-cf": {"model_type": "bpe", "normalization_rule_name": "nfkc_cf",
               "add_dummy_prefix": False, "control_symbols": ["<mask>", "e"]},
    "bpe-lines": {"model_type": "bpe", "split_by_whitespace": False,
                  "byte_fallback": True, "user_defined_symbols": USER},
    "bpe-suffix": {"model_type": "bpe", "treat_whitespace_as_suffix": True,
                   "byte_fallback": True},
    "bpe-rules": {"model_type": "bpe", "rules": RULES,
                  "remove_extra_whitespaces": False},
    "bpe-unused": {"model_type": "bpe", "byte_fallback": True, "unused": 7},
    "bpe-unescaped": {"model_type": "bpe", "escape": False},
    "unigram": {"model_type": "unigram"},
    "unigram-t5": {"model_type": "unigram", "user_defined_symbols": USER,
                   "normalization_rule_name": "nmt_nfkc"},
    "unigram-bytes": {"model_type": "unigram", "byte_fallback": True,
                      "normalization_rule_name": "identity",
                      "remove_extra_whitespaces": False},
    "unigram-cf": {"model_type": "unigram", "add_dummy_prefix": False,
                   "normalization_rule_name": "nmt_nfkc_cf"},
    "unigram-suffix": {"model_type": "unigram",
                       "treat_whitespace_as_suffix": True,
                       "remove_extra_whitespaces": False},
    "unigram-rules": {"model_type": "unigram", "rules": RULES,
                      "byte_fallback": True, "split_by_whitespace": False},
    "unigram-unused": {"model_type": "unigram", "unused": 5,
                       "unk_surface": "?"},
    "unigram-large": {"model_type": "unigram", "scale": 300.0},
}


def train_sentencepiece(folder, options):
    options = dict(options)
    rules = options.pop("rules", None)
    unused = options.pop("unused", 0)
    scale = options.pop("scale", 1.0)
    escape = options.pop("escape", True)
    if rules:
        (folder / "rules.tsv").write_text(rules)
        options["normalization_rule_tsv"] = str(folder / "rules.tsv")
    lines = [line for line in HardText(0).corpus(1500)
             if line and "\0" not in line]
    written = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written,
        vocab_size=4000, hard_vocab_limit=False, character_coverage=0.98,
        minloglevel=2, num_threads=1, **options)
    model = spm_model.ModelProto()
    model.ParseFromString(written.getvalue())
    for i, piece in enumerate(model.pieces):
        if piece.type == piece.NORMAL:
            piece.score *= scale
            if unused and i % unused == 0:
                piece.type = piece.UNUSED
    model.normalizer_spec.escape_whitespaces = escape
    (folder / "tokenizer.model").write_bytes(model.SerializeToString())


@pytest.fixture(scope="module", params=SENTENCEPIECE)
def sentencepiece(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentencepiece")
    train_sentencepiece(folder, SENTENCEPIECE[request.param])
    official = spm.SentencePieceProcessor(str(folder / "tokenizer.model"))
    return folder, official


@COUNTS
def test_sentencepiece_encode(sentencepiece, count):
    folder, official = sentencepiece
    texts = hard_texts("encode", [*USER, "<s>"], count)
    expected = official.encode(texts)
    assert differences(texts, expected, probe(folder, texts)) == []


@COUNTS
def test_sentencepiece_decode(sentencepiece, count):
    folder, official = sentencepiece
    texts = hard_texts("decode", [*USER, "<s>"], count // 4)
    ids = official.encode(texts)
    source = HardText("ids").random
    ids += [[source.randrange(official.piece_size())
             for _ in range(source.randrange(12))] for _ in texts]
    expected = [official.decode(line) for line in ids]
    actual = probe(folder, ids, "--skip-special")
    assert differences(ids, expected, actual) == []
    pieces = probe(folder, ids, "--stream", "--skip-special")
    joined = ["".join(texts) for texts in pieces]
    assert differences(ids, expected, joined) == []


def test_sentencepiece_with_a_configuration(tmp_path):
    """Added tokens cut the text; each part is encoded on its own."""
    train_sentencepiece(tmp_path, SENTENCEPIECE["bpe-llama"])
    path = str(tmp_path / "tokenizer.model")
    official = spm.SentencePieceProcessor(path)
    size = official.piece_size()
    write_config(tmp_path, add_bos_token=True, added_tokens_decoder={
        "1": added_entry("<s>", special=True),
        str(size): added_entry("<|x|>", special=True),
        str(size + 1): added_entry("<tool>")})
    names = {"<s>": 1, "<|x|>": size, "<tool>": size + 1}
    texts = hard_texts("configuration", list(names))
    cut = re.compile("(" + "|".join(map(re.escape, names)) + ")")
    expected = [
        [1] + [i for part in cut.split(text)
               for i in ([names[part]] if part in names
                         else official.encode(part))]
        for text in texts]
    assert differences(texts, expected, probe(tmp_path, texts)) == []
    assert probe(tmp_path, [[size, size + 1]], "--skip-special") == ["<tool>"]

    write_config(tmp_path, add_prefix_space=False)
    model = spm_model.ModelProto()
    model.ParseFromString(Path(path).read_bytes())
    model.normalizer_spec.add_dummy_prefix = False
    official = spm.SentencePieceProcessor(
        model_proto=model.SerializeToString())
    assert differences(texts, official.encode(texts),
                       probe(tmp_path, texts)) == []


# PLaMo's tokenizer.jsonl.

class Plamo:
    """The rules of tokenization_plamo.py, written plainly: the cheapest way
    from the end of the text in whole numbers, of equal ones the longest piece;
    what looks like a special token stands by itself.
    """

    MARKED = re.compile(r"(<\|plamo:[^|\s]{0,64}\|>)")
    UNKNOWN = 10_000_000

    def __init__(self, rows):
        self.bytes = {}
        self.costs = {}
        for i, (text, score, kind) in enumerate(rows):
            if kind == "BYTE":
                self.bytes[int(text[3:5], 16)] = i
            elif round(score * 1e4) > -2 * self.UNKNOWN:
                self.costs[text] = (-round(score * 1e4), i)
        self.longest = max(map(len, self.costs))

    def encode(self, text, runs=None):
        parts = self.MARKED.split(text)
        if runs:
            parts = [p for part in parts for p in self.break_runs(part, runs)]
        return [i for part in parts for i in self.cut(part)]

    @staticmethod
    def break_runs(text, runs):
        mark = "\uee00"
        return re.sub(runs, mark + r"\1" + mark, text).split(mark)

    def cut(self, text):
        best = [(0, 0, -1)] * (len(text) + 1)
        for i in reversed(range(len(text))):
            ways = []
            for size in range(min(self.longest, len(text) - i), 0, -1):
                if text[i:i + size] in self.costs:
                    cost, piece = self.costs[text[i:i + size]]
                    ways.append((best[i + size][0] + cost, size, piece))
            ways.append((best[i + 1][0] + self.UNKNOWN, 1, -1))
            best[i] = min(ways, key=lambda way: way[0])
        ids = []
        i = 0
        while i < len(text):
            _, size, piece = best[i]
            ids += [piece] if piece >= 0 else [
                self.bytes[b] for b in text[i].encode()]
            i += size
        return ids


@pytest.fixture(scope="module")
def plamo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plamo")
    train_sentencepiece(folder, SENTENCEPIECE["unigram-bytes"])
    official = spm.SentencePieceProcessor(str(folder / "tokenizer.model"))
    (folder / "tokenizer.model").unlink()
    rows = [[f"<|plamo:{name}|>", 0.0, kind] for name, kind in (
        ("unk", "UNKNOWN"), ("bos", "CONTROL"), ("eos", "CONTROL"),
        ("pad", "CONTROL"))]
    for i in range(official.piece_size()):
        text = official.id_to_piece(i).replace("\u2581", " ")
        if official.is_byte(i):
            rows.append([text, -100.0, "BYTE"])
        elif not official.is_control(i) and not official.is_unknown(i):
            rows.append([text, round(official.get_score(i), 3), "NORMAL"])
    rows.append(["<|plamo:op|>", 0.0, "CONTROL"])
    (folder / "tokenizer.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows))
    write_config(folder, add_bos_token=True)
    return folder, Plamo(rows)


@COUNTS
def test_plamo(plamo, count):
    folder, official = plamo
    texts = hard_texts("plamo", ["<|plamo:eos|>", "<|plamo:op|>", "<|plamo:",
                                 "<|plamo:x|>", "|>"],
                       count)
    expected = [[1] + official.encode(text) for text in texts]
    assert differences(texts, expected, probe(folder, texts)) == []
    decoded = probe(folder, expected, "--skip-special")
    shown = [text.replace("<|plamo:eos|>", "") for text in texts]
    assert differences(texts, shown, decoded) == []


def test_plamo_breaks_runs(plamo, tmp_path):
    folder, official = plamo
    (tmp_path / "tokenizer.jsonl").write_bytes(
        (folder / "tokenizer.jsonl").read_bytes())
    write_config(tmp_path, break_around_repeated_chars_threshold=4,
                 break_around_consecutive_spaces_threshold=3)
    texts = hard_texts("runs", ["aaaa", "   ", "\n\n\n\n", "    b"])
    texts = [text for text in texts if "\uee00" not in text]
    expected = [official.encode(text, r"((.)\2{3,}| {3,})") for text in texts]
    assert differences(texts, expected, probe(tmp_path, texts)) == []


# BERT's vocab.txt.

BERT = {
    "uncased": {},
    "cased": {"do_lower_case": False},
    "accents": {"strip_accents": False},
    "stripped": {"do_lower_case": False, "strip_accents": True},
    "chinese": {"tokenize_chinese_chars": False},
    "added": {"added_tokens_decoder": {
        "0": added_entry("[PAD]", special=True),
        "5": added_entry("hello", single_word=True, normalized=True)}},
}


@pytest.fixture(scope="module", params=BERT)
def bert(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer()
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trained.train_from_iterator(
        HardText(0).corpus(1500),
        trainers.WordPieceTrainer(
            vocab_size=2500, show_progress=False, limit_alphabet=500,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                            "hello"]))
    trained.model.save(str(folder))
    write_config(folder, tokenizer_class="BertTokenizer",
                 **BERT[request.param])
    return folder, AutoTokenizer.from_pretrained(folder)


@COUNTS
def test_bert_files(bert, count):
    folder, official = bert
    texts = hard_texts(
        "bert", ["[CLS]", "[MASK]", "[UNK]", "hello", "[sep]"], count)
    expected = official(texts)["input_ids"]
    assert differences(texts, expected, probe(folder, texts)) == []
    for skip in (False, True):
        decoded = official.backend_tokenizer.decode_batch(
            expected, skip_special_tokens=skip)
        actual = probe(folder, expected, *["--skip-special"] * skip)
        assert differences(expected, decoded, actual) == []
