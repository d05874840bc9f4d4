"""`mlxcel convert` of checkpoint directories: planes against MLX's own quantize
and mlx_lm.convert byte by byte, logits across both programs."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core")
lm_convert = pytest.importorskip("mlx_lm.convert")
utils = pytest.importorskip("mlx_lm.utils")

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import test_formats as formats  # noqa: E402

PROGRAM = formats.BUILD / "mlxcel"
WEIGHTS = formats.WEIGHTS
pytestmark = pytest.mark.skipif(
    not (PROGRAM.exists() and WEIGHTS.exists()), reason="not built")
mx.set_default_device(mx.cpu)

DTYPES = {"float32": mx.float32, "float16": mx.float16,
          "bfloat16": mx.bfloat16}
AFFINE = [("affine", bits, group) for bits in (2, 3, 4, 5, 6, 8)
          for group in (32, 64, 128)]
BLOCKS = [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]
FAMILIES = {
    "llama": {"rope_theta": 10000.0, "head_dim": 32},
    "qwen3": {"head_dim": 64},
    "gemma": {"head_dim": 64, "tie_word_embeddings": True,
              "hidden_activation": "gelu"},
}


def config_of(family, dtype="bfloat16", layers=2):
    return {**formats.CONFIG, **FAMILIES[family], "model_type": family,
            "num_hidden_layers": layers, "torch_dtype": dtype}


def make(folder, config, dtype=None):
    model = formats.new_model(config)
    kind = DTYPES[dtype or config["torch_dtype"]]
    tensors = {name: value.astype(kind)
               for name, value in formats.weights_of(model).items()
               if "rope" not in name}
    formats.write(folder, config, tensors)
    return folder


def convert(source, out, *flags, status=0):
    done = subprocess.run([PROGRAM, "convert", source, out, *map(str, flags)],
                          capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout if status == 0 else done.stderr


def official(source, **options):
    """mlx_lm.convert without its tokenizer."""
    model, config = utils.load_model(source, lazy=True)
    kind = config.get("torch_dtype")
    predicate = options.pop("preset", None)
    if predicate:
        predicate = lm_convert.mixed_quant_predicate_builder(
            predicate, model, options["group_size"])
    from mlx.utils import tree_map
    model.update(tree_map(
        lambda v: v.astype(DTYPES[kind])
        if mx.issubdtype(v.dtype, mx.floating) else v, model.parameters()))
    options.setdefault("mode", "affine")
    return utils.quantize_model(model, config, options.pop("group_size"),
                                options.pop("bits"),
                                quant_predicate=predicate, **options)


def tensors_of(folder):
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors.update(mx.load(str(path)))
    return tensors


def raw(value):
    if value.dtype == mx.bfloat16:
        value = value.view(mx.uint16)
    return np.array(value).tobytes()


def same_tensors(got, expected):
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        assert (got[name].dtype, got[name].shape) == (
            value.dtype, value.shape), name
        assert raw(got[name]) == raw(value), name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode,bits,group", AFFINE + BLOCKS)
def test_planes_are_mlx_lms(tmp_path, dtype, mode, bits, group):
    source = make(tmp_path / "in", config_of("qwen3", dtype))
    convert(source, tmp_path / "out", "--q-mode", mode, "--q-bits", bits,
            "--q-group-size", group)
    model, config = official(source, mode=mode, bits=bits, group_size=group)
    same_tensors(tensors_of(tmp_path / "out"), formats.weights_of(model))
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert written["quantization"] == config["quantization"]
    assert written["quantization_config"] == config["quantization"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode,bits", [("affine", 4), ("mxfp8", 8)])
def test_each_loads_what_the_other_writes(tmp_path, family, mode, bits):
    # MLX scales Gemma's embeddings in the type that it dequantises to, bf16.
    exact = 2e-2 if (family, mode) == ("gemma", "mxfp8") else formats.EXACT
    source = make(tmp_path / "in", config_of(family, "float32"))
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    convert(source, ours, "-q", "--q-mode", mode)
    model, config = official(source, mode=mode, bits=bits, group_size=None)
    theirs.mkdir()
    utils.save_model(theirs, model)
    utils.save_config(config, theirs / "config.json")
    loaded, _ = utils.load_model(ours)
    expected = formats.logits_of(loaded.apply(
        lambda v: v.astype(mx.float32)
        if mx.issubdtype(v.dtype, mx.floating) else v))
    for folder in (ours, theirs):
        got, log = formats.run(folder)
        assert formats.distance(got, expected) <= exact
        assert "the shapes give" not in log


@pytest.mark.parametrize("preset",
                         ["mixed_2_6", "mixed_3_4", "mixed_3_6", "mixed_4_6"])
@pytest.mark.parametrize("layers", [1, 8, 17])
def test_presets_choose_what_mlx_lm_chooses(tmp_path, preset, layers):
    source = make(tmp_path / "in", config_of("llama", layers=layers))
    convert(source, tmp_path / "out", "--quant-predicate", preset)
    model, config = official(source, preset=preset, bits=None, group_size=64)
    same_tensors(tensors_of(tmp_path / "out"), formats.weights_of(model))
    loaded, _ = utils.load_model(tmp_path / "out")
    same_tensors(formats.weights_of(loaded), formats.weights_of(model))


def test_defaults_follow_the_mode(tmp_path):
    source = make(tmp_path / "in", config_of("qwen3"))
    for mode, bits, group in [("affine", 4, 64), *BLOCKS]:
        out = tmp_path / mode
        convert(source, out, "--q-mode", mode)
        assert json.loads((out / "config.json").read_text())[
            "quantization"] == {"group_size": group, "bits": bits,
                                "mode": mode}


def test_rules(tmp_path):
    source = make(tmp_path / "in", config_of("qwen3"))
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({
        "*k_proj": False, "*.0.mlp.*": {"bits": 3, "group_size": 32}}))
    convert(source, tmp_path / "out", "--q-layer", "lm_head=8/32",
            "--q-layer", "*v_proj=mxfp4", "--q-recipe", recipe)
    got = tensors_of(tmp_path / "out")
    assert "model.layers.0.self_attn.k_proj.scales" not in got
    for path, options in {
            "lm_head": dict(bits=8, group_size=32),
            "model.layers.1.self_attn.v_proj": dict(mode="mxfp4"),
            "model.layers.0.mlp.up_proj": dict(bits=3, group_size=32),
            "model.layers.1.mlp.up_proj": dict(bits=4, group_size=64)}.items():
        weight = tensors_of(source)[path + ".weight"]
        planes = mx.quantize(weight, **options)
        for plane, value in zip(("weight", "scales", "biases"), planes):
            assert raw(got[f"{path}.{plane}"]) == raw(value), path
    model, _ = utils.load_model(tmp_path / "out")
    assert model is not None
    formats.run(tmp_path / "out")
    message = convert(source, tmp_path / "no", "--q-layer", "*q_porj=8",
                      status=2)
    assert "*q_porj" in message and not (tmp_path / "no").exists()


def dequantized(weight, planes, options, dtype):
    wide = [planes[0]] + [p.astype(mx.float32) if p.dtype != mx.uint8 else p
                          for p in planes[1:]]
    return mx.dequantize(*wide, **options, dtype=mx.float32).astype(dtype)


@pytest.mark.parametrize("mode,bits,group",
                         [("affine", 4, 64), ("affine", 3, 32), *BLOCKS])
def test_dequantize_and_requantize(tmp_path, mode, bits, group):
    source = make(tmp_path / "in", config_of("qwen3"))
    options = dict(mode=mode, bits=bits, group_size=group)
    middle = tmp_path / "middle"
    convert(source, middle, "--q-mode", mode, "--q-bits", bits,
            "--q-group-size", group)
    convert(middle, tmp_path / "dense", "--dequantize")
    convert(middle, tmp_path / "again", "--q-bits", 6)
    packed, dense = tensors_of(middle), tensors_of(tmp_path / "dense")
    again = tensors_of(tmp_path / "again")
    config = json.loads((tmp_path / "dense/config.json").read_text())
    assert not any("quantization" in key for key in config)
    for name in tensors_of(source):
        path = name[:-len(".weight")]
        if path + ".scales" not in packed:
            assert raw(dense[name]) == raw(packed[name])
            continue
        planes = [packed[path + p] for p in (".weight", ".scales", ".biases")
                  if path + p in packed]
        expected = dequantized(name, planes, options, mx.bfloat16)
        assert raw(dense[name]) == raw(expected), name
        for plane, value in zip((".weight", ".scales", ".biases"),
                                mx.quantize(expected, bits=6, group_size=64)):
            assert raw(again[path + plane]) == raw(value), name
    assert "without loss" in convert(middle, tmp_path / "same")
    same_tensors(tensors_of(tmp_path / "same"), packed)


def odd_rows(dtype, mode):
    """Groups with all that is odd and finite."""
    rng = np.random.default_rng(5)
    big = 60000.0 if dtype == "float16" else 1e37
    if mode == "nvfp4":
        big = 2688.0
    rows = [np.zeros(128), -np.zeros(128), np.full(128, 0.3),
            np.full(128, -big), np.linspace(-big, big, 128),
            np.arange(128) * 1e-9, np.full(128, 1e-5), np.eye(128)[3] * 448,
            np.linspace(-6, 6, 128), np.repeat([1.0, -1.0], 64)]
    rows += [rng.standard_normal(128) * 10.0**e for e in range(-9, 3)]
    return np.array(rows, np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode,bits,group",
                         [("affine", 2, 32), ("affine", 3, 64),
                          ("affine", 8, 128), *BLOCKS])
def test_odd_values(tmp_path, dtype, mode, bits, group):
    weight = mx.array(odd_rows(dtype, mode)).astype(DTYPES[dtype])
    formats.write(tmp_path / "in", {"model_type": "phi3"},
                  {"a.up_proj.weight": weight})
    convert(tmp_path / "in", tmp_path / "out", "--q-mode", mode, "--q-bits",
            bits, "--q-group-size", group)
    got = tensors_of(tmp_path / "out")
    for plane, value in zip(("weight", "scales", "biases"), mx.quantize(
            weight, bits=bits, group_size=group, mode=mode)):
        assert raw(got["a.up_proj." + plane]) == raw(value), plane


# Every magnitude of the 16-bit types as the largest of a group.
@pytest.mark.parametrize("mode", ["mxfp4", "mxfp8", "nvfp4"])
@pytest.mark.parametrize("dtype,last", [("float16", 0x7c00),
                                        ("bfloat16", 0x7f80)])
def test_every_scale(tmp_path, mode, dtype, last):
    group = 16 if mode == "nvfp4" else 32
    bits = 8 if mode == "mxfp8" else 4
    first = 0
    if dtype == "bfloat16" and mode != "nvfp4":
        first = 0x0480  # MLX's scale wraps around below 2^-127
    elif mode == "nvfp4" and dtype == "bfloat16":
        last = 0x4780  # 65536; convert refuses what is above 2688
    codes = np.arange(first, last, dtype=np.uint16)
    halves = np.zeros((len(codes), group), np.uint16)
    halves[:, 0] = codes
    halves[:, 1] = codes // 3 * 2
    values = mx.array(halves).view(DTYPES[dtype])
    np.array(values.astype(mx.float32)).tofile(tmp_path / "in")
    subprocess.run([WEIGHTS, "quantize_block", mode, tmp_path / "in",
                    tmp_path / "out", "F16" if dtype == "float16" else "BF16"],
                   check=True)
    got = np.fromfile(tmp_path / "out", np.uint8)
    packed, scales = mx.quantize(values, group_size=group, bits=bits, mode=mode)
    expected = np.concatenate([np.array(packed).view(np.uint8).ravel(),
                               np.array(scales).ravel()])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mode", ["affine", "mxfp4", "mxfp8", "nvfp4"])
def test_not_finite(tmp_path, bad, mode):
    values = np.ones((40, 128), np.float32)
    values[7, 100] = bad
    formats.write(tmp_path / "in", {"model_type": "phi3"},
                  {"a.up_proj.weight": mx.array(values)})
    message = convert(tmp_path / "in", tmp_path / "out", "--q-mode", mode,
                      status=1)
    assert "a.up_proj.weight: row 7" in message
    assert "model.safetensors" in message
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_ranges_that_no_type_holds(tmp_path):
    values = np.array([[3e38, -3e38] * 32], np.float32)
    formats.write(tmp_path / "in", {"model_type": "phi3"},
                  {"a.up_proj.weight": mx.array(values)})
    message = convert(tmp_path / "in", tmp_path / "out", "-q", status=1)
    assert "a.up_proj.weight: row 0" in message
    message = convert(tmp_path / "in", tmp_path / "out", "--dtype", "float16",
                      status=1)
    assert "a.up_proj.weight: row 0" in message and "F16" in message


def test_values_that_nvfp4_does_not_hold(tmp_path):
    values = np.ones((3, 64), np.float32)
    values[2, 5] = -2700
    formats.write(tmp_path / "in", {"model_type": "phi3"},
                  {"a.up_proj.weight": mx.array(values)})
    message = convert(tmp_path / "in", tmp_path / "out", "--q-mode", "nvfp4",
                      status=1)
    assert "a.up_proj.weight: row 2" in message and "2688" in message


def test_experts_are_stacked(tmp_path):
    config = {**formats.CONFIG, "model_type": "qwen3_moe", "num_experts": 4,
              "num_experts_per_tok": 2, "decoder_sparse_step": 1,
              "mlp_only_layers": [], "moe_intermediate_size": 64,
              "norm_topk_prob": True, "torch_dtype": "bfloat16"}
    model = formats.new_model(config)
    tensors = {}
    for name, value in formats.weights_of(model).items():
        value = value.astype(mx.bfloat16)
        if "switch_mlp" in name:
            for i in range(4):
                tensors[name.replace("switch_mlp", f"experts.{i}")] = value[i]
        else:
            tensors[name] = value
    formats.write(tmp_path / "in", config, tensors)
    convert(tmp_path / "in", tmp_path / "out", "-q")
    got = tensors_of(tmp_path / "out")
    official_model, _ = official(tmp_path / "in", bits=4, group_size=64)
    same_tensors(got, formats.weights_of(official_model))
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert written["quantization"]["model.layers.0.mlp.gate"] == {
        "bits": 8, "group_size": 64, "mode": "affine"}
    formats.run(tmp_path / "out")


VENDORS = {"fp8": formats.fp8_blocks, "modelopt": formats.modelopt,
           "bitnet": lambda: formats.bitnet("autobitlinear"),
           "packed_mxfp4": formats.packed_mxfp4}


@pytest.fixture(params=VENDORS)
def vendor(request, tmp_path):
    """A checkpoint in a vendor's format, and its values as float32."""
    config, tensors, dense = VENDORS[request.param]()
    formats.write(tmp_path / "in", config, tensors)
    return request.param, tmp_path / "in", config, dense


