"""mlxcel/weights against MLX, numpy and the safetensors package, through
weights_probe."""

import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core")
safetensors = pytest.importorskip("safetensors")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import synthetic  # noqa: E402

BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", ROOT / "build" / "release"))
PROBE = BUILD / "weights_probe"
BITS = [2, 3, 4, 5, 6, 8]
GROUPS = [32, 64, 128]

pytestmark = pytest.mark.skipif(
    not PROBE.exists(), reason="weights_probe is not built")


def probe(*arguments):
    done = subprocess.run([PROBE, *map(str, arguments)], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bits_of(array):
    return np.asarray(array, dtype=np.float32).view(np.uint32)


def matrices():
    """(name, float32 matrix): ordinary values and what goes wrong easily."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((16, 384)).astype(np.float32)
    yield "normal", normal
    yield "bfloat16", (normal.view(np.uint32) & 0xFFFF0000).view(np.float32)
    yield "wide", normal * np.exp2(rng.integers(-40, 40, normal.shape)
                                   ).astype(np.float32)
    yield "positive", np.abs(normal) + 1
    yield "negative", -np.abs(normal) - 1
    yield "constant", np.full((4, 128), 0.3, np.float32)
    yield "zeros", np.zeros((4, 128), np.float32)
    yield "tiny", normal * np.float32(1e-9)
    steps = np.arange(2048, dtype=np.float32).reshape(16, 128) % 15
    yield "lattice", steps - 7
    yield "halves", (steps - 7) / 2


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", GROUPS)
def test_quantize_affine_is_mlx(tmp_path, bits, group):
    for name, values in matrices():
        (tmp_path / "in").write_bytes(values.tobytes())
        rows, cols = values.shape
        probe("quantize", tmp_path / "in", rows, cols, bits, group,
              tmp_path / "out")
        data = np.fromfile(tmp_path / "out", np.uint32)
        codes, scales, biases = mx.quantize(
            mx.array(values), group_size=group, bits=bits)
        wanted = np.concatenate([
            np.array(codes).ravel(), bits_of(scales).ravel(),
            bits_of(biases).ravel()])
        np.testing.assert_array_equal(data, wanted, err_msg=name)


def write_planes(folder, planes, config):
    mx.save_safetensors(str(folder / "model.safetensors"),
                        {f"m.{key}": value for key, value in planes.items()})
    (folder / "config.json").write_text(json.dumps(config))


def dequantized(folder, rows, cols):
    text = probe("dequantize", folder, "m", rows, cols,
                 folder / "config.json", folder / "out")
    values = np.fromfile(folder / "out", np.float32).reshape(rows, cols)
    return text.strip(), values


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", GROUPS)
def test_dequantize_affine_is_mlx(tmp_path, bits, group, dtype):
    values = np.random.default_rng(bits).standard_normal((6, 256))
    codes, scales, biases = mx.quantize(
        mx.array(values).astype(getattr(mx, dtype)), group_size=group,
        bits=bits)
    write_planes(tmp_path,
                 {"weight": codes, "scales": scales, "biases": biases},
                 {"quantization": {"bits": bits, "group_size": group}})
    text, got = dequantized(tmp_path, 6, 256)
    assert text == f"affine {bits}-bit group {group}"
    wanted = mx.dequantize(codes, scales.astype(mx.float32),
                           biases.astype(mx.float32), group_size=group,
                           bits=bits)
    np.testing.assert_array_equal(bits_of(got), bits_of(wanted))


@pytest.mark.parametrize("mode,bits,group", [
    ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)])
def test_dequantize_block_float_is_mlx(tmp_path, mode, bits, group):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (8, 256 * bits // 8), np.uint8)
    # MLX reads the NaN codes of E4M3 as numbers and leaves 255 of E8M0 open.
    codes = np.where(codes & 0x7F == 0x7F, 0x11, codes) if bits == 8 else codes
    scales = rng.integers(0, 127 if mode == "nvfp4" else 255,
                          (8, 256 // group), np.uint8)
    if mode != "nvfp4":  # keep the products finite
        scales = np.clip(scales, 0, 240)
    packed = mx.array(codes.astype(np.uint8).view(np.uint32))
    scales = mx.array(scales)
    for config in ({"quantization": {"mode": mode}}, {}):
        write_planes(tmp_path, {"weight": packed, "scales": scales}, config)
        text, got = dequantized(tmp_path, 8, 256)
        assert text == f"{mode} {bits}-bit group {group}"
        wanted = mx.dequantize(packed, scales, group_size=group, bits=bits,
                               mode=mode, dtype=mx.float32)
        np.testing.assert_array_equal(bits_of(got), bits_of(wanted))


@pytest.mark.parametrize("mode", ["mxfp4", "mxfp8", "nvfp4"])
def test_block_float_of_mlx_loads_and_is_near(tmp_path, mode):
    values = np.random.default_rng(2).standard_normal((4, 128))
    codes, scales = mx.quantize(mx.array(values.astype(np.float32)), mode=mode)
    write_planes(tmp_path, {"weight": codes, "scales": scales}, {})
    _, got = dequantized(tmp_path, 4, 128)
    assert np.abs(got - values).mean() < 0.15


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dense_is_mlx(tmp_path, dtype):
    values = mx.array(np.random.default_rng(3).standard_normal((5, 7)) * 1e-3
                      ).astype(getattr(mx, dtype))
    write_planes(tmp_path, {"weight": values}, {})
    _, got = dequantized(tmp_path, 5, 7)
    np.testing.assert_array_equal(
        bits_of(got), bits_of(values.astype(mx.float32)))


def test_generator_is_what_it_says():
    # FNV-1a and SplitMix64 have published answers.
    key = 0xCBF29CE484222325
    key = ((key ^ ord("a")) * 0x100000001B3) % 2**64
    assert key == 0xAF63DC4C8601EC8C
    for byte in bytes(8):
        key = ((key ^ byte) * 0x100000001B3) % 2**64
    assert synthetic.stream_key("a", 0) == key
    assert synthetic.random_words(1234567, 3).tolist() == [
        6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("name,seed,centre,scale,count", [
    ("a", 0, 0.0, 1.0, 5), ("model.norm.weight", 7, 1.0, 0.25, 4099),
    ("ü.weight", 2**64 - 1, -0.3, 0.0371, 10001), ("", 1, 0.0, 1e-30, 64)])
def test_fill_is_its_twin(tmp_path, name, seed, centre, scale, count):
    probe("fill", name, seed, centre, scale, count, tmp_path / "out")
    wanted = synthetic.synthetic(name, (count,), seed, (centre, scale))
    np.testing.assert_array_equal(
        np.fromfile(tmp_path / "out", np.uint32), bits_of(wanted))


@pytest.mark.parametrize("name,shape", [
    ("a.weight", (7, 31)), ("a.weight", (7, 1)), ("a.weight", (3, 7, 33)),
    ("a.weight", (3, 7, 8)), ("a.weight", (3, 7, 9)),
    ("a.weight", (3, 5, 2, 11)), ("a.bias", (9,)), ("a.weight", (9,)),
    ("scalar", ()), ("a.weight", (4, 0)), ("a.bias", (3, 3))])
def test_range_is_its_twin(name, shape):
    got = tuple(map(float.fromhex, probe("range", name, *shape).split()))
    assert got == synthetic.synthetic_range(name, shape)


TABLE = [("model.embed_tokens.weight", (70, 128)), ("norm.weight", (128,)),
         ("odd.weight", (5, 33)), ("experts.weight", (2, 3, 256)),
         ("a.bias", (5,))]


@pytest.mark.parametrize("bits,group", [(0, 64), (2, 32), (3, 64), (4, 64),
                                        (5, 128), (6, 32), (8, 64)])
@pytest.mark.parametrize("name,dtype", [
    ("BF16", "bfloat16"), ("F16", "float16"), ("F32", "float32")])
def test_synth_is_what_mlx_makes(tmp_path, bits, group, name, dtype):
    table = [{"name": key, "shape": shape} for key, shape in TABLE]
    (tmp_path / "table.json").write_text(json.dumps(table))
    probe("synth", tmp_path / "table.json", tmp_path, bits, group, name, 5)
    got = mx.load(str(tmp_path / "model.safetensors"))
    wanted = {}
    for key, shape in TABLE:
        values = mx.array(synthetic.synthetic(key, shape, 5)
                          ).astype(getattr(mx, dtype))
        if bits and len(shape) > 1 and shape[-1] % group == 0:
            # Codes follow from the values before they are rounded to the
            # type of the checkpoint; for bfloat16 that is no rounding.
            exact = mx.array(synthetic.synthetic(key, shape, 5))
            planes = mx.quantize(exact, group_size=group, bits=bits)
            stem = key.removesuffix(".weight")
            wanted[key] = planes[0]
            wanted[stem + ".scales"] = planes[1].astype(values.dtype)
            wanted[stem + ".biases"] = planes[2].astype(values.dtype)
            if dtype == "bfloat16":
                same = mx.quantize(values, group_size=group, bits=bits)
                assert all(mx.array_equal(a, b.astype(a.dtype))
                           for a, b in zip(same, planes))
        else:
            wanted[key] = values
    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        assert got[key].dtype == value.dtype, key
        assert got[key].shape == value.shape, key
        assert mx.array_equal(got[key].view(mx.uint8), value.view(mx.uint8))
    # The header is not padded, and the reference implementation accepts it.
    with safetensors.safe_open(tmp_path / "model.safetensors", "np") as file:
        assert set(file.keys()) == wanted.keys()
        assert file.metadata() == {"format": "mlx"}


def headers(paths):
    lines = probe("header", *paths).splitlines()
    assert len(lines) == len(paths)
    return list(map(json.loads, lines))


def test_files_of_mlx_and_safetensors_are_read(tmp_path):
    from safetensors.numpy import save_file
    arrays = {"a": np.zeros((2, 3), np.float32), "b": np.zeros((), np.int64),
              "ü\"\\": np.zeros((0, 4), np.uint8),
              "z": np.ones((3,), np.bool_), "h": np.ones((5,), np.float16)}
    save_file(arrays, tmp_path / "st.safetensors", {"k": "v"})
    mx.save_safetensors(str(tmp_path / "mx.safetensors"),
                        {k: mx.array(v) for k, v in arrays.items()})
    for found in headers([tmp_path / "st.safetensors",
                          tmp_path / "mx.safetensors"]):
        shapes = {t["name"]: tuple(t["shape"]) for t in found["tensors"]}
        assert shapes == {k: v.shape for k, v in arrays.items()}


def mutate(good, rng):
    alphabet = b'{}[]":,0123456789eE+-.\\u\x80\xff \nFU8'
    data = bytearray(good)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[at] = rng.choice(alphabet)
        elif kind == 1:
            del data[at:at + rng.randint(1, 4)]
        else:
            data.insert(at, rng.choice(alphabet))
    return bytes(data)


def accepted_by_reference(data):
    try:
        return {name: tuple(view["shape"])
                for name, view in safetensors.deserialize(data)}
    except Exception:
        return None


def test_what_we_accept_the_reference_accepts(tmp_path):
    """Random damage: we are never laxer than the reference, and where both
    accept, both see the same tensors."""
    header = (b'{"__metadata__":{"a":"b"},'
              b'"x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},'
              b'"y":{"dtype":"U8","shape":[3],"data_offsets":[16,19]},'
              b'"z":{"dtype":"BF16","shape":[],"data_offsets":[19,21]}}   ')
    good = struct.pack("<Q", len(header)) + header + bytes(21)
    rng = random.Random(0)
    cases = [good] + [mutate(good, rng) for _ in range(3000)]
    # Damage inside the header alone, the length repaired.
    for _ in range(3000):
        text = mutate(header, rng)
        cases.append(struct.pack("<Q", len(text)) + text + bytes(21))
    paths = []
    for i, data in enumerate(cases):
        paths.append(tmp_path / str(i))
        paths[-1].write_bytes(data)
    both = 0
    for start in range(0, len(cases), 500):
        for path, found in zip(paths[start:start + 500],
                               headers(paths[start:start + 500])):
            if "error" in found:
                continue
            data = path.read_bytes()
            theirs = accepted_by_reference(data)
            ours = {t["name"]: tuple(t["shape"]) for t in found["tensors"]}
            assert ours == theirs, data
            both += 1
    assert both > 100
