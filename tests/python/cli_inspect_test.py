"""`inspect`: what a folder is and what it costs; the check before loading."""

import json
import os
import re
import resource
import struct
import time

import pytest
from mlxcel_program import (ROOT, expect_failure, letter_model,  # noqa: F401
                            letters, needs_program, run, smollm2,
                            write_safetensors)

pytestmark = needs_program

GLM4_MOE = {  # recognised, not built
    "model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"],
    "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "quantization": {"bits": 4, "group_size": 64},
}
QWEN3_MOE = {  # configuration_qwen3_moe.py, the published 30B-A3B
    **GLM4_MOE, "model_type": "qwen3_moe",
    "architectures": ["Qwen3MoeForCausalLM"], "intermediate_size": 6144,
    "moe_intermediate_size": 768, "num_experts": 128,
    "num_experts_per_tok": 8, "norm_topk_prob": True, "rms_norm_eps": 1e-6,
}
def inspect(*arguments, **options):
    result = run("inspect", *arguments, "--json", **options)
    assert result.status == 0, result.err
    return json.loads(result.text)


def folder(path, config, tensors=None):
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    if tensors is not None:
        write_safetensors(path / "model.safetensors", tensors)
    return path


def zeros(*shape, dtype="BF16", width=2):
    size = width
    for n in shape:
        size *= n
    return dtype, shape, bytes(size)


def test_a_model_that_runs(letters):
    report = inspect(letters, "-n", "100")
    assert report["family"] == "llama" and report["status"] == "built"
    assert report["kind"] == "generation" and report["model_type"] == "llama"
    assert report["formats"] == [
        {"format": "bf16", "tensors": 12, "bytes": report["file_bytes"]}]
    assert report["missing_tensors"] == report["unexpected_tensors"] == []
    assert report["parameters"] * 2 == report["file_bytes"]
    assert report["tokenizer_files"] == ["tokenizer.json",
                                         "tokenizer_config.json"]
    assert report["chat_template"].endswith("tokenizer_config.json")
    # 1 layer, 2 heads of 80, keys and values, float16, 4 blocks of 32.
    assert report["kv_bytes_per_token"]["fp16"] == 2 * 80 * 2 * 2
    assert report["kv_bytes_total"] == 128 * 640
    assert report["weights_bytes"] >= report["file_bytes"]
    assert report["net_bytes"] == (
        report["weights_bytes"] + report["kv_bytes_total"]
        + report["activation_bytes"])
    assert report["total_bytes"] == (
        report["net_bytes"] + report["headroom_bytes"])
    assert report["headroom_bytes"] == pytest.approx(
        0.2 * (report["weights_bytes"] + report["kv_bytes_total"]), abs=2)
    assert report["fits"] is True and report["unknown"] == {}


def test_text_says_what_it_is(letters):
    result = run("inspect", letters)
    assert result.status == 0 and result.err == ""
    for part in ["Llama 1-3", "generation", "config_backed", "bf16: 12 tensors",
                 "exactly those that the family has", "tokenizer.json",
                 "8192 tokens, batch 1", "FITS, "]:
        assert part in result.text, part


def test_sizes_follow_the_inputs(letters):
    one = inspect(letters, "-n", "4096")
    four = inspect(letters, "-n", "4096", "--batch", "4", "--quant", "int4")
    assert four["kv_bytes_total"] == 4 * one["kv_bytes_total"]
    assert four["inputs"] == {"max_tokens": 4096, "batch": 4,
                              "kv_cache_mode": "fp16", "quant": "int4"}
    exact = inspect(letters, "-n", "4096", "--exact")
    assert exact["kv_bytes_total"] == 2 * one["kv_bytes_total"]
    assert exact["inputs"]["kv_cache_mode"] == "f32"