def test_vendor_formats_become_mlxs(vendor, tmp_path):
    name, source, config, dense = vendor
    convert(source, tmp_path / "out")
    before, _ = formats.run(source)
    after, log = formats.run(tmp_path / "out")
    assert formats.distance(after, before) <= 1e-6
    for word in ("[fp8]", "[modelopt]", "[bitnet]", "[mxfp4]", "not used"):
        assert word not in log, log
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert "quant_method" not in json.dumps(written)
    if name != "modelopt":  # its global scales are no part of mlx-lm's layers
        model, _ = utils.load_model(tmp_path / "out")
        expected = formats.dense_logits(config, dense)
        assert formats.distance(formats.logits_of(model.apply(
            lambda v: v.astype(mx.float32)
            if mx.issubdtype(v.dtype, mx.floating) else v)),
            expected) <= formats.EXACT


def test_vendor_formats_become_dense(vendor, tmp_path):
    _, source, config, dense = vendor
    convert(source, tmp_path / "out", "--dequantize", "--dtype", "float32")
    got = tensors_of(tmp_path / "out")
    assert got.keys() == dense.keys()
    for name, value in dense.items():
        np.testing.assert_allclose(np.array(got[name]), value, rtol=2e-7,
                                   atol=1e-9, err_msg=name)


