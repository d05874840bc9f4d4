"""Seeds: small models of both kinds."""

import itertools
import struct
import sys
from pathlib import Path


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def piece(text, score, kind):
    return block(1, block(1, text.encode()) + varint(1 << 4 | 5)
                 + struct.pack("<f", score) + number(3, kind))


def main():
    pieces = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("<a>", 4), ("x", 5)]
    pieces += [(f"<0x{byte:02X}>", 6) for byte in range(256)]
    pieces += [(text, 1) for text in ("\u2581", "a", "b", "ab", "\u2581ab", "e",
                                      "l", "o", "lo", "\u4e2d")]
    for i, (kind, fallback, prefix, spaces, suffix) in enumerate(
            itertools.product((1, 2), (0, 1), (0, 1), (0, 1), (0, 1))):
        kept = [each for each in pieces if fallback or each[1] != 6]
        data = b"".join(piece(text, -float(place), type_)
                        for place, (text, type_) in enumerate(kept))
        data += block(2, number(3, kind) + number(24, suffix)
                      + number(35, fallback))
        data += block(3, number(3, prefix) + number(4, spaces)
                      + number(5, 1))
        Path(sys.argv[1], f"seed-{i}").write_bytes(data)


if __name__ == "__main__":
    main()
