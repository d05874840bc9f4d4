"""Seeds: small files of every dtype, and one for every item of line 1 of
withstand.md and of the SafeTensors contract; ITEMS says which."""

import json
import struct
import sys
from pathlib import Path

DTYPES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1,
          "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4,
          "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8}


def pack(header, payload=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length
                       ) + text + payload


def entry(dtype="F32", shape=(1,), begin=0, end=4):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def one(payload=4, **fields):
    return pack({"a": entry(**fields)}, bytes(payload))


def two(first, second, payload):
    return pack({name: entry("U8", (end - begin,), begin, end)
                 for name, (begin, end) in [("a", first), ("b", second)]},
                bytes(payload))


def every_dtype():
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, size in DTYPES.items():
        header[name] = entry(name, (2, 1), at, at + 2 * size)
        at += 2 * size
    return pack(header, bytes(at))


WHOLE = two((0, 4), (4, 8), 8)
NAMED = b'{"%s":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'

ITEMS = {
    "every-dtype": every_dtype(),
    "no-tensor": pack({}),
    "length-0": b"",
    "length-1": b"\0",
    "length-7": b"\2\0\0\0\0\0\0",
    "header-of-0": pack(b"", length=0),
    "header-of-2-63": pack(b"{}", length=2 ** 63),
    "header-of-all-ones": pack(b"{}", length=2 ** 64 - 1),
    "header-above-100-mb": pack(b"{}", length=100_000_001),
    "header-above-the-file": pack(b"{}", length=3),
    "not-an-object": pack(b"[]"),
    "space-first": pack(b" {}"),
    "space-padded": pack(b"{}" + b" " * 6),
    "nul-padded": pack(b"{}\0\0"),
    "not-json": pack(b"{nonsense"),
    "deep-lists": pack(b"{" + b"[" * 100_000),
    "deep-objects": pack(b'{"a":' * 20_000),
    "deep-shape": pack(b'{"a":{"shape":' + b"[" * 100_000),
    "name-twice": pack(b'{"a":1,"a":2}   '),
    "name-twice-escaped": pack(
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
        b'"\\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "metadata-key-twice": pack(b'{"__metadata__":{"a":"b","a":"c"}}'),
    "field-twice": pack(
        b'{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "nul-in-name": pack(NAMED % b"a\\u0000", b"x"),
    "raw-nul-in-name": pack(NAMED % b"a\0", b"x"),
    "invalid-utf-8": pack(NAMED % b"a\xff", b"x"),
    "overlong-utf-8": pack(NAMED % b"a\xc0\xaf", b"x"),
    "surrogate": pack(NAMED % b"\\ud800", b"x"),
    "surrogate-pair": pack(NAMED % b"\\ud83d\\ude00", b"x"),
    "dim-2-32": one(shape=(2 ** 32,)),
    "dim-negative": one(shape=(-1,)),
    "dim-fraction": pack(
        b'{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}', b"x"),
    "dim-beyond-64-bits": one(shape=(2 ** 64,)),
    "dims-10-4": one(shape=[1] * 10_000),
    "product-overflow": one(shape=(2 ** 32, 2 ** 32)),
    "product-wraps": one(shape=(2 ** 62 + 1,)),
    "overflow-beside-zero": one(shape=(2 ** 32, 2 ** 32, 0), end=0, payload=0),
    "offsets-reversed": one(begin=4, end=0),
    "offsets-overlap": two((0, 4), (2, 6), 6),
    "offsets-equal": two((0, 4), (0, 4), 4),
    "hole": two((0, 4), (5, 8), 8),
    "hole-first": one(begin=4, end=8, payload=8),
    "past-the-end": one(end=8, shape=(2,)),
    "bytes-left": one(payload=5),
    "offsets-wrap": one(begin=2 ** 64 - 4, end=0),
    "end-wraps": one(begin=2 ** 64 - 5, end=2 ** 64 - 1),
    "dtype-unknown": one(dtype="F31"),
    "dtype-sub-byte": one(dtype="F4", shape=(2,), end=1, payload=1),
    "dtype-sub-byte-split": one(dtype="F4", end=1, payload=1),
    "dtype-number": one(dtype=1),
    "metadata-number": pack({"__metadata__": {"a": 1}}),
    "metadata-list": pack({"__metadata__": []}),
    "metadata-null": pack({"__metadata__": None}),
    "truncated-in-a-tensor": WHOLE[:-3],
    "truncated-in-the-header": WHOLE[:40],
    "zero-size-and-rank-0": pack(
        {"a": entry(shape=(), end=4), "b": entry(shape=(0, 7), begin=4)},
        bytes(4)),
    "nan-and-infinity": pack({"a": entry(shape=(2,), end=8)},
                             struct.pack("<2f", float("nan"), float("inf"))),
    "entry-null": pack({"a": None}),
    "entry-list": pack({"a": ["U8", [1], [0, 1]]}, b"x"),
    "git-lfs-pointer": b"version https://git-lfs.github.com/spec/v1\nsize 4\n",
}


def main():
    for name, seed in ITEMS.items():
        Path(sys.argv[1], name).write_bytes(seed)


if __name__ == "__main__":
    main()
