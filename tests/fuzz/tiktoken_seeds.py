"""Seeds: tables of all bytes and some words."""

import base64
import sys
from pathlib import Path


def main():
    words = [bytes([byte]) for byte in range(256)]
    for i, more in enumerate(([], [b"ab", b"abc", b"bc"],
                              ["\u4e2d".encode(), b" a", b"aa", b"aaaa"])):
        lines = [base64.b64encode(word).decode() + f" {rank}\n"
                 for rank, word in enumerate(words + list(more))]
        Path(sys.argv[1], f"seed-{i}").write_text("".join(lines))


if __name__ == "__main__":
    main()
