"""Tiny checkpoints of every format end to end: logits of logits_probe against
mlx-lm, on the checkpoint itself where mlx-lm reads it, otherwise on the dense
weights that the vendor's formula gives. Codes and scales of the block formats
against MLX's own quantize."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core")
nn = pytest.importorskip("mlx.nn")
utils = pytest.importorskip("mlx_lm.utils")
from mlx.utils import tree_flatten  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
from synthetic import synthetic  # noqa: E402

BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", ROOT / "build" / "release"))
PROBE = BUILD / "logits_probe"
WEIGHTS = BUILD / "weights_probe"
PROGRAM = BUILD / "mlxcel"
TOKENS = [(7 * i * i + 3) % 96 for i in range(24)]
EXACT = 1e-4
QUICK = 8e-2

pytestmark = pytest.mark.skipif(
    not (PROBE.exists() and WEIGHTS.exists()), reason="probes are not built")

mx.set_default_device(mx.cpu)

CONFIG = {
    "model_type": "qwen3", "hidden_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "intermediate_size": 256, "rms_norm_eps": 1e-5, "vocab_size": 96,
    "rope_theta": 10000.0, "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}


def new_model(config):
    config = {k: v for k, v in config.items() if "quantization" not in k}
    model_class, args_class = utils._get_classes(config)
    model = model_class(args_class.from_dict(config))
    model.load_weights(
        [(name, mx.array(synthetic(name, value.shape)))
         for name, value in tree_flatten(model.parameters())
         if "rope" not in name], strict=True)
    model.eval()
    return model


def weights_of(model):
    return dict(tree_flatten(model.parameters()))


def logits_of(model):
    return np.array(model(mx.array([TOKENS]))[0].astype(mx.float32))


def dense_logits(config, weights):
    """Logits of a model with these dense float32 weights."""
    model = new_model(config)
    model.load_weights([(name, mx.array(np.asarray(value, np.float32)))
                        for name, value in weights.items()], strict=True)
    return logits_of(model)


DTYPES = {"F64": "<f8", "F32": "<f4", "U32": "<u4", "U8": "u1",
          "F8_E4M3": "u1", "F8_E5M2": "u1", "F8_E8M0": "u1"}


def write(folder, config, tensors):
    """tensors: name -> mx.array, or (dtype, numpy array of its bytes)."""
    header, payload, at = {}, [], 0
    for name, value in tensors.items():
        if isinstance(value, mx.array):
            dtype = {mx.float32: "F32", mx.float16: "F16", mx.bfloat16: "BF16",
                     mx.uint32: "U32", mx.uint8: "U8"}[value.dtype]
            shape = value.shape
            if dtype == "BF16":
                value = np.array(value.view(mx.uint16))
            value = np.ascontiguousarray(np.array(value))
        else:
            dtype, value = value
            shape = value.shape
            value = np.ascontiguousarray(value.astype(DTYPES[dtype]))
        data = value.tobytes()
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [at, at + len(data)]}
        payload.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(
        len(text).to_bytes(8, "little") + text + b"".join(payload))
    (folder / "config.json").write_text(json.dumps(config))


def run(folder, mode="exact", backend="cpu", route="directory", isa=None):
    out = folder / "logits"
    environment = dict(os.environ)
    if isa:
        environment["MLXCEL_CPU_ISA"] = isa
    done = subprocess.run(
        [PROBE, folder, out, mode, backend, route, *map(str, TOKENS)],
        capture_output=True, text=True, check=False, env=environment,
        timeout=120)
    assert done.returncode == 0, done.stderr
    return np.fromfile(out, "<f4").reshape(len(TOKENS), -1), done.stderr


def distance(a, b):
    return (np.abs(a - b).max(-1) / np.abs(b).max(-1)).max()


def isas():
    flags = Path("/proc/cpuinfo").read_text()
    return ["generic"] + [isa for isa, flag in
                          (("avx2", "avx2"), ("avx512", "avx512_vbmi"))
                          if flag in flags]


def inspect(folder):
    """What `inspect` says; it knows every tensor and what a step takes."""
    done = subprocess.run([PROGRAM, "inspect", folder, "--json"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["missing_tensors"] == report["unexpected_tensors"] == []
    assert report["activation_bytes"] > 0, report["unknown"]
    return report


def parameters(config):
    return sum(value.size for value in weights_of(new_model(config)).values())


def check(folder, expected, exact=EXACT, quick=QUICK):
    log = ""
    config = json.loads((folder / "config.json").read_text())
    report = inspect(folder)
    assert report["parameters"] == parameters(config)
    # Nothing counts twice: float32 throughout would be four bytes each, norms
    # are kept as float32 beside what is stored.
    assert 0 < report["weights_bytes"] <= 4.1 * report["parameters"]
    for backend, route, isa in [("cpu", "directory", i) for i in isas()] + [
            ("cpu", "weights", None), ("graph", "directory", None),
            ("graph", "weights", None)]:
        got, log = run(folder, "exact", backend, route, isa)
        assert distance(got, expected) <= exact, (backend, route, isa)
    for isa in isas():
        got, _ = run(folder, "default", isa=isa)
        error = np.sqrt(((got - expected) ** 2).sum() / (expected ** 2).sum())
        assert error <= quick, isa
    return log


AFFINE = [(bits, group) for bits in (2, 3, 4, 5, 6, 8)
          for group in (32, 64, 128)]
BLOCKS = {"mxfp4": (4, 32), "mxfp8": (8, 32), "nvfp4": (4, 16)}


@pytest.mark.parametrize("bits,group", AFFINE)
def test_affine(tmp_path, bits, group):
    model = new_model(CONFIG)
    nn.quantize(model, group, bits)
    config = CONFIG | {"quantization": {"bits": bits, "group_size": group}}
    write(tmp_path, config, weights_of(model))
    check(tmp_path, logits_of(model))


@pytest.mark.parametrize("mode", BLOCKS)
@pytest.mark.parametrize("declared", [True, False])
def test_block_floats(tmp_path, mode, declared):
    bits, group = BLOCKS[mode]
    model = new_model(CONFIG)
    nn.quantize(model, group, bits, mode=mode)
    config = dict(CONFIG)
    if declared:
        config["quantization"] = {"bits": bits, "group_size": group,
                                  "mode": mode}
    tensors = {name: value for name, value in weights_of(model).items()}
    write(tmp_path, config, tensors)
    check(tmp_path, logits_of(model))


@pytest.mark.parametrize("mode,bits,group", [
    *(("affine", *widths) for widths in AFFINE),
    *((mode, *widths) for mode, widths in BLOCKS.items())])
def test_tied_head(tmp_path, mode, bits, group):
    config = CONFIG | {"tie_word_embeddings": True}
    model = new_model(config)
    nn.quantize(model, group, bits, mode=mode)
    write(tmp_path, config | {"quantization": {
        "bits": bits, "group_size": group, "mode": mode}}, weights_of(model))
    check(tmp_path, logits_of(model))


@pytest.mark.parametrize("prefix", ["language_model.",
                                    "model.language_model."])
def test_names_under_a_wrapper(tmp_path, prefix):
    model = new_model(CONFIG)
    nn.quantize(model, 64, 4, class_predicate=lambda path, module:
                hasattr(module, "to_quantized")
                and (dict(bits=8, group_size=32) if "down_proj" in path
                     else True))
    expected = logits_of(model)
    tensors = {}
    for name, value in weights_of(model).items():
        if prefix.startswith("model.") and name.startswith("model."):
            name = name[len("model."):]
        tensors[prefix + name] = value
    overrides = {f"{prefix}layers.{i}.mlp.down_proj": {
        "bits": 8, "group_size": 32} for i in range(2)}
    write(tmp_path, CONFIG | {"quantization": {
        "bits": 4, "group_size": 64, **overrides}}, tensors)
    log = check(tmp_path, expected)
    assert "the shapes give" not in log, log


def one_bit(weight, group):
    """Codes of 1 bit: above the mean of the group or not."""
    rows, cols = weight.shape
    g = weight.reshape(rows, cols // group, group)
    on = g > g.mean(-1, keepdims=True)
    low = np.where(on, 0, g).sum(-1) / np.maximum((~on).sum(-1), 1)
    high = np.where(on, g, 0).sum(-1) / np.maximum(on.sum(-1), 1)
    scale, bias = (high - low).astype(np.float32), low.astype(np.float32)
    values = scale[..., None] * on + bias[..., None]
    words = np.packbits(on.reshape(rows, cols), axis=1, bitorder="little")
    return words.view("<u4"), scale, bias, values.reshape(rows, cols)


def matrices(weights):
    return [name[:-len(".weight")] for name, value in weights.items()
            if name.endswith(".weight") and len(value.shape) == 2]


def as_numpy(weights):
    return {name: np.array(value.astype(mx.float32))
            for name, value in weights.items()}


@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("tied", [False, True])
def test_one_bit(tmp_path, group, tied):
    config = CONFIG | {"tie_word_embeddings": tied}
    dense = as_numpy(weights_of(new_model(config)))
    tensors = {k: mx.array(v) for k, v in dense.items()}
    for path in matrices(dense):
        words, scale, bias, values = one_bit(dense[path + ".weight"], group)
        tensors[path + ".weight"] = ("U32", words)
        tensors[path + ".scales"] = ("F32", scale)
        tensors[path + ".biases"] = ("F32", bias)
        dense[path + ".weight"] = values
    write(tmp_path, config | {"quantization": {
        "bits": 1, "group_size": group}}, tensors)
    check(tmp_path, dense_logits(config, dense))


def test_mixed_widths_without_overrides(tmp_path):
    model = new_model(CONFIG)
    formats = [dict(bits=4, group_size=64), dict(bits=8, group_size=64),
               dict(bits=6, group_size=32), dict(bits=3, group_size=128)]
    paths = sorted(matrices(weights_of(model)))
    def predicate(path, module):
        if not hasattr(module, "to_quantized"):
            return False
        return formats[paths.index(path) % len(formats)]
    nn.quantize(model, 64, 4, class_predicate=predicate)
    write(tmp_path, CONFIG | {"quantization": {"bits": 4, "group_size": 64}},
          weights_of(model))
    log = check(tmp_path, logits_of(model))
    assert log.count("the shapes give") == 8, log
    assert "more tensors are quantised otherwise" in log


@pytest.mark.parametrize("dtype", ["F64", "F8_E4M3", "F8_E5M2", "F16", "BF16"])
def test_dense_types(tmp_path, dtype):
    dense = as_numpy(weights_of(new_model(CONFIG)))
    tensors = {}
    for name, value in dense.items():
        if dtype in ("F16", "BF16"):
            kind = mx.float16 if dtype == "F16" else mx.bfloat16
            tensors[name] = mx.array(value).astype(kind)
            dense[name] = np.array(tensors[name].astype(mx.float32))
        elif dtype == "F64":
            tensors[name] = ("F64", value.astype(np.float64))
        else:
            codes, values = nearest(value, E4M3 if dtype == "F8_E4M3" else E5M2)
            tensors[name] = (dtype, codes)
            dense[name] = values
    write(tmp_path, CONFIG, tensors)
    log = check(tmp_path, dense_logits(CONFIG, dense))
    if dtype.startswith("F8") or dtype == "F64":
        assert log.count(f"tensors of {dtype} are read as") == 1, log
        assert f"{len(dense)} tensors" in log


def small_floats(exponent_bits, mantissa_bits, bias):
    """Values of all 256 codes, as OCP 8-bit Floating Point 1.0 defines them."""
    codes = np.arange(256)
    sign = np.where(codes & 128, -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & (2**exponent_bits - 1)
    mantissa = codes & (2**mantissa_bits - 1)
    return sign * np.where(
        exponent == 0, mantissa * 2.0**(1 - bias - mantissa_bits),
        (1 + mantissa / 2**mantissa_bits) * 2.0**(exponent.astype(float) - bias))


E4M3 = small_floats(4, 3, 7)
E4M3[[0x7F, 0xFF]] = np.nan
E5M2 = small_floats(5, 2, 15)
E5M2[0x7C:0x80] = E5M2[0xFC:] = np.nan
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def nearest(values, table):
    """Codes of the nearest finite values of the table."""
    order = [i for i in np.argsort(table, kind="stable")
             if np.isfinite(table[i]) and i != 128]
    ordered = table[order]
    at = np.clip(np.searchsorted(ordered, values), 1, len(order) - 1)
    lower = np.abs(values - ordered[at - 1]) <= np.abs(values - ordered[at])
    codes = np.array(order)[np.where(lower, at - 1, at)]
    return codes.astype(np.uint8), table[codes].astype(np.float32)


def linears(weights):
    return [path for path in matrices(weights)
            if "embed" not in path and "lm_head" not in path]


# DeepSeek-V3 and Qwen3-FP8 on Hugging Face: weight * weight_scale_inv by
# blocks of 128 x 128.
def fp8_blocks():
    """Config, tensors, and the dense values that they stand for."""
    config = CONFIG | {"intermediate_size": 320}
    dense = as_numpy(weights_of(new_model(config)))
    tensors = {k: mx.array(v).astype(mx.bfloat16) for k, v in dense.items()}
    for path in linears(dense):
        w = dense[path + ".weight"]
        rows, cols = w.shape
        inverse = np.zeros((-(-rows // 128), -(-cols // 128)), np.float32)
        codes = np.zeros(w.shape, np.uint8)
        values = np.zeros(w.shape, np.float32)
        for r in range(inverse.shape[0]):
            for c in range(inverse.shape[1]):
                box = np.s_[128 * r:128 * r + 128, 128 * c:128 * c + 128]
                inverse[r, c] = np.abs(w[box]).max() / 448 * (1 + r + c)
                codes[box], plain = nearest(w[box] / inverse[r, c], E4M3)
                values[box] = plain * inverse[r, c]
        tensors[path + ".weight"] = ("F8_E4M3", codes)
        tensors[path + ".weight_scale_inv"] = ("F32", inverse)
        # requantised as MLX's mxfp8
        q, s = mx.quantize(mx.array(values), group_size=32, bits=8,
                           mode="mxfp8")
        dense[path + ".weight"] = np.array(mx.dequantize(
            q, s, group_size=32, bits=8, mode="mxfp8", dtype=mx.float32))
    declared = {"quant_method": "fp8", "fmt": "e4m3",
                "activation_scheme": "dynamic",
                "weight_block_size": [128, 128]}
    return config | {"quantization_config": declared}, tensors, dense


def test_fp8_blocks(tmp_path):
    config, tensors, dense = fp8_blocks()
    write(tmp_path, config, tensors)
    log = check(tmp_path, dense_logits(config, dense))
    assert "[fp8] 14 matrices" in log


# NVIDIA ModelOpt: e2m1(code) * e4m3(weight_scale) * weight_scale_2.
def modelopt():
    dense = as_numpy(weights_of(new_model(CONFIG)))
    tensors = {k: mx.array(v).astype(mx.bfloat16) for k, v in dense.items()}
    for path in linears(dense):
        w = dense[path + ".weight"]
        rows, cols = w.shape
        total = np.float32(np.abs(w).max() / (6 * 448))
        groups = w.reshape(rows, cols // 16, 16)
        scales, scale_values = nearest(
            np.abs(groups).max(-1) / 6 / total, E4M3)
        factor = (scale_values * total)[..., None]
        table = np.concatenate([E2M1, -E2M1])
        ratio = groups / np.maximum(factor, 1e-30)
        codes = np.abs(ratio[..., None] - table).argmin(-1)
        values = table[codes] * factor
        codes = codes.reshape(rows, cols).astype(np.uint8)
        tensors[path + ".weight"] = ("U8", codes[:, ::2] | codes[:, 1::2] << 4)
        tensors[path + ".weight_scale"] = ("F8_E4M3", scales)
        tensors[path + ".weight_scale_2"] = ("F32", np.array(total))
        tensors[path + ".input_scale"] = ("F32", np.array(1.0))
        dense[path + ".weight"] = values.reshape(rows, cols).astype(np.float32)
    declared = {"quant_method": "modelopt", "quant_algo": "NVFP4",
                "config_groups": {"group_0": {"weights": {"group_size": 16}}},
                "ignore": ["lm_head"], "producer": {"name": "modelopt"}}
    return CONFIG | {"quantization_config": declared}, tensors, dense


def test_modelopt_nvfp4(tmp_path, monkeypatch):
    config, tensors, dense = modelopt()
    write(tmp_path, config, tensors)
    expected = dense_logits(CONFIG, dense)
    log = check(tmp_path, expected)
    assert "[modelopt] NVFP4: 14 matrices" in log
    monkeypatch.setenv("MLXCEL_NVFP4_DENSE_REPACK", "1")
    affine, log = run(tmp_path)
    assert "affine" in log
    assert 1e-4 < distance(affine, expected) < 1
    monkeypatch.setenv("MLXCEL_NVFP4_NATIVE_REPACK", "on")
    native, log = run(tmp_path)
    assert "nvfp4 through f16" in log
    assert distance(native, expected) < 1


# transformers, integrations/bitnet.py, unpack_weights: bits 2i and 2i + 1 of
# row r hold row r + i * rows / 4, plus one.
def bitnet(linear_class):
    dense = as_numpy(weights_of(new_model(CONFIG)))
    tensors = {k: mx.array(v) for k, v in dense.items()}
    for path in linears(dense):
        w = dense[path + ".weight"]
        scale = np.float32(np.abs(w).mean())
        ternary = np.clip(np.round(w / scale), -1, 1)
        codes = (ternary + 1).astype(np.uint8)
        parts = codes.reshape(4, w.shape[0] // 4, w.shape[1])
        packed = sum(parts[i] << (2 * i) for i in range(4))
        multiply = linear_class == "autobitlinear"
        stored = scale if multiply else np.float32(1) / scale
        tensors[path + ".weight"] = ("U8", packed)
        tensors[path + ".weight_scale"] = ("F32", np.array([stored]))
        dense[path + ".weight"] = (
            ternary * (stored if multiply else 1 / stored)).astype(np.float32)
    declared = {"quant_method": "bitnet", "modules_to_not_convert": ["lm_head"]}
    if linear_class:
        declared["linear_class"] = linear_class
    return CONFIG | {"quantization_config": declared}, tensors, dense


@pytest.mark.parametrize("linear_class", ["autobitlinear", "bitlinear", None])
def test_bitnet(tmp_path, linear_class):
    config, tensors, dense = bitnet(linear_class)
    write(tmp_path, config, tensors)
    check(tmp_path, dense_logits(CONFIG, dense))


# compressed-tensors, mxfp4-pack-quantized: even column in the low nibble.
def packed_mxfp4():
    model = new_model(CONFIG)
    nn.quantize(model, 32, 4, mode="mxfp4", class_predicate=lambda path, m:
                hasattr(m, "to_quantized") and "embed" not in path
                and "lm_head" not in path)
    planes = weights_of(model)
    tensors, dense = {}, {}
    for name, value in planes.items():
        if value.dtype == mx.uint32:
            scales = planes[name[:-len("weight")] + "scales"]
            dense[name] = np.array(mx.dequantize(
                value, scales, group_size=32, bits=4, mode="mxfp4",
                dtype=mx.float32))
            name = name + "_packed"
            value = ("U8", np.array(value).view(np.uint8))
        elif name.endswith(".scales"):
            name = name[:-len("scales")] + "weight_scale"
        else:
            dense[name] = np.array(value.astype(mx.float32))
        tensors[name] = value
    declared = {"quant_method": "compressed-tensors",
                "format": "mxfp4-pack-quantized"}
    return CONFIG | {"quantization_config": declared}, tensors, dense


def test_packed_mxfp4(tmp_path):
    config, tensors, dense = packed_mxfp4()
    write(tmp_path, config, tensors)
    check(tmp_path, dense_logits(CONFIG, dense))


@pytest.mark.parametrize("mode", BLOCKS)
def test_block_quantizers_are_mlxs(tmp_path, mode):
    bits, group = BLOCKS[mode]
    rng = np.random.default_rng(3)
    w = (rng.standard_normal((64, 256))
         * np.exp(rng.uniform(-12, 12, (64, 1)))).astype(np.float32)
    w[0], w[1, :32], w[2, 5] = 0, 0, 448
    w[3] = np.linspace(-6, 6, 256)
    w.tofile(tmp_path / "in")
    done = subprocess.run([WEIGHTS, "quantize_block", mode, tmp_path / "in",
                           tmp_path / "out"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    got = np.fromfile(tmp_path / "out", np.uint8)
    codes, scales = mx.quantize(mx.array(w), group_size=group, bits=bits,
                                mode=mode)
    expected = np.concatenate([np.array(codes).view(np.uint8).ravel(),
                               np.array(scales).ravel()])
    np.testing.assert_array_equal(got, expected)


MOE = CONFIG | {
    "model_type": "qwen3_moe", "num_experts": 6, "num_experts_per_tok": 2,
    "moe_intermediate_size": 128, "decoder_sparse_step": 1,
    "mlp_only_layers": [1], "norm_topk_prob": True}
# A choice between two experts that are as good may turn on a rounding.
QUICK_EXPERTS = 0.25


def single_experts(tensors):
    """The names of the original checkpoints: one matrix an expert."""
    out = {}
    for name, value in tensors.items():
        if ".switch_mlp." not in name:
            out[name] = value
            continue
        for expert in range(value.shape[0]):
            out[name.replace("switch_mlp", f"experts.{expert}")] = value[expert]
    return out


@pytest.mark.parametrize("bits,group", AFFINE)
def test_expert_stack(tmp_path, bits, group):
    model = new_model(MOE)
    nn.quantize(model, group, bits)
    config = MOE | {"quantization": {"bits": bits, "group_size": group}}
    write(tmp_path, config, weights_of(model))
    check(tmp_path, logits_of(model), quick=QUICK_EXPERTS)


@pytest.mark.parametrize("mode", BLOCKS)
def test_expert_stack_of_block_floats(tmp_path, mode):
    bits, group = BLOCKS[mode]
    model = new_model(MOE)
    nn.quantize(model, group, bits, mode=mode)
    config = MOE | {"quantization": {"bits": bits, "group_size": group,
                                     "mode": mode}}
    write(tmp_path, config, weights_of(model))
    check(tmp_path, logits_of(model), quick=QUICK_EXPERTS)


# As published: the router in 8 bits, the experts in 4; and the names that the
# original has.
@pytest.mark.parametrize("names", ["stacked", "single"])
@pytest.mark.parametrize("prefix", ["", "language_model."])
def test_experts_with_a_wider_router(tmp_path, names, prefix):
    model = new_model(MOE)
    nn.quantize(model, 64, 4, class_predicate=lambda path, module:
                hasattr(module, "to_quantized")
                and (dict(bits=8, group_size=64) if path.endswith("mlp.gate")
                     else True))
    tensors = weights_of(model)
    if names == "single":
        tensors = single_experts(tensors)
    tensors = {prefix + name: value for name, value in tensors.items()}
    write(tmp_path, MOE | {"quantization": {"bits": 4, "group_size": 64}},
          tensors)
    check(tmp_path, logits_of(model), quick=QUICK_EXPERTS)


def test_fused_gate_and_up(tmp_path):
    """modeling_qwen3_moe.py of transformers 5 holds experts so."""
    model = new_model(MOE)
    tensors = weights_of(model)
    for layer in range(2):
        root = f"model.layers.{layer}.mlp."
        if root + "switch_mlp.gate_proj.weight" not in tensors:
            continue
        gate, up, down = (tensors.pop(root + f"switch_mlp.{kind}_proj.weight")
                          for kind in ("gate", "up", "down"))
        tensors[root + "experts.gate_up_proj"] = mx.concatenate([gate, up], 1)
        tensors[root + "experts.down_proj"] = down
    write(tmp_path, MOE, tensors)
    check(tmp_path, logits_of(model), quick=QUICK_EXPERTS)


def test_fp8_blocks_of_experts(tmp_path):
    """Each expert's matrix with its own blocks, as Qwen3-30B-A3B-FP8."""
    dense = as_numpy(single_experts(weights_of(new_model(MOE))))
    tensors = {k: mx.array(v).astype(mx.bfloat16) for k, v in dense.items()}
    for name in dense:
        if ".experts." not in name:
            continue
        w = dense[name]
        inverse = np.full((1, 1), np.abs(w).max() / 448, np.float32)
        codes, plain = nearest(w / inverse[0, 0], E4M3)
        tensors[name] = ("F8_E4M3", codes)
        tensors[name + "_scale_inv"] = ("F32", inverse)
        q, s = mx.quantize(mx.array(plain * inverse[0, 0]), group_size=32,
                           bits=8, mode="mxfp8")
        dense[name] = np.array(mx.dequantize(
            q, s, group_size=32, bits=8, mode="mxfp8", dtype=mx.float32))
    stacked = {}
    for name, value in dense.items():
        if ".experts." not in name:
            stacked[name] = value
            continue
        expert = int(name.split(".experts.")[1].split(".")[0])
        stacked.setdefault(
            name.replace(f"experts.{expert}", "switch_mlp"), []).append(value)
    stacked = {k: np.stack(v) if isinstance(v, list) else v
               for k, v in stacked.items()}
    declared = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    write(tmp_path, MOE | {"quantization_config": declared}, tensors)
    check(tmp_path, dense_logits(MOE, stacked), quick=QUICK_EXPERTS)


def test_one_bit_experts_are_refused(tmp_path):
    tensors = dict(weights_of(new_model(MOE)))
    name = "model.layers.0.mlp.switch_mlp.up_proj"
    experts, rows, cols = tensors[name + ".weight"].shape
    tensors[name + ".weight"] = (
        "U32", np.zeros((experts, rows, cols // 32), np.uint32))
    for plane in ("scales", "biases"):
        tensors[f"{name}.{plane}"] = mx.zeros((experts, rows, cols // 64))
    write(tmp_path, MOE, tensors)
    done = subprocess.run([PROBE, tmp_path, tmp_path / "out", "exact", "cpu",
                           "directory", "1"], capture_output=True, text=True,
                          check=False)
    assert done.returncode != 0
    assert name in done.stderr and "1-bit" in done.stderr, done.stderr
