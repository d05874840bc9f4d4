"""`synth`: a random checkpoint of every architecture, the same each time."""

import hashlib
import json

import pytest
from mlxcel_program import expect_failure, needs_program, run

pytestmark = needs_program

SIZES = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 192,
    "vocab_size": 224, "rms_norm_eps": 1e-6, "max_position_embeddings": 64,
}
FAMILIES = {
    "llama": {"tie_word_embeddings": False},
    "mistral": {"sliding_window": 16, "tie_word_embeddings": False},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"tie_word_embeddings": True},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2,
                  "moe_intermediate_size": 64},
    "gemma": {"hidden_act": "gelu_pytorch_tanh"},
}


def synth(folder, family, *options, out="model"):
    config = folder / "config.json"
    config.write_text(json.dumps(
        {"model_type": family, **SIZES, **FAMILIES[family]}))
    result = run("synth", config, folder / out, *options)
    assert result.status == 0, result.err
    assert result.out == b"" and "wrote " in result.err
    return folder / out


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.iterdir()}


def test_every_built_architecture_is_here():
    families = json.loads(run("arch", "--json").text)["families"]
    built = {name for family in families if family["status"] == "built"
             for name in family["model_types"]}
    assert built == set(FAMILIES)


@pytest.mark.parametrize("options", [
    [], ["--bits", "4"], ["--bits", "3", "--group-size", "32"],
    ["--dtype", "f32"]])
@pytest.mark.parametrize("family", FAMILIES)
def test_loads_and_is_the_same_each_time(family, options, tmp_path):
    first = synth(tmp_path, family, *options)
    assert set(digests(first)) == {"config.json", "model.safetensors"}
    assert digests(first) == digests(
        synth(tmp_path, family, *options, out="second"))
    other = synth(tmp_path, family, *options, "--seed", "1", out="third")
    assert digests(first)["model.safetensors"] != (
        digests(other)["model.safetensors"])
    result = run("score", "-m", first, "--tokens", "1,2,3,223", "--json")
    assert result.status == 0 and result.err == "", result.err
    perplexity = json.loads(result.out)["perplexity"]
    assert 1 < perplexity < 1e6


def test_config_tells_the_quantisation(tmp_path):
    quantised = synth(tmp_path, "qwen3", "--bits", "6", "--group-size", "128")
    config = json.loads((quantised / "config.json").read_text())
    assert config["quantization"] == {
        "group_size": 128, "bits": 6, "mode": "affine"}
    dense = synth(tmp_path, "qwen3", out="dense")
    assert "quantization" not in json.loads(
        (dense / "config.json").read_text())


def test_refusals(tmp_path):
    model = synth(tmp_path, "llama")
    before = digests(model)
    expect_failure(run("synth", tmp_path / "config.json", model), 2,
                   "already holds a checkpoint")
    assert digests(model) == before
    for text, parts in [
            ("{", ["config.json", "not valid JSON"]),
            ('{"model_type": "x"}', ['"x"', "arch"]),
            ('{"model_type": "llama"}', ["hidden_size"]),
            (json.dumps({"model_type": "llama", **SIZES,
                         "vocab_size": 10**12}), ["vocab_size"])]:
        (tmp_path / "config.json").write_text(text)
        result = run("synth", tmp_path / "config.json", tmp_path / "other")
        expect_failure(result, 1, *parts)
        assert not (tmp_path / "other").exists()
    expect_failure(run("synth", tmp_path / "none.json", tmp_path / "other"), 1,
                   "none.json")


def test_full_disk_leaves_nothing(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(
        {"model_type": "llama", **SIZES, **FAMILIES["llama"]}))
    result = run("synth", tmp_path / "config.json", tmp_path / "out",
                 file_size=10000)
    assert result.status == 1 and "model.safetensors" in result.err, result
    out = tmp_path / "out"
    assert not out.exists() or list(out.iterdir()) == []
