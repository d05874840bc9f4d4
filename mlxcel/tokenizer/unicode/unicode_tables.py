#!/usr/bin/env python3
"""Writes unicode_tables.cpp: what the `tokenizers` library takes each character
for. Its parts follow different versions of Unicode, so every fact is asked of
the library itself, character by character.

Usage: unicode_tables.py > unicode_tables.cpp (needs the `tokenizers` package
and libutf8proc.so.2; takes two minutes)
"""

import ctypes
import struct
import sys
import unicodedata

from tokenizers import Regex, __version__, normalizers, pre_tokenizers

CATEGORIES = ["Cn", "Cc", "Cf", "Co", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc",
              "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
              "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp"]
SCRIPTS = ["Han", "Hiragana", "Katakana", "Hangul", "Thai", "Latin", "Greek",
           "Cyrillic", "Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil",
           "Lao", "Khmer", "Myanmar", "Tibetan", "Ethiopic", "Georgian",
           "Armenian", "Bopomofo"]
# Bits above the category; the order is that of unicode.h.
(ONIG_WORD, WORD, ALPHABETIC, LOWERCASE, UPPERCASE, NUMERIC, PUNCTUATION, SPACE,
 NFC_SAFE, NFD_SAFE, NFKC_SAFE, NFKD_SAFE, KEEP, CLASS_ZERO) = (
     1 << bit for bit in range(5, 19))
SCRIPT_SHIFT = 20  # five bits
(BERT_REMOVED, BERT_ACCENT, COMBINING, YOUNG_MARK, YOUNG_PREPEND,
 NO_PREPEND) = (1 << bit for bit in range(25, 31))

CODE_POINTS = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
FORMS = {name: getattr(normalizers, name)()
         for name in ("NFC", "NFD", "NFKC", "NFKD")}


