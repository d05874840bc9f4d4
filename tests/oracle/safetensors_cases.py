"""SafeTensors files, right and wrong, from a seed: whole documents with
something changed in their meaning, in their text or in their bytes."""

import json
import random
import struct

SIZES = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8,
         "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32,
         "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64,
         "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3FNUZ": 8,
         "F8_E5M2FNUZ": 8}  # bits
NAMES = ["w", "", "a.b", "model.layers.0.mlp.weight", "\u00e9\u4e16\U0001f600",
         "with space", "quote\"", "back\\slash", "a/b", "\u200b", "\ufffe",
         "__metadata", "shape", "x" * 300]
CONTROLS = ["tab\t", "nul\0", "del\x7f"]
NUMBERS = ["0", "-0", "0.0", "-0.0", "1.0", "1e0", "1E2", "10e-1", "00", "01",
           "+1", "-1", "1.", ".5", "1_0", "0x1", "null", "true", '"1"', "[]",
           "[1]", "{}", "NaN", "Infinity", "1e999", "4294967295",
           "4294967296", "9223372036854775807", "9223372036854775808",
           "18446744073709551615", "18446744073709551616",
           "18446744073709551617", "1" * 400, " 1", "1 ", "\t1\n", "1\x0b",
           "\xa01"]
SPACES = ["", "", "", " ", "\n", "\t\r ", "  "]
WORDS = ["null", "true", "[]", "{}", '""', '"U8"', "3", '{"a":"b"}',
         '{"a":1}', '{"a":null}', '{"a":"b","a":"c"}', '[["a","b"]]',
         '{"U8":null}', '{"\\u0061":"\\ud83d\\ude00"}', '{"a":"\\ud800"}']
ESCAPES = ["\\u0000", "\\ud800", "\\udc00\\ud800", "\\ud800\\u0041",
           "\\ud83d\\ude00", "\\x41", "\\u00g1", "\\u00E9", "\\u+123",
           "\\u12", "\\/", "\\b\\f\\n\\r\\t", "'", "\x01", "\x1f", "\x7f", "\\"]
LETTERS = b"{}[]\":,0123456789eE+-.\\u \t\n\r\x00\x0b\x80\xc3\xff\xefntf/FUB_"


class Text(str):
    """JSON as it stands."""


