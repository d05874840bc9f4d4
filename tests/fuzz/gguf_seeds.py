"""Seeds: small GGUF files with a tensor of each type and each tokenizer."""

import struct
import sys
from pathlib import Path

UINT8, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 0, 4, 5, 6, 7, 8, 9
TYPES = (0, 1, 2, 3, 6, 7, 8, 12, 13, 14, 30)


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def array(key, kind, values):
    return text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + b"".join(
        values)


def tensor(name, kind, shape, offset):
    return (text(name) + struct.pack("<I", len(shape))
            + struct.pack(f"<{len(shape)}Q", *shape)
            + struct.pack("<IQ", kind, offset))


def build(version, pairs, tensors=(), payload=b""):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    body = head + b"".join(pairs) + b"".join(tensors)
    return body + bytes(-len(body) % 32) + payload


def tokenizer(model):
    tokens = ["<unk>", "<s>", "</s>", "a", "b", "ab", "<0x0A>"]
    number = struct.Struct("<i").pack
    return [
        pair("general.architecture", STRING, text("llama")),
        pair("tokenizer.ggml.model", STRING, text(model)),
        pair("tokenizer.ggml.pre", STRING, text("llama-bpe")),
        array("tokenizer.ggml.tokens", STRING, [text(t) for t in tokens]),
        array("tokenizer.ggml.scores", FLOAT32,
              [struct.pack("<f", -i) for i in range(len(tokens))]),
        array("tokenizer.ggml.token_type", INT32,
              [number(k) for k in (2, 3, 3, 1, 1, 1, 6)]),
        array("tokenizer.ggml.merges", STRING, [text("a b")]),
        array("tokenizer.ggml.precompiled_charsmap", UINT8, [bytes([0])] * 9),
        pair("tokenizer.ggml.bos_token_id", UINT32, struct.pack("<I", 1)),
        pair("tokenizer.ggml.add_bos_token", BOOL, b"\1")]


def seeds():
    for model in ("gpt2", "llama", "gemma4", "bert", "t5"):
        yield build(3, tokenizer(model))
    tensors = [tensor(f"t{kind}", kind, (256, 1), 2048 * i)
               for i, kind in enumerate(TYPES)]
    for version in (2, 3):
        yield build(version, tokenizer("llama"), tensors,
                    bytes(2048 * len(tensors)))
    yield build(1, [])
    yield b"GGUF"


def main():
    for i, seed in enumerate(seeds()):
        Path(sys.argv[1], f"seed-{i}").write_bytes(seed)


if __name__ == "__main__":
    main()