def test_vendor_formats_are_requantised(vendor, tmp_path):
    _, source, config, dense = vendor
    convert(source, tmp_path / "out", "--q-bits", 6, "--q-group-size", 32,
            "--dtype", "float32")
    got = tensors_of(tmp_path / "out")
    for path in formats.linears(dense):
        codes, scales, biases = mx.quantize(
            mx.array(dense[path + ".weight"]), group_size=32, bits=6)
        # Values within a rounding of ours: nearly all codes, no scale far off.
        ours = np.array(got[path + ".weight"])
        assert (ours != np.array(codes)).mean() < 0.02, path
        np.testing.assert_allclose(np.array(got[path + ".scales"]),
                                   np.array(scales), rtol=1e-5)
    logits, _ = formats.run(tmp_path / "out")
    expected = formats.dense_logits(config, dense)
    assert np.sqrt(((logits - expected) ** 2).sum()
                   / (expected ** 2).sum()) < 0.1


@pytest.mark.parametrize("prefix", ["language_model.",
                                    "model.language_model."])
def test_wrapped_names_are_quantised_and_kept(tmp_path, prefix):
    config = config_of("qwen3", "float32")
    plain = make(tmp_path / "plain", config)
    tensors = {}
    for name, value in tensors_of(plain).items():
        if prefix.startswith("model.") and name.startswith("model."):
            name = name[len("model."):]
        tensors[prefix + name] = value
    formats.write(tmp_path / "in", config, tensors)
    convert(tmp_path / "in", tmp_path / "out", "-q")
    convert(plain, tmp_path / "reference", "-q")
    got, _ = formats.run(tmp_path / "out")
    expected, _ = formats.run(tmp_path / "reference")
    np.testing.assert_array_equal(got, expected)


