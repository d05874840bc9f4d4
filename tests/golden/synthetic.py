"""Weights from tensor names: the twin of mlxcel/weights/synthetic.cpp.

tests/golden/README.md defines the generator. Everything here is a pure
function of (name, shape, seed), so an oracle can build the very checkpoint
that `mlxcel synth` writes.
"""

import math

import numpy as np

_MASK = (1 << 64) - 1


def stream_key(name, seed):
    """FNV-1a, 64 bits, over the name and the seed's eight bytes, low first."""
    key = 0xCBF29CE484222325
    for byte in name.encode() + (seed & _MASK).to_bytes(8, "little"):
        key = ((key ^ byte) * 0x100000001B3) & _MASK
    return key


def random_words(key, count):
    """The first `count` outputs of SplitMix64 started at `key`, uint64."""
    z = np.arange(1, count + 1, dtype=np.uint64)
    z = np.uint64(key) + z * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def synthetic_range(name, shape):
    """(centre, scale) of a tensor's values."""
    if len(shape) >= 2:
        inputs = shape[-1]
        if len(shape) > 3 or (len(shape) == 3 and shape[-1] <= 8):
            inputs = math.prod(shape[1:])
        return 0.0, float(np.float32(math.sqrt(3.0 / max(1, inputs))))
    return (0.0, 0.125) if name.endswith(".bias") else (1.0, 0.25)


def synthetic(name, shape, seed=0, value_range=None):
    """The tensor as float32, every value representable in bfloat16."""
    centre, scale = value_range or synthetic_range(name, shape)
    count = math.prod(shape)
    words = random_words(stream_key(name, seed), -(-count // 4))
    lanes = words.astype("<u8").view("<u2")[:count].astype(np.int32)
    u = (lanes - 32768).astype(np.float32) * np.float32(2.0**-15)
    values = np.float32(centre) + np.float32(scale) * u
    bits = values.view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).reshape(shape)