def members(pattern):
    """Code points that a one-character pattern matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    text = "".join(map(chr, CODE_POINTS))
    return [ord(c) for piece, _ in split.pre_tokenize_str(text) for c in piece]


class Utf8proc:
    """The library that unicode_normalize.cpp starts from."""
    FLAGS = {"NFC": 2 | 8, "NFD": 2 | 16, "NFKC": 2 | 4 | 8, "NFKD": 2 | 4 | 16}

    def __init__(self):
        self.lib = ctypes.CDLL("libutf8proc.so.2")
        self.free = ctypes.CDLL(None).free

    def normalize(self, text, form):
        data, out = text.encode(), ctypes.c_void_p()
        size = self.lib.utf8proc_map(data, ctypes.c_ssize_t(len(data)),
                                     ctypes.byref(out), self.FLAGS[form])
        result = ctypes.string_at(out, size).decode()
        self.free(out)
        return result


def attributes():
    attrs = dict.fromkeys(CODE_POINTS, 0)

    def mark(code_points, bit):
        for c in code_points:
            attrs[c] |= bit

    for index, name in enumerate(CATEGORIES[1:], 1):
        mark(members(r"\p{%s}" % name), index)
    mark(members(r"\w"), ONIG_WORD)
    mark(members(r"\p{Alpha}"), ALPHABETIC)
    mark(members(r"\p{Lower}"), LOWERCASE)
    mark(members(r"\p{Upper}"), UPPERCASE)
    mark(members(r"\s"), SPACE)
    for index, name in enumerate(SCRIPTS, 1):
        mark(members(r"\p{%s}" % name), index << SCRIPT_SHIFT)
    split_by_character(attrs)
    removed_characters(attrs)
    graphemes(attrs)
    normal_forms(attrs)
    return attrs


def split_by_character(attrs):
    whitespace = pre_tokenizers.Whitespace()
    digits = pre_tokenizers.Digits()
    punctuation = pre_tokenizers.Punctuation()
    spaces = pre_tokenizers.WhitespaceSplit()
    for c in CODE_POINTS:
        text = "a" + chr(c)
        if whitespace.pre_tokenize_str(text)[0][0] == text:
            attrs[c] |= WORD
        if len(digits.pre_tokenize_str(text)) == 2:
            attrs[c] |= NUMERIC
        if len(punctuation.pre_tokenize_str(text)) == 2:
            attrs[c] |= PUNCTUATION
        is_space = spaces.pre_tokenize_str(text)[0][0] == "a"
        assert is_space == bool(attrs[c] & SPACE), hex(c)


def removed_characters(attrs):
    clean = normalizers.BertNormalizer(True, False, False, False)
    bare = normalizers.BertNormalizer(False, False, True, False)
    combining = normalizers.StripAccents()
    for c in CODE_POINTS:
        char = chr(c)
        attrs[c] |= BERT_REMOVED if clean.normalize_str(char) == "" else 0
        attrs[c] |= COMBINING if combining.normalize_str(char) == "" else 0
        if (FORMS["NFD"].normalize_str(char) == char
                and bare.normalize_str(char) == ""):
            attrs[c] |= BERT_ACCENT


def grapheme_counter():
    """Precompiled with a map that makes x of each grapheme of up to 5 bytes:
    of whatever begins with any byte."""
    units = [256 << 10] + [1 << 31] * 1023
    for byte in range(1, 256):
        units[256 ^ byte] = 512 << 10 | 1 << 8 | byte
    blob = struct.pack("<I1024I", 4096, *units) + b"x\0"
    return normalizers.Precompiled(blob)


def graphemes(attrs):
    """Where utf8proc parts characters and the library does not, or the other
    way round."""
    count, utf8proc = grapheme_counter(), Utf8proc()
    for c in CODE_POINTS[1:]:
        def joined(first, second):
            text = chr(first) + chr(second)
            official = count.normalize_str(text) == "x"
            return official, not utf8proc.lib.utf8proc_grapheme_break(
                first, second)

        official, other = joined(0x61, c)
        attrs[c] |= YOUNG_MARK if official and not other else 0
        assert official or not other, hex(c)
        official, other = joined(c, 0x61)
        attrs[c] |= NO_PREPEND if other and not official else 0
        attrs[c] |= YOUNG_PREPEND if official and not other else 0


def written_scripts():
    """(first, number) of runs of characters that UnicodeScripts keeps
    together; 0 goes with any neighbour."""
    scripts = pre_tokenizers.UnicodeScripts()

    def together(text):
        return len(scripts.pre_tokenize_str(text)) == 1

    numbers, runs = [], []
    for c in CODE_POINTS:
        char = chr(c)
        if together("a" + char) and together("\u044f" + char):
            number = 0
        elif runs and runs[-1][1] and together(
                numbers[runs[-1][1] - 1] + char):
            number = runs[-1][1]
        else:
            number = next((i for i, known in enumerate(numbers, 1)
                           if together(known + char)), 0)
            if number == 0:
                numbers.append(char)
                number = len(numbers)
        if not runs or runs[-1][1] != number:
            runs.append((c, number))
    return runs


def normal_forms(attrs):
    """Safe: stays as it is and touches no neighbour. Keep: utf8proc would
    decompose it. Class zero: utf8proc would move it."""
    utf8proc = Utf8proc()
    seconds = set(range(0x1161, 0x1176)) | set(range(0x11a8, 0x11c3))
    for c in CODE_POINTS:
        pair = FORMS["NFD"].normalize_str(chr(c))
        if len(pair) > 1 and FORMS["NFC"].normalize_str(pair) == chr(c):
            seconds.add(ord(pair[-1]))
    for c in CODE_POINTS:
        char = chr(c)
        results = {f: FORMS[f].normalize_str(char) for f in FORMS}
        around = ["a" + mark + char for mark in "\u0301\u0334\u0345\u3099\u094d"
                  ] + ["a" + char + mark for mark in "\u0301\u0334\u0345"]
        starter = all(FORMS["NFD"].normalize_str(text) == (
            "a" + FORMS["NFD"].normalize_str(text[1:2])
            + FORMS["NFD"].normalize_str(text[2:])) for text in around)
        safe = {f: starter and results[f] == char for f in FORMS}
        if safe["NFC"] and c not in seconds:
            attrs[c] |= NFC_SAFE
        if safe["NFKC"] and safe["NFC"] and c not in seconds:
            attrs[c] |= NFKC_SAFE
        attrs[c] |= NFD_SAFE if safe["NFD"] else 0
        attrs[c] |= NFKD_SAFE if safe["NFKD"] else 0
        if results["NFKD"] != utf8proc.normalize(char, "NFKD"):
            assert results["NFKD"] == char, hex(c)
            attrs[c] |= KEEP
        if any(FORMS["NFD"].normalize_str(text)
               != utf8proc.normalize(text, "NFD") for text in around):
            assert starter, hex(c)
            attrs[c] |= CLASS_ZERO


def lowercase_runs():
    """(first, last, step, difference) of characters with one lowercase form;
    U+0130 is the only one with two."""
    lower = normalizers.Lowercase()
    runs = []
    for c in CODE_POINTS:
        result = lower.normalize_str(chr(c))
        if result == chr(c):
            continue
        if len(result) != 1:
            assert c == 0x130 and result == "i\u0307"
            continue
        difference = ord(result) - c
        if runs and runs[-1][3] == difference:
            first, last, step, _ = runs[-1]
            if c - last == step or (first == last and c - last <= 2):
                runs[-1] = (first, c, c - last, difference)
                continue
        runs.append((c, c, 1, difference))
    return runs


def main():
    attrs = attributes()
    out = sys.stdout
    out.write('#include "mlxcel/tokenizer/unicode/unicode.h"\n\n')
    out.write("// Generated by unicode_tables.py from tokenizers %s.\n"
              "// clang-format off\n\n" % __version__)
    out.write("namespace mlxcel::unicode {\n\n")
    out.write("const AttributeRun attribute_runs[] = {\n")
    last, line = None, ""
    for c in range(0x110000):
        value = attrs.get(c, 0)
        if value != last:
            entry = "{0x%x,0x%x}," % (c, value)
            if len(line) + len(entry) > 78:
                out.write(line + "\n")
                line = ""
            line += entry
            last = value
    out.write(line + "\n};\n")
    out.write("const unsigned attribute_run_count =\n"
              "    sizeof(attribute_runs) / sizeof(attribute_runs[0]);\n\n")
    out.write("const LowercaseRun lowercase_runs[] = {\n")
    for run in lowercase_runs():
        out.write("{0x%x,0x%x,%d,%d},\n" % run)
    out.write("};\nconst unsigned lowercase_run_count =\n"
              "    sizeof(lowercase_runs) / sizeof(lowercase_runs[0]);\n\n")
    out.write("const RunTable::Run written_script_runs[] = {\n")
    for run in written_scripts():
        out.write("{0x%x,%d},\n" % run)
    out.write("};\nconst unsigned written_script_run_count = sizeof("
              "written_script_runs)\n"
              "    / sizeof(written_script_runs[0]);\n\n")
    out.write("}  // namespace mlxcel::unicode\n")


if __name__ == "__main__":
    assert unicodedata.unidata_version
    main()
