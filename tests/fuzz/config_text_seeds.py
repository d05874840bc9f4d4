"""Seeds: every config of tests/detection."""

import sys
from pathlib import Path

CASES = Path(__file__).resolve().parents[1] / "detection"


def main():
    for path in CASES.rglob("*.case"):
        sections = path.read_text().split("\n--- ")
        for section in sections:
            head, _, body = section.partition("\n")
            if head in ("config.json", "bytes config.json"):
                Path(sys.argv[1], path.stem).write_text(body)


if __name__ == "__main__":
    main()
