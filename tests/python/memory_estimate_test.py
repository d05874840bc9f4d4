"""The estimate of `inspect` against the peak resident memory of a run.

`bench` fills the context that `inspect` is asked for and reports the highest
resident size of its process; weights are paged in at load. Weights, KV cache
and activations, before any headroom, must be within 5 % + 50 MB of it.
"""

import json
import shutil
import struct

import pytest
from mlxcel_program import (needs_program, run, smollm2,  # noqa: F401
                            write_safetensors)

pytestmark = needs_program

MB = 1_000_000


def config(model_type, hidden, layers, heads, kv, ffn, vocabulary, **more):
    return {"model_type": model_type, "hidden_size": hidden,
            "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv, "intermediate_size": ffn,
            "vocab_size": vocabulary, "rms_norm_eps": 1e-6,
            "max_position_embeddings": 1 << 15, **more}


TIED = {"tie_word_embeddings": True}
UNTIED = {"tie_word_embeddings": False}

# name: (config, options of synth, prompt, reply, options of bench and inspect)
SMALL = {
    "llama 4-bit, long context": (
        config("llama", 512, 8, 8, 8, 1024, 32000, **UNTIED),
        ["--bits", "4"], 1500, 32, []),
    "qwen2 8-bit, tied, large vocabulary": (
        config("qwen2", 896, 6, 14, 2, 2432, 151936, **TIED),
        ["--bits", "8"], 512, 32, []),
}
MOE = {"num_experts": 32, "num_experts_per_tok": 4,
       "moe_intermediate_size": 512, "norm_topk_prob": True, "head_dim": 64}
SMALL["qwen3_moe 4-bit"] = (
    config("qwen3_moe", 768, 6, 12, 4, 3072, 32000, **MOE, **UNTIED),
    ["--bits", "4"], 600, 32, [])
LARGE = {
    "llama 4-bit, untied, GQA": (
        config("llama", 2048, 16, 32, 8, 8192, 128256, **UNTIED),
        ["--bits", "4"], 700, 32, []),
    "llama bf16": (
        config("llama", 1024, 16, 16, 4, 4096, 49152, **UNTIED),
        [], 512, 32, []),
    "llama f32, exact": (
        config("llama", 768, 12, 12, 12, 3072, 32000, **UNTIED),
        ["--dtype", "f32"], 1000, 32, ["--exact"]),
    "llama f16, long context": (
        config("llama", 512, 8, 8, 8, 2048, 32000, **TIED),
        ["--dtype", "f16"], 4000, 32, []),
    "mistral 4-bit, window": (
        config("mistral", 1536, 16, 12, 4, 6144, 32768, sliding_window=512,
               **UNTIED),
        ["--bits", "4", "--group-size", "32"], 1500, 32, []),
    "qwen2 8-bit, tied": (
        config("qwen2", 896, 24, 14, 2, 4864, 151936, **TIED),
        ["--bits", "8"], 1000, 32, []),
    "qwen3 bf16, tied": (
        config("qwen3", 1024, 28, 16, 8, 3072, 151936, head_dim=128, **TIED),
        [], 600, 16, []),
    "qwen3 4-bit, untied": (
        config("qwen3", 2048, 20, 16, 8, 6144, 151936, head_dim=128, **UNTIED),
        ["--bits", "4"], 1200, 32, []),
    "gemma 4-bit, 256k vocabulary": (
        config("gemma", 2048, 12, 8, 1, 8192, 256000, head_dim=256,
               hidden_act="gelu_pytorch_tanh"),
        ["--bits", "4"], 512, 32, []),
}


def measure(model, prompt, reply, options):
    done = run("bench", model, "-p", str(prompt), "-n", str(reply), "-r", "1",
               "--json", *options, timeout=300)
    assert done.status == 0, done.err
    seen = run("inspect", model, "-n", str(prompt + reply + 1), "--json",
               *options)
    assert seen.status == 0, seen.err
    return json.loads(seen.text), json.loads(done.text)["peak_resident_bytes"]


def check(name, report, peak):
    parts = [report[key] / MB for key in [
        "weights_bytes", "kv_bytes_total", "activation_bytes", "net_bytes"]]
    off = (report["net_bytes"] - peak) / MB
    allowed = 0.05 * peak / MB + 50
    print(f"\n{name:38} weights {parts[0]:7.1f}  kv {parts[1]:6.1f}  "
          f"activations {parts[2]:5.1f}  net {parts[3]:7.1f}  "
          f"peak {peak / MB:7.1f}  off {off:+6.1f} (allowed {allowed:.1f})")
    assert abs(off) <= allowed, name


def synthetic_case(name, cases, folder):
    settings, synth, prompt, reply, options = cases[name]
    (folder / "config.json").write_text(json.dumps(settings))
    model = folder / "model"
    made = run("synth", folder / "config.json", model, *synth, timeout=300)
    assert made.status == 0, made.err
    try:
        check(name, *measure(model, prompt, reply, options))
    finally:
        shutil.rmtree(model)


def test_smollm2(smollm2):
    check("SmolLM2 (4 and 8 bits, tied)", *measure(smollm2, 512, 64, []))


@pytest.mark.parametrize("name", SMALL)
def test_small(name, tmp_path):
    synthetic_case(name, SMALL, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large(name, tmp_path):
    synthetic_case(name, LARGE, tmp_path)


def fp8_blocks(source, path):
    """The same checkpoint with every projection in FP8 blocks."""
    raw = (source / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + at for at in entry["data_offsets"])
        if "_proj.weight" not in name:
            tensors[name] = entry["dtype"], entry["shape"], raw[begin:end]
            continue
        rows, cols = entry["shape"]
        # Any codes but NaN (0x7f, 0xff) will do.
        codes = bytes(i % 120 for i in range(997)) * (rows * cols // 997 + 1)
        blocks = [-(-rows // 128), -(-cols // 128)]
        tensors[name] = "F8_E4M3", [rows, cols], codes[:rows * cols]
        tensors[name + "_scale_inv"] = "F32", blocks, (
            struct.pack("<f", 1e-4) * (blocks[0] * blocks[1]))
    path.mkdir()
    write_safetensors(path / "model.safetensors", tensors)
    settings = json.loads((source / "config.json").read_text())
    settings["quantization_config"] = {
        "quant_method": "fp8", "weight_block_size": [128, 128]}
    (path / "config.json").write_text(json.dumps(settings))


def test_converted_at_load(tmp_path):
    """FP8 blocks become mxfp8 in memory; the file's pages do not stay."""
    settings = config("qwen3", 1024, 12, 16, 4, 3072, 32000, head_dim=64,
                      **TIED)
    (tmp_path / "config.json").write_text(json.dumps(settings))
    made = run("synth", tmp_path / "config.json", tmp_path / "dense",
               timeout=300)
    assert made.status == 0, made.err
    fp8_blocks(tmp_path / "dense", tmp_path / "model")
    shutil.rmtree(tmp_path / "dense")
    check("qwen3 FP8 blocks, converted at load",
          *measure(tmp_path / "model", 256, 16, []))
