"""Seeds: small files of every dtype, and the attacks on the format."""

import json
import struct
import sys
from pathlib import Path

DTYPES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2,
          "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4,
          "I64": 8, "U64": 8, "F64": 8}


def pack(header, payload=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length
                       ) + text + payload


def entry(dtype="F32", shape=(1,), begin=0, end=4):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def seeds():
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, size in DTYPES.items():
        header[name] = entry(name, (2, 1), at, at + 2 * size)
        at += 2 * size
    yield pack(header, bytes(at))
    yield pack({})
    yield pack({"a": entry(shape=(), end=4), "b": entry(shape=(0,), begin=4)},
               bytes(4))
    yield pack({"a": entry(shape=(2 ** 32, 2 ** 32))}, bytes(4))
    yield pack({"a": entry(shape=(-1,))}, bytes(4))
    yield pack({"a": entry(), "b": entry()}, bytes(4))
    yield pack({"a": entry(begin=4, end=8)}, bytes(8))
    yield pack({"a": entry(begin=4, end=0)}, bytes(4))
    yield pack(b'{"a":1,"a":2}   ')
    yield pack(b"[" * 1000)
    yield pack(b"{}", length=2 ** 63)
    yield pack({"__metadata__": {"a": 1}})
    yield b"\0"


def main():
    for i, seed in enumerate(seeds()):
        Path(sys.argv[1], f"seed-{i}").write_bytes(seed)


if __name__ == "__main__":
    main()
