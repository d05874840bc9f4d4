#!/usr/bin/env python3
"""Writes tests/unit/convert/data/gguf_blocks.txt: random blocks of each GGUF
tensor type with the values that the `gguf` package decodes from them.

Each line: type, the blocks' bytes, the float32 values' bytes, both in hex.
"""

from importlib.metadata import version
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

# Where float16 scales lie in a block.
SCALES = {"F32": None, "F16": None, "BF16": None, "Q4_0": [0], "Q4_1": [0, 2],
          "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208]}
# Ordinary, negative, subnormal, zero, large.
VALUES = [0.0123, -0.5, 3e-6, 0.0, 1.75, -400.0]
FLAT = {"F32": np.float32, "F16": np.float16}


def blocks_of(name, random):
    kind = GGMLQuantizationType[name]
    elements, size = GGML_QUANT_SIZES[kind]
    if elements == 1:
        values = (random.standard_normal(16) * 3).astype(np.float32)
        if name == "BF16":
            return values.view(np.uint32) >> 16
        return values.astype(FLAT[name])
    count = 6 if elements == 32 else 2
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for i in range(count):
        for j, at in enumerate(SCALES[name]):
            scale = np.float16(VALUES[(i + 2 * j) % len(VALUES)])
            blocks[i, at:at + 2] = np.frombuffer(scale.tobytes(), np.uint8)
    return blocks


def main():
    out = Path(__file__).parent.parent / "unit/convert/data/gguf_blocks.txt"
    random = np.random.default_rng(20240)
    lines = [f"# gguf {version('gguf')}, tests/oracle/make_gguf_blocks.py"]
    for name in SCALES:
        kind = GGMLQuantizationType[name]
        blocks = blocks_of(name, random)
        if name == "BF16":
            blocks = blocks.astype(np.uint16)
        data = np.frombuffer(blocks.tobytes(), np.uint8)
        source = data.view(FLAT[name]) if name in FLAT else data
        values = dequantize(source, kind).astype(np.float32)
        lines.append(f"{name} {data.tobytes().hex()} {values.tobytes().hex()}")
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