class Document:
    """A header whose parts can be wrong: entries are lists of (key, value),
    so that keys can be there twice."""

    def __init__(self, draw):
        self.draw = draw
        self.members = []  # (name, value)
        self.payload = b""
        for name in draw.sample(NAMES, draw.choice([0, 1, 1, 2, 2, 3, 5])):
            self.add(name)
        if draw.random() < 0.3:
            self.members.insert(
                draw.randrange(len(self.members) + 1),
                ("__metadata__", Text(draw.choice(
                    ['{}', '{"format":"pt"}', "null", ' {"a":"b","c":""}']))))
        if draw.random() < 0.3:
            draw.shuffle(self.members)

    def add(self, name):
        draw = self.draw
        dtype = draw.choice([*SIZES][:17] if draw.random() < 0.9
                            else [*SIZES][17:])
        shape = [draw.choice([0, 1, 1, 2, 3, 4, 8])
                 for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 16, 17]))]
        bits = SIZES[dtype]
        for dim in shape:
            bits *= dim
        if bits > 1 << 13:
            shape, bits = [4], 4 * SIZES[dtype]
        begin = len(self.payload)
        self.payload += draw.randbytes((bits + 7) // 8)
        self.members.append((name, [
            ("dtype", dtype), ("shape", shape),
            ("data_offsets", [begin, len(self.payload)])]))

    def entries(self):
        return [value for _, value in self.members if isinstance(value, list)
                and value and isinstance(value[0], tuple)]

    def text(self):
        def put(value):
            if isinstance(value, Text):
                return str(value)
            if isinstance(value, list) and value and \
                    isinstance(value[0], tuple):
                return "{" + ",".join(
                    space() + put(k) + space() + ":" + space() + put(v)
                    for k, v in value) + space() + "}"
            if isinstance(value, list):
                return "[" + ",".join(space() + put(v) for v in value
                                      ) + space() + "]"
            return json.dumps(value, ensure_ascii=ascii_only)

        ascii_only = self.draw.random() < 0.5
        spaced = self.draw.random() < 0.3

        def space():
            return self.draw.choice(SPACES) if spaced else ""

        return put(self.members) if self.members else "{}"


def change_meaning(draw, document):
    """Something that a reader has to notice, or to bear."""
    entries = document.entries()
    kind = draw.randrange(19)
    if not entries:
        if kind < 9:
            document.members.append(("__metadata__", Text(draw.choice(WORDS))))
        else:
            document.payload += b"x" * draw.randrange(3)
        return
    entry = draw.choice(entries)
    fields = {key: i for i, (key, _) in enumerate(entry)}

    def field(key):
        return entry[fields[key]][1] if key in fields else None

    shape, offsets = field("shape"), field("data_offsets")
    if kind == 0 and isinstance(offsets, list) and offsets:
        at = draw.randrange(len(offsets))
        change = draw.choice([-1, 1, 4, 8, 2**32, 2**63, 2**64 - 1, 2**64])
        if isinstance(offsets[at], int):
            offsets[at] += change
    elif kind == 1 and isinstance(offsets, list):
        draw.choice([offsets.reverse, offsets.clear,
                     lambda: offsets.append(draw.randrange(9)),
                     lambda: offsets.__delitem__(slice(1))])()
    elif kind == 2 and isinstance(offsets, list) and offsets:
        offsets[draw.randrange(len(offsets))] = Text(draw.choice(NUMBERS))
    elif kind == 3 and isinstance(shape, list) and shape:
        shape[draw.randrange(len(shape))] = Text(draw.choice(NUMBERS))
    elif kind == 4 and isinstance(shape, list):
        shape.insert(draw.randrange(len(shape) + 1), draw.choice(
            [0, 1, 2, 2**31, 2**32, 2**62 + 1, 2**63, 2**64 - 1]))
    elif kind == 5 and isinstance(shape, list):
        shape.extend([1] * draw.choice([1, 13, 14, 15, 16, 200]))
    elif kind == 6 and isinstance(shape, list):
        shape[:] = draw.choice([shape[::-1], [0, 2**32, 2**33],
                                [2**32, 2**33, 0], [2**61, 0, 16]])
    elif kind == 7 and "dtype" in fields:
        entry[fields["dtype"]] = ("dtype", draw.choice(
            [*SIZES, "F32 ", "f32", "", "F128", "U4", "I4", None, 7,
             Text('{"F32":null}'), Text('"\\u0046\\u0033\\u0032"')]))
    elif kind == 8 and entry:
        del entry[draw.randrange(len(entry))]
        if not entry:
            entry.append(("dtype", "U8"))
    elif kind == 9:
        entry.append(draw.choice(entry) if draw.random() < 0.5 else
                     (draw.choice(["x", "Dtype", "offset", ""]),
                      Text(draw.choice(WORDS))))
    elif kind == 10:
        draw.shuffle(entry)
    elif kind == 11:
        i = draw.randrange(len(document.members))
        document.members[i] = (document.members[i][0],
                               Text(draw.choice(WORDS)))
    elif kind == 12:
        i = draw.randrange(len(document.members))
        document.members.append(draw.choice(
            [document.members[i],
             (document.members[i][0], document.members[-1][1])]))
    elif kind == 13:
        i, other = (draw.randrange(len(document.members)) for _ in range(2))
        document.members[i] = (document.members[other][0],
                               document.members[i][1])
    elif kind == 14:
        i = draw.randrange(len(document.members))
        document.members[i] = (
            draw.choice([*NAMES, *CONTROLS, "__metadata__"]),
            document.members[i][1])
    elif kind == 15:
        document.payload = document.payload[:-draw.randrange(1, 9)]
    elif kind == 16:
        document.payload += draw.randbytes(draw.randrange(1, 9))
    elif kind == 17:
        document.members.insert(0, ("__metadata__", Text(draw.choice(WORDS))))
    else:
        values = [field("dtype"), shape, offsets]
        i = next(i for i, (_, v) in enumerate(document.members) if v is entry)
        document.members[i] = (document.members[i][0], draw.choice(
            [values, Text("[]"), [*values, 1]]))


def shift_tail(draw, document):
    """A hole, an overlap or an alias: extents of the right size in the wrong
    place, and a payload as long as the last of them needs."""
    by = draw.choice([-4, -2, -1, 1, 2, 4])
    offsets = sorted((field for entry in document.entries()
                      for key, field in entry
                      if key == "data_offsets" and len(field) == 2 and
                      all(isinstance(at, int) for at in field)), key=min)
    for pair in offsets[draw.randrange(len(offsets) + 1):]:
        pair[:] = [max(0, at + by) for at in pair]
    size = max((max(pair) for pair in offsets), default=0)
    if size < 1 << 16:
        document.payload = document.payload[:size].ljust(size, b"x")


def change_text(draw, text):
    at = draw.randrange(len(text) + 1)
    kind = draw.randrange(8)
    if kind == 0:
        return text[:at] + draw.choice(["{", "}", "[", "]", ",", ":", '"',
                                        "\\", "//", "/**/"]) + text[at:]
    if kind == 1:
        return text[:at] + text[at + draw.randrange(1, 4):]
    if kind == 2:
        return text + draw.choice([" ", " " * 7, "\n", "\0", ",", "x", "{}",
                                   "\t\r\n "])
    if kind == 3:
        return draw.choice([" ", "\n", "\ufeff", "[", "\0", "x"]) + text
    if kind == 4:
        return text[:at]
    if kind == 5:  # a letter of some name, escaped
        at = text.find('"', at)
        if 0 <= at < len(text) - 1:
            return (text[:at + 1] + f"\\u{ord(text[at + 1]) & 0xffff:04x}" +
                    text[at + 2:])
        return text
    if kind == 6:  # inside a string, as far as can be told
        quotes = [i for i, c in enumerate(text) if c == '"'][1::2] or [at]
        at = draw.choice(quotes)
        return text[:at] + draw.choice(ESCAPES) + text[at:]
    return text.replace(draw.choice(":,[]{}"), draw.choice(
        [" : ", ",,", ";", "\x0b", "\xa0", ""]), draw.choice([1, 2, 99]))


def change_bytes(draw, data):
    data = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(4)
        if kind == 0 and at < len(data):
            data[at] = draw.choice(LETTERS)
        elif kind == 1:
            del data[at:at + draw.randrange(1, 5)]
        elif kind == 2:
            data.insert(at, draw.choice(LETTERS))
        elif at < len(data):
            data[at] ^= 1 << draw.randrange(8)
    return bytes(data)


def lie_about_length(draw, data):
    length = struct.unpack("<Q", data[:8])[0] + draw.choice(
        [-1, 1, -2, 2, 8, 100_000_000, 2**31, 2**32, 2**62])
    return struct.pack("<Q", draw.choice(
        [length, 0, 1, 2, 2**63, 2**64 - 1, 2**64 - 8, 100_000_001]) % 2**64
    ) + data[8:]


def make_case(seed):
    draw = random.Random(seed)
    document = Document(draw)
    style = draw.randrange(10)
    if style >= 1:
        for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
            draw.choice([change_meaning] * 9 + [shift_tail])(draw, document)
    text = document.text()
    if style in (5, 6):
        text = change_text(draw, text)
    raw = text.encode("utf-8", "surrogatepass")
    data = struct.pack("<Q", len(raw)) + raw + document.payload
    if style == 7:
        data = struct.pack("<Q", len(raw)) + change_bytes(draw, data[8:])
    elif style == 8:
        data = lie_about_length(draw, data)
    elif style == 9 and draw.random() < 0.5:
        data = data[:draw.randrange(len(data) + 1)]
    return data
