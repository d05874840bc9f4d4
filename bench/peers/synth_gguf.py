#!/usr/bin/env python3
"""Writes a GGUF with random Q4_0 weights for a config.json.

    synth_gguf.py CONFIG.json OUT.gguf

For measuring llama.cpp where no real weights fit: every matrix, the embedding
included, is Q4_0, which takes the same 4.5 bits per weight as affine 4-bit
with groups of 64. Llama, Qwen2 and Qwen3 configs. The file has no vocabulary,
which llama-bench does not need.
"""

import json
import os
import sys

import gguf
import numpy as np

BLOCK = 32
SCALE = 0.02 / 4.6  # of a nibble, so that weights have a deviation of 0.02


def random_q4_0(rng, rows, columns):
    """[rows, columns / 32 * 18] bytes: per block a float16 scale, 16 bytes."""
    blocks = rows * columns // BLOCK
    data = np.empty((blocks, 18), dtype=np.uint8)
    scales = (SCALE * rng.uniform(0.5, 1.5, blocks)).astype(np.float16)
    data[:, :2] = scales.view(np.uint8).reshape(blocks, 2)
    data[:, 2:] = rng.integers(0, 256, (blocks, 16), dtype=np.uint8)
    return data.reshape(rows, -1)


def matrices(config):
    """Yields (name, rows, columns) of each quantised tensor."""
    hidden = config["hidden_size"]
    heads = config["num_attention_heads"]
    kv_heads = config["num_key_value_heads"]
    head_dim = config.get("head_dim", hidden // heads)
    inner = config["intermediate_size"]
    vocabulary = config["vocab_size"]
    yield "token_embd", vocabulary, hidden
    if not config["tie_word_embeddings"]:
        yield "output", vocabulary, hidden
    for layer in range(config["num_hidden_layers"]):
        block = f"blk.{layer}"
        yield f"{block}.attn_q", heads * head_dim, hidden
        yield f"{block}.attn_k", kv_heads * head_dim, hidden
        yield f"{block}.attn_v", kv_heads * head_dim, hidden
        yield f"{block}.attn_output", hidden, heads * head_dim
        yield f"{block}.ffn_gate", inner, hidden
        yield f"{block}.ffn_up", inner, hidden
        yield f"{block}.ffn_down", hidden, inner


def vectors(config):
    """Yields (name, size, value) of each float32 tensor."""
    hidden = config["hidden_size"]
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim", hidden // heads)
    kv_size = config["num_key_value_heads"] * head_dim
    yield "output_norm.weight", hidden, 1.0
    for layer in range(config["num_hidden_layers"]):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", hidden, 1.0
        yield f"{block}.ffn_norm.weight", hidden, 1.0
        if config["model_type"] == "qwen3":
            yield f"{block}.attn_q_norm.weight", head_dim, 1.0
            yield f"{block}.attn_k_norm.weight", head_dim, 1.0
        if config["model_type"] == "qwen2":
            yield f"{block}.attn_q.bias", heads * head_dim, 0.0
            yield f"{block}.attn_k.bias", kv_size, 0.0
            yield f"{block}.attn_v.bias", kv_size, 0.0


def write(config, path):
    hidden = config["hidden_size"]
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim", hidden // heads)
    writer = gguf.GGUFWriter(path, config["model_type"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(float(config["rope_theta"]))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    rng = np.random.default_rng(0)
    for name, rows, columns in matrices(config):
        writer.add_tensor(f"{name}.weight", random_q4_0(rng, rows, columns),
                          raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    for name, size, value in vectors(config):
        writer.add_tensor(name, np.full(size, value, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    if config["model_type"] not in ("llama", "qwen2", "qwen3"):
        sys.exit(f"{sys.argv[1]}: no GGUF layout for "
                 f"{config['model_type']!r} here")
    write(config, sys.argv[2] + ".part")
    os.replace(sys.argv[2] + ".part", sys.argv[2])


if __name__ == "__main__":
    main()
