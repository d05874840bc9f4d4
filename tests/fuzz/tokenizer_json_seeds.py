"""Seeds: small files with each kind of model and each part once."""

import itertools
import json
import sys
from pathlib import Path

PIECES = ["<unk>", "<s>", "a", "b", "ab", "\u2581", "\u2581a", "##b", "e\u0301",
          *(f"<0x{byte:02X}>" for byte in range(256))]
VOCAB = {piece: i for i, piece in enumerate(PIECES)}
BYTES = {chr(256 + i) if i < 33 or i in (127, 160, 173) else chr(i): i
         for i in range(256)}
MODELS = [
    {"type": "BPE", "vocab": VOCAB, "merges": ["a b", "\u2581 a"],
     "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True},
    {"type": "BPE", "vocab": {**BYTES, "ab": 256}, "merges": [["a", "b"]],
     "ignore_merges": True, "dropout": None},
    {"type": "BPE", "vocab": VOCAB, "merges": [],
     "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>"},
    {"type": "Unigram", "vocab": [[piece, -float(i)] for i, piece
                                  in enumerate(PIECES)],
     "unk_id": 0, "byte_fallback": True},
    {"type": "WordPiece", "vocab": VOCAB, "unk_token": "<unk>",
     "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
    {"type": "WordLevel", "vocab": VOCAB, "unk_token": "<unk>"},
]
STRING = {"String": "a"}
REGEX = {"Regex": "\\s+(?!\\S)|[^\\p{L}]+|(?i:'s)"}
NORMALIZERS = [
    None, {"type": "NFKC"}, {"type": "Lowercase"}, {"type": "Nmt"},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
     "strip_accents": None, "lowercase": True},
    {"type": "Replace", "pattern": REGEX, "content": "\u2581"},
    {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"}, {"type": "StripAccents"},
        {"type": "Strip", "strip_left": True, "strip_right": True}]},
    {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="},
    {"type": "ByteLevel"},
]
PRE_TOKENIZERS = [
    None, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
           "use_regex": True},
    {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first",
     "split": True},
    {"type": "Split", "pattern": REGEX, "behavior": "MergedWithNext",
     "invert": True},
    {"type": "Split", "pattern": STRING, "behavior": "Isolated",
     "invert": False},
    {"type": "Sequence", "pretokenizers": [
        {"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Isolated"},
        {"type": "Digits", "individual_digits": True}]},
    {"type": "BertPreTokenizer"}, {"type": "UnicodeScripts"},
    {"type": "CharDelimiterSplit", "delimiter": " "},
    {"type": "WhitespaceSplit"},
]
DECODERS = [
    None, {"type": "ByteLevel"}, {"type": "ByteFallback"},
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|",
     "cleanup": True},
    {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
]
POST_PROCESSORS = [
    None, {"type": "BertProcessing", "sep": ["<s>", 1], "cls": ["<s>", 1]},
    {"type": "RobertaProcessing", "sep": ["<s>", 1], "cls": ["<s>", 1],
     "trim_offsets": True, "add_prefix_space": True},
    {"type": "TemplateProcessing",
     "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}}],
     "pair": [{"Sequence": {"id": "A", "type_id": 0}},
              {"Sequence": {"id": "B", "type_id": 1}}],
     "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
]
ADDED = [
    {"id": 1, "content": "<s>", "single_word": False, "lstrip": True,
     "rstrip": True, "normalized": False, "special": True},
    {"id": 400, "content": "<a>", "single_word": True, "lstrip": False,
     "rstrip": False, "normalized": True, "special": False},
]


def main():
    parts = [NORMALIZERS, PRE_TOKENIZERS, DECODERS, POST_PROCESSORS]
    longest = max(map(len, parts))
    for m, i in itertools.product(range(len(MODELS)), range(longest)):
        normalizer, pre, decoder, post = (part[i % len(part)] for part in parts)
        text = json.dumps({
            "version": "1.0", "truncation": None, "padding": None,
            "added_tokens": ADDED, "normalizer": normalizer,
            "pre_tokenizer": pre, "post_processor": post, "decoder": decoder,
            "model": MODELS[m]}, ensure_ascii=False)
        Path(sys.argv[1], f"seed-{m}-{i}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
