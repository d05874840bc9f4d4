"""Seeds: indexes as they are published, and as they must not be."""

import json
import sys
from pathlib import Path

SEEDS = [
    {"metadata": {"total_size": 0}, "weight_map": {"a": "model.safetensors"}},
    {"weight_map": {"a": "model.safetensors", "b": "gone.safetensors"}},
    {"weight_map": {"a": "gone.safetensors"}},
    {"weight_map": {"a": "../model.safetensors"}},
    {"weight_map": {"a": "/model.safetensors"}},
    {"weight_map": {"a": "x\0.safetensors"}},
    {"weight_map": {"a": 3}},
    {"weight_map": {}},
    {"weight_map": []},
    {},
    [],
]


def main():
    for i, seed in enumerate(SEEDS):
        Path(sys.argv[1], f"seed-{i}").write_text(json.dumps(seed))
    Path(sys.argv[1], "deep").write_text("[" * 1000)
    Path(sys.argv[1], "twice").write_text(
        '{"weight_map": {"a": "model.safetensors", "a": "b.safetensors"}}')


if __name__ == "__main__":
    main()
