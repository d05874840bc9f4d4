"""mixed_text.py OUT: 10 MB of this tree's code and documents, in random order
with made-up prose of many languages, emoji and control characters."""

import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "oracle"))

from hard_text import HardText  # noqa: E402: in another folder

SIZE = 10_000_000
PIECE = 4000


def main():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True,
                           capture_output=True).stdout.decode().split("\0")
    kept = [ROOT / name for name in names
            if name.endswith((".cpp", ".h", ".py", ".md"))]
    texts = [path.read_text(encoding="utf-8") for path in kept]
    source = HardText(1)
    texts += ["\n".join(source.text() for _ in range(50)) for _ in range(600)]
    pieces = [text[i:i + PIECE] for text in texts
              for i in range(0, len(text), PIECE)]
    order = random.Random(1)
    out = bytearray()
    while len(out) < SIZE:
        order.shuffle(pieces)
        out += "\n".join(pieces).encode()
    text = bytes(out[:SIZE]).decode(errors="ignore")
    Path(sys.argv[1]).write_bytes(text.encode())


if __name__ == "__main__":
    main()