def test_exit_status_is_0_when_it_does_not_fit(letters):
    result = run("inspect", letters, MLXCEL_MEMORY_LIMIT="100K")
    assert result.status == 0
    assert "DOES NOT FIT, " in result.text and "--force" in result.text
    report = inspect(letters, MLXCEL_MEMORY_LIMIT="100K")
    assert report["fits"] is False and report["budget_bytes"] == 102400
    assert report["budget_source"] == "MLXCEL_MEMORY_LIMIT"


@pytest.mark.parametrize("value,share", [("1.5", 0.5), ("1", 0), ("0.5", 0)])
def test_headroom_factor(letters, value, share):
    report = inspect(letters, MLXCEL_HEADROOM_FACTOR=value)
    base = report["weights_bytes"] + report["kv_bytes_total"]
    assert report["headroom_bytes"] == pytest.approx(share * base, abs=2)


def test_variables_that_are_wrong(letters):
    result = run("inspect", letters, MLXCEL_HEADROOM_FACTOR="-1")
    assert result.status == 0 and "MLXCEL_HEADROOM_FACTOR" in result.err
    assert "factor 1.20" in result.text
    expect_failure(run("inspect", letters, MLXCEL_ACTIVATION_MULT="2"), 2,
                   "MLXCEL_ACTIVATION_MULT")
    expect_failure(run("inspect", letters, MLXCEL_MEMORY_LIMIT="lots"), 2,
                   "MLXCEL_MEMORY_LIMIT", "lots")


def test_only_recognised(tmp_path):
    path = folder(tmp_path, GLM4_MOE,
                  {"model.norm.weight": zeros(2048)})
    report = inspect(path, "-n", "1000")
    assert report["family"] == "glm4_moe" and report["status"] == "recognised"
    # 48 layers, 4 heads of 128, keys and values, float16.
    assert report["kv_bytes_per_token"]["fp16"] == 98304
    assert report["kv_bytes_total"] == 98304 * 1024
    assert report["activation_bytes"] is None and report["total_bytes"] is None
    assert report["fits"] is None
    assert "can't run it" in report["unknown"]["activation_bytes"]
    assert report["missing_tensors"] is None
    text = run("inspect", path).text
    assert "unknown" in text and "UNKNOWN whether it fits" in text
    # What is known is too much already.
    assert inspect(path, MLXCEL_MEMORY_LIMIT="1M")["fits"] is False