def test_a_family_that_is_not_built(tmp_path):
    """By names and shapes: norms, routers and towers stay as they are."""
    rng = np.random.default_rng(1)

    def matrix(*shape):
        return mx.array(rng.standard_normal(shape).astype(np.float32))

    tensors = {
        "model.embed_tokens.weight": matrix(96, 128),
        "model.layers.0.self_attn.q_proj.weight": matrix(128, 128),
        "model.layers.0.self_attn.q_proj.bias": matrix(128),
        "model.layers.0.input_layernorm.weight": matrix(128),
        "model.layers.0.mlp.gate.weight": matrix(8, 128),
        "model.layers.0.mlp.odd.weight": matrix(8, 100),
        "model.layers.0.conv1d.weight": matrix(128, 1, 4),
        "vision_tower.blocks.0.weight": matrix(128, 128),
    }
    formats.write(tmp_path / "in", {"model_type": "deepseek_v3"}, tensors)
    convert(tmp_path / "in", tmp_path / "out", "-q")
    got = tensors_of(tmp_path / "out")
    quantised = {name[:-len(".scales")] for name in got
                 if name.endswith(".scales")}
    assert quantised == {"model.embed_tokens",
                         "model.layers.0.self_attn.q_proj"}
    for path in quantised:
        planes = mx.quantize(tensors[path + ".weight"], group_size=64, bits=4)
        for plane, value in zip(("weight", "scales", "biases"), planes):
            assert raw(got[f"{path}.{plane}"]) == raw(value)
    for name in tensors.keys() - {path + ".weight" for path in quantised}:
        assert raw(got[name]) == raw(tensors[name]), name
