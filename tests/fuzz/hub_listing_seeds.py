"""Seeds: lists of files as the hub writes them, and as it must not."""

import json
import sys
from pathlib import Path

SEEDS = [
    {"sha": "c" * 40, "siblings": [
        {"rfilename": "config.json", "size": 3, "blobId": "a" * 40},
        {"rfilename": "model.safetensors", "size": 9, "blobId": "b" * 40,
         "lfs": {"sha256": "d" * 64, "size": 9, "pointerSize": 134}},
        {"rfilename": "sub/tokenizer.json"}]},
    {"siblings": [{"rfilename": name} for name in (
        "../config.json", "/config.json", "a/../../b.json", "x\0.json", "",
        "config.json/", "a//b.json", ".hidden.json", "C:\\x.json")]},
    {"siblings": [{"rfilename": "a.json", "size": -1}]},
    {"siblings": [{"rfilename": "a.json"}, {"rfilename": "A.json"},
                  {"rfilename": "a.json/b.json"}]},
    {"sha": 3, "siblings": {}},
    [],
]


def main():
    for i, seed in enumerate(SEEDS):
        Path(sys.argv[1], f"seed-{i}").write_text(json.dumps(seed))


if __name__ == "__main__":
    main()