def expert_checkpoint(path, single):
    """Two layers of a small Qwen3Moe, by synth; the experts one by one."""
    config = {**QWEN3_MOE, "hidden_size": 128, "num_hidden_layers": 2,
              "vocab_size": 96, "moe_intermediate_size": 64, "num_experts": 6,
              "num_experts_per_tok": 2, "num_attention_heads": 4}
    config.pop("quantization")
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    made = run("synth", path / "config.json", path / "model", "--bits", "4")
    assert made.status == 0, made.err
    if single:
        raw = (path / "model/model.safetensors").read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        tensors = {}
        for name, entry in json.loads(raw[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + at for at in entry["data_offsets"])
            dtype, shape = entry["dtype"], entry["shape"]
            if "switch_mlp" not in name:
                tensors[name] = dtype, shape, raw[begin:end]
                continue
            width = (end - begin) // shape[0]
            for e in range(shape[0]):
                at = begin + e * width
                tensors[name.replace("switch_mlp", f"experts.{e}")] = (
                    dtype, shape[1:], raw[at:at + width])
        write_safetensors(path / "model/model.safetensors", tensors)
    return path / "model"


def test_experts_single_or_stacked(tmp_path):
    stacked = inspect(expert_checkpoint(tmp_path / "a", False))
    single = inspect(expert_checkpoint(tmp_path / "b", True))
    for report in (stacked, single):
        assert report["status"] == "built"
        assert report["missing_tensors"] == report["unexpected_tensors"] == []
        assert report["activation_bytes"] > 0
    expert = 3 * 64 * 128
    attention = (4 + 2 * 4 + 4) * 128 * 128 + 2 * 128
    assert single["parameters"] == stacked["parameters"] == 2 * 96 * 128 + (
        2 * (attention + 6 * expert + 6 * 128 + 2 * 128)) + 128
    assert single["tensors"] > stacked["tensors"]
    for key in ("weights_bytes", "activation_bytes", "kv_bytes_total"):
        assert single[key] == stacked[key]


def test_what_it_does_not_do(tmp_path):
    path = folder(tmp_path, {"model_type": "bert",
                             "architectures": ["BertModel"]})
    (path / "modules.json").write_text("[]")
    report = inspect(path)
    assert report["kind"] == "embedding" and "mlxcel embed" in report["use"]
    assert report["kv_bytes_total"] == 0
    assert report["weights_bytes"] is None
    assert ".safetensors" in report["weights_problem"]


def test_without_weights_the_config_of_a_family_that_runs_is_enough(
        letters, tmp_path):
    config = json.loads((letters / "config.json").read_text())
    report = inspect(folder(tmp_path, config), "-n", "100")
    assert report["weights_source"] == "analytical_config"
    whole = inspect(letters, "-n", "100")
    for key in ["weights_bytes", "kv_bytes_total", "activation_bytes"]:
        assert report[key] == whole[key], key


def test_missing_and_unexpected_tensors(letters, tmp_path):
    path = letter_model(tmp_path / "model")
    data = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(
        data.replace(b"up_proj.weight", b"uq_proj.weight"))
    report = inspect(path)
    assert report["missing_tensors"] == ["model.layers.0.mlp.up_proj.weight"]
    assert report["unexpected_tensors"] == ["model.layers.0.mlp.uq_proj.weight"]
    assert "missing" in report["unknown"]["activation_bytes"]


def test_quantised_without_a_table(tmp_path):
    module = "model.layers.0.mlp.switch_mlp.up_proj"
    path = folder(tmp_path, GLM4_MOE, {
        f"{module}.weight": zeros(2, 8, 32, dtype="U32", width=4),
        f"{module}.scales": zeros(2, 8, 4), f"{module}.biases": zeros(2, 8, 4),
        "model.norm.weight": zeros(256)})
    report = inspect(path)
    assert report["formats"][0] == {
        "format": "affine 4-bit group 64", "tensors": 1,
        "bytes": 2 * 8 * (32 * 4 + 2 * 4 * 2)}
    assert report["parameters"] == 2 * 8 * 256 + 256
    # The same planes without a declaration may be 4 bits of 64 or 8 of 32.
    config = {k: v for k, v in GLM4_MOE.items() if k != "quantization"}
    folder(tmp_path, config)
    report = inspect(path)
    assert "undetermined" in report["formats"][0]["format"]
    assert report["parameters"] is None


@pytest.mark.parametrize("change,parts", [
    (lambda data: data[:-10], ["truncated"]),
    (lambda data: b"\xff" * 8 + data[8:], ["header"]),
])
def test_broken_shards_are_errors(tmp_path, change, parts):
    path = letter_model(tmp_path / "model")
    file = path / "model.safetensors"
    file.write_bytes(change(file.read_bytes()))
    expect_failure(run("inspect", path), 1, "model.safetensors", *parts)


def test_a_step_of_all_tokens_at_once_is_not_worked_out(letters):
    report = inspect(letters, "-n", str(1 << 30), MLXCEL_PREFILL_CHUNK="0")
    assert "MLXCEL_PREFILL_CHUNK" in report["unknown"]["activation_bytes"]
    assert report["kv_bytes_total"] == 640 << 30


def test_quantisation_that_is_not_loaded(tmp_path):
    path = letter_model(tmp_path / "model",
                        quantization_config={"quant_method": "gptq", "bits": 4})
    report = inspect(path)
    assert "gptq" in report["quantization_problem"]
    assert "gptq" in run("inspect", path).text


def test_every_field_is_documented(letters):
    text = (ROOT / "docs" / "inspect.md").read_text()
    report = inspect(letters)
    for key in [*report, *report["inputs"], *report["kv_bytes_per_token"],
                *report["formats"][0]]:
        assert f"`{key}`" in text, key


def test_incomplete_download(tmp_path):
    path = letter_model(tmp_path / "model")
    (path / "model.safetensors").rename(path / "a.safetensors")
    (path / "model.safetensors.index.json").write_text(json.dumps({
        "weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}))
    report = inspect(path)
    assert "incomplete" in report["weights_problem"]
    assert "b.safetensors" in report["weights_problem"]
    assert report["weights_source"] == "analytical_config"


def test_index_may_lie_about_the_size(tmp_path):
    path = letter_model(tmp_path / "model")
    before = inspect(path)
    names = [f"{stem}.weight" for stem in ["lm_head", "model.norm"]]
    (path / "model.safetensors.index.json").write_text(json.dumps({
        "metadata": {"total_size": 5},
        "weight_map": {name: "model.safetensors" for name in names}}))
    assert inspect(path)["weights_bytes"] == before["weights_bytes"]


def test_foreign_files(tmp_path):
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF" + struct.pack("<I", 3) + bytes(100))
    expect_failure(run("inspect", gguf), 1, "GGUF", "mlxcel convert")
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02")
    expect_failure(run("inspect", tmp_path / "pytorch_model.bin"), 1, "pickle")
    # No config: what is there is listed, and what to do.
    expect_failure(run("inspect", tmp_path), 1, "config.json", "model.gguf",
                   "pytorch_model.bin", "mlxcel convert")


@pytest.mark.parametrize("arguments,parts", [
    (["--kv-cache-mode", "int8"], ["--kv-cache-mode", "int8"]),
    (["--tokenize-whole"], ["--tokenize"]),
])
def test_what_is_refused(letters, arguments, parts):
    expect_failure(run("inspect", letters, *arguments), 2, *parts)


@pytest.mark.parametrize("arguments", [
    ["--quant", "q4"], ["-n", "0"], ["--batch", "0"], ["--max-kv-size", "1"]])
def test_usage(letters, arguments):
    result = run("inspect", letters, *arguments)
    assert result.status == 2 and result.out == b""


def test_tokenize(letters, tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("ab\n\n<|end|>")
    result = run("inspect", letters, "--tokenize", file)
    assert result.text == "[97,98]\n[]\n[60,124,101,110,100,124,62]\n"
    result = run("inspect", letters, "--tokenize", file, "--tokenize-whole")
    assert result.text == "[97,98,10,10,60,124,101,110,100,124,62]\n"


# --- the check before loading ---

def test_generate_refuses_what_does_not_fit(letters):
    result = run("generate", "-m", letters, "-p", "a", "-n", "3",
                 MLXCEL_MEMORY_LIMIT="100K")
    expect_failure(result, 1, "[memory]", "(102400 bytes)", "too much",
                   "--force", "--no-memory-check")
    for part in ["weights", "KV cache", "activations", "DOES NOT FIT"]:
        assert part in result.err, part


@pytest.mark.parametrize("flag", ["--force", "--no-memory-check"])
def test_force_makes_it_a_warning(letters, flag):
    result = run("generate", "-m", letters, "-p", "x", "-n", "2", flag,
                 "--no-chat-template", MLXCEL_MEMORY_LIMIT="100K")
    assert result.status == 0 and result.text == "yz\n"
    assert "warning: [memory]" in result.err


def test_context_counts_prompt_and_reply(letters):
    # 4096 tokens of state take 2.5 MB, a few next to nothing.
    limit = str(int(inspect(letters, "-n", "64")["total_bytes"] * 1.2))
    short = run("generate", "-m", letters, "-p", "x", "-n", "2",
                "--no-chat-template", MLXCEL_MEMORY_LIMIT=limit)
    assert short.status == 0, short.err
    long = run("generate", "-m", letters, "-p", "x", "--no-chat-template",
               MLXCEL_MEMORY_LIMIT=limit)
    expect_failure(long, 1, "[memory]", "tokens would fit")


def test_estimate_memory(letters):
    result = run("generate", "-m", letters, "-p", "w", "-n", "3",
                 "--no-chat-template", "--estimate-memory")
    assert result.status == 0 and result.text == "xyz\n"
    assert "4 tokens, batch 1" in result.err and "FITS" in result.err
    line = [x for x in result.err.splitlines() if x.startswith("memory: ")]
    assert len(line) == 1 and "ratio" in line[0] and "resident" in line[0]


# --- every architecture ---

def read_case(path):
    """Sections of a file of tests/detection by their heads."""
    sections, head = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("--- "):
            head = line[4:]
            sections[head] = []
        elif head:
            sections[head].append(line)
    return sections


def cases(kind):
    """Those that need text files alone and ask what a checkpoint is."""
    for path in sorted((ROOT / "tests" / "detection" / kind).glob("*.case")):
        sections = read_case(path)
        special = [head for head in sections if head.split()[0] in {
            "tensors", "index", "bytes", "link"}]
        if not special and sections.get("do", ["detect"]) == ["detect"] and (
                not any(head.startswith("do ") for head in sections)):
            yield pytest.param(sections, id=path.stem)


def make_case(sections, directory):
    for head, lines in sections.items():
        if head != "expect":
            file = directory / head
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(lines) + "\n")
    return directory


@pytest.mark.parametrize("sections", list(cases("rows")))
def test_every_architecture_is_told(sections, tmp_path):
    expected = dict(line.split(": ", 1) for line in sections["expect"])
    report = inspect(make_case(sections, tmp_path))
    assert report["family"] == expected["type"]
    assert report["kind"] == expected["kind"]
    assert expected["routes"].split() == [report["directory_route"],
                                          report["weight_route"]]
    # Known, or with a reason.
    for key in ["weights_bytes", "kv_bytes_total", "activation_bytes"]:
        assert report[key] is not None or report["unknown"][key], key


@pytest.mark.parametrize("sections", list(cases("errors")))
def test_what_is_refused_is_refused_with_what_is_there(sections, tmp_path):
    result = run("inspect", make_case(sections, tmp_path))
    message = "\n".join(sections["expect"])
    assert message.startswith("error: ")
    assert result.status == 1 and result.out == b""
    assert message.replace("DIR", str(tmp_path)) in result.err
    assert "The directory holds: " in result.err


# --- speed ---

def test_the_check_costs_next_to_nothing(smollm2):
    times = []
    for _ in range(5):
        result = run("generate", "-m", smollm2, "-p", "x", "-n", "1",
                     MLXCEL_LOG="debug")
        found = re.search(r"\[memory\] estimated in ([0-9.]+) ms", result.err)
        times.append(float(found.group(1)))
    print(f"memory check of SmolLM2: {min(times)} ms")
    assert min(times) < 5, times


def sparse_shards(path, shards=30, tensors=100_000):
    """A checkpoint of experts whose payloads take no room on the disk."""
    # 44 layers of 250 experts with 9 tensors each, and 1000 that are unknown.
    folder(path, {**QWEN3_MOE, "num_hidden_layers": 44, "num_experts": 250})
    weight_map, per_shard = {}, tensors // shards + 1
    names = iter([
        f"model.layers.{layer}.mlp.experts.{expert}.{kind}_proj.{plane}"
        for layer in range(44) for expert in range(250)
        for kind in ["gate", "up", "down"]
        for plane in ["weight", "scales", "biases"]]
        + [f"other.{i}.weight" for i in range(1000)])
    left = tensors
    for shard in range(shards):
        header, offset = {"__metadata__": {"format": "mlx"}}, 0
        for _ in range(min(per_shard, left)):
            name = next(names)
            packed = name.endswith(".weight")
            shape = [768, 256 if packed else 32]
            size = shape[0] * shape[1] * (4 if packed else 2)
            header[name] = {"dtype": "U32" if packed else "BF16",
                            "shape": shape,
                            "data_offsets": [offset, offset + size]}
            offset += size
            weight_map[name] = f"model-{shard:05}.safetensors"
        left -= len(header) - 1
        text = json.dumps(header).encode()
        file = path / f"model-{shard:05}.safetensors"
        with open(file, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
        os.truncate(file, 8 + len(text) + offset)
    (path / "model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return path


def test_many_shards_and_tensors_are_quick(tmp_path):
    """By the clock or in processor time: of a machine that others use as well
    the clock alone says nothing, and two processors share the work."""
    path = sparse_shards(tmp_path / "model")
    times = []
    # The speed of a shared machine flips: one quick run of many shows it.
    while len(times) < 5 or (min(map(min, times)) >= 0.150
                             and len(times) < 40):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        report = inspect(path)
        passed = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((after.ru_utime - before.ru_utime
                      + after.ru_stime - before.ru_stime, passed))
    assert report["shards"] == 30 and report["tensors"] == 100_000
    assert report["formats"][0]["format"] == "affine 4-bit group 64"
    used, passed = min(times, key=min)
    print(f"30 shards, 100000 tensors: {used * 1e3:.0f} ms of processor time, "
          f"{passed * 1e3:.0f} ms passed")
    assert min(used, passed) < 0.150, times


def test_recommended_quantisation_is_the_widest_that_fits(tmp_path):
    config = {"model_type": "llama", "hidden_size": 1024,
              "num_hidden_layers": 8, "num_attention_heads": 16,
              "num_key_value_heads": 4, "intermediate_size": 4096,
              "vocab_size": 32000, "rms_norm_eps": 1e-6,
              "max_position_embeddings": 4096}
    path = folder(tmp_path / "model", config)
    # No file has weights yet, and headroom counts for nothing here.
    environment = {"MLXCEL_HEADROOM_FACTOR": "3"}

    def recommend(limit):
        return inspect(path, "--recommend-quant", "-n", "512",
                       MLXCEL_MEMORY_LIMIT=str(limit), **environment)

    report = recommend("64G")
    choices = {c["format"]: c for c in report["quantisations"]}
    assert list(choices) == ["bf16"] + [
        f"affine {bits}-bit group 64" for bits in (8, 6, 5, 4, 3, 2)]
    assert report["recommended_quantisation"] == "bf16"
    needs = [c["net_bytes"] for c in report["quantisations"]]
    assert needs == sorted(needs, reverse=True)
    # 4 bits and two bf16 a group of 64 are 4.5 bits a value.
    matrices = 2 * 32000 * 1024 + 8 * (
        2 * 1024 * 1024 + 2 * 256 * 1024 + 3 * 4096 * 1024)
    assert abs(choices["affine 4-bit group 64"]["weights_bytes"]
               - matrices * 4.5 / 8) < 0.01 * matrices
    for choice in report["quantisations"]:
        at = recommend(choice["net_bytes"])
        assert at["recommended_quantisation"] == choice["format"]
        below = recommend(choice["net_bytes"] - 1)
        assert below["recommended_quantisation"] != choice["format"]
    assert recommend(1 << 20)["recommended_quantisation"] is None
    limit = str(choices["affine 6-bit group 64"]["net_bytes"])
    text = run("inspect", path, "--recommend-quant", "-n", "512",
               MLXCEL_MEMORY_LIMIT=limit, **environment).text
    assert ("recommended: affine 6-bit group 64 (mlxcel convert --q-bits 6 "
            "--q-group-size 64)") in text


def test_recommended_quantisation_of_what_cannot_run(tmp_path):
    path = folder(tmp_path / "model", {"model_type": "deepseek_v3"})
    report = inspect(path, "--recommend-quant")
    assert report["quantisations"] == []
    assert report["recommended_quantisation"] is None
    assert "unknown" in run("inspect", path, "--recommend-quant").text
