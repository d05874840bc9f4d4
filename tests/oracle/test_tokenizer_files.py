"""Tokenizer files beside tokenizer.json against the official libraries:
trained on the spot, over hard random text. Ids and decoded text must be equal.
"""

import base64
import json
import os
import subprocess
import unicodedata
from pathlib import Path

import pytest
import tiktoken
from hard_text import HardText
from test_tokenizer import byte_level, differences, split
from transformers import AutoTokenizer

BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", "build/release"))
PROBE = BUILD / "tokenize_probe"
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


def probe(folder, lines, *options):
    """Texts to ids, or lists of ids to text."""
    result = subprocess.run(
        [PROBE, folder, *options], capture_output=True, check=True,
        input="".join(json.dumps(line) + "\n" for line in lines).encode())
    return [json.loads(line) for line in result.stdout.splitlines()]


def write_config(folder, **fields):
    (folder / "tokenizer_config.json").write_text(json.dumps(fields))


def hard_texts(seed, added=(), count=STRINGS):
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


def test_qwen2_files(qwen2):
    folder, official, added = qwen2
    texts = hard_texts("qwen2", added)
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


def test_tiktoken(tiktoken_case):
    case = tiktoken_case
    texts = hard_texts("tiktoken", list(case.names)[:20])
    texts = [t for t in texts if not unsettled(t)]
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


def unsettled(text):
    """Characters younger than one of the two Unicode tables."""
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
