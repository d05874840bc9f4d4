"""Broken and hostile model directories and prompts, end to end: a clear error
with the right exit status, within bounded time and memory, nothing left
behind. tests/hostile/load_model_test.cpp has the full lists of fields.
"""

import json
import os
import shutil
import struct
import time

import pytest
from mlxcel_program import (  # noqa: F401
    CHAT, LETTER_CONFIG, LETTERS, endless_letters, expect_failure,
    letter_model, letters, needs_program, run, start)

pytestmark = needs_program
MEMORY = 4 << 30
SECONDS = 20


def ask(model, *options, **more):
    more.setdefault("timeout", SECONDS)
    return run("generate", "-m", model, "-p", "7", *options, memory=MEMORY,
               **more)


@pytest.fixture
def model(letters, tmp_path):  # noqa: F811
    """A model of one's own to break."""
    return shutil.copytree(letters, tmp_path / "model")


def set_config(model, text=None, **changes):
    if text is None:
        text = json.dumps({**LETTER_CONFIG, **changes})
    (model / "config.json").write_bytes(
        text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("changes,parts", [
    ({"model_type": None}, ["model_type", "missing"]),
    ({"model_type": 3}, ["model_type"]),
    ({"model_type": "KlearX"}, ['"KlearX"', "mlxcel arch"]),
    ({"model_type": "Klear"}, ["recognises Klear MoE", "arch --built"]),
    ({"model_type": "bert"}, ["BERT", "embedding", "mlxcel embed", "arch"]),
    ({"architectures": ["BertModel"]},
     ["Llama Embedding", "embedding model"]),
    ({"architectures": ["LlamaForSequenceClassification"]},
     ["reranker", '"LlamaForSequenceClassification"', '"llama"']),
    ({"architectures": ["LlamaForCausalLMEagle3"]}, ["drafter"]),
    ({"num_hidden_layers": 1e9}, ["num_hidden_layers", "1000000000"]),
    ({"num_hidden_layers": 4096}, ["missing", "model.layers.1."]),
    ({"num_attention_heads": -3},
     ["num_attention_heads: expected a positive integer, got -3"]),
    ({"num_key_value_heads": None, "num_attention_heads": None},
     ["num_attention_heads: required"]),
    ({"hidden_size": "wide"}, ["hidden_size", '"wide"']),
    ({"hidden_size": 1 << 62}, ["hidden_size"]),
    ({"vocab_size": 1 << 40}, ["vocab_size"]),
    ({"vocab_size": 321}, ["model.embed_tokens", "[320, 320]", "321"]),
    ({"head_dim": 81}, ["head_dim", "81"]),
    ({"max_position_embeddings": 10**18}, ["max_position_embeddings"]),
    ({"rope_scaling": {"type": "spiral", "factor": 2}},
     ["rope_scaling", '"spiral"']),
    ({"hidden_act": "wiggle"}, ["hidden_act", '"wiggle"']),
    ({"quantization": {"bits": 0, "group_size": 64}}, ["quantization.bits"]),
    ({"quantization": {"bits": 64, "group_size": 64}}, ["quantization.bits"]),
    ({"quantization": {"bits": 4, "group_size": 0}},
     ["quantization.group_size"]),
    ({"text_config": {"text_config": {"text_config": LETTER_CONFIG}}},
     ["hidden_size"]),
])
def test_config_fields(model, changes, parts):
    set_config(model, **changes)
    expect_failure(ask(model), 1, str(model), *parts)


@pytest.mark.parametrize("text", [
    "", "{", "[]", "nonsense", '{"a": 1, "a": 2}', "[" * 100000,
    '{"a":' * 100000, b'{"model_type": "\xff"}', b'{"a\0": 1}',
    '{"rope_theta": 1e999}'], ids=range(10))
def test_config_text(model, text):
    set_config(model, text)
    expect_failure(ask(model), 1, str(model / "config.json"))


def test_config_that_python_writes_is_read(model):
    text = "\ufeff" + json.dumps({**LETTER_CONFIG, "a": float("nan"),
                                  "b": [float("inf"), -float("inf")]})
    set_config(model, text[:-1] + ", }")
    assert ask(model).text == LETTERS + "\n"


def put(path, kind):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "huge":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind == "empty":
        path.touch()


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "zero",
                                  "loop", "huge", "empty"])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors",
                                  "tokenizer.json", "tokenizer_config.json"])
def test_other_things_in_a_files_place(model, name, kind):
    put(model / name, kind)
    result = ask(model, "--no-chat-template")
    if name == "tokenizer_config.json" and kind == "missing":
        assert result.status == 0, result
        return
    stem = "safetensors" if name == "model.safetensors" else name
    expect_failure(result, 1, str(model), stem)


def test_weights_cut_anywhere(model):
    path = model / "model.safetensors"
    for size in (path.stat().st_size - 1, 100000, 4096, 500, 8, 7, 1):
        os.truncate(path, size)
        expect_failure(ask(model), 1, "model.safetensors")


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 200 << 20, 10**7, 1, 0])
def test_weights_with_a_header_length_that_lies(model, length):
    path = model / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    expect_failure(ask(model), 1, "model.safetensors")


@pytest.mark.parametrize("name", ["../other.safetensors", "/etc/passwd",
                                  "a\0b", ""])
def test_index_that_names_other_files(model, name):
    (model / "model.safetensors").rename(model / "model-1.safetensors")
    (model / "model.safetensors.index.json").write_text(json.dumps(
        {"weight_map": {"lm_head.weight": name}}))
    shutil.copy(model / "model-1.safetensors",
                model.parent / "other.safetensors")
    expect_failure(ask(model), 1, "model.safetensors.index.json")


def test_a_download_that_is_incomplete(model):
    (model / "model.safetensors").rename(model / "model-1.safetensors")
    (model / "model.safetensors.index.json").write_text(json.dumps(
        {"weight_map": {"lm_head.weight": "model-1.safetensors",
                        "model.norm.weight": "model-2.safetensors"}}))
    expect_failure(ask(model), 1, "model-1.safetensors", "model-2.safetensors")


def test_tensor_that_is_missing_or_of_another_shape(model):
    path = model / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"lm_head.weight"', b'"lm_hood.weight"', 1))
    expect_failure(ask(model), 1, "missing: lm_head.weight")
    path.write_bytes(data.replace(b'"shape": [320, 320]',
                                  b'"shape": [640, 160]', 1))
    expect_failure(ask(model), 1, "lm_head.weight", "[640, 160]")


def test_weights_that_are_no_numbers(model):
    path = model / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:-640] + b"\xc0\x7f" * 320)
    expect_failure(ask(model, "--temp", "1"), 1, "logits", "not numbers")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "[" * 100000,
                                  '{"model": {"type": "BPE"}}',
                                  '{"model": 3, "added_tokens": {}}'],
                         ids=range(7))
def test_tokenizer_text(model, text):
    (model / "tokenizer.json").write_text(text)
    expect_failure(ask(model), 1, "tokenizer.json")


def test_tokenizer_with_more_tokens_than_the_model(model):
    """Like models whose tokenizer grew: an error where such a token is used."""
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["<far>"] = 5000
    tokenizer["added_tokens"].append(
        {**tokenizer["added_tokens"][0], "id": 5000, "content": "<far>"})
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert ask(model).text == LETTERS + "\n"
    result = run("generate", "-m", model, "-p", "a <far>")
    expect_failure(result, 1, "token id 5000", "320")


@pytest.mark.parametrize("template,part", [
    ("{% for i in range(10**9) %}{% for j in range(10**9) %}{% endfor %}"
     "{% endfor %}", "template"),
    ("{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
     "{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}", "template"),
    ("(" * 100000, None), ("{{ " + "(" * 100000, "template"),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "template"),
    ("{{ 'x' * 10**12 }}", "template"),
    ("{{ nothing.at.all }}", "template"),
], ids=range(7))
def test_templates(tmp_path, template, part):
    model = letter_model(tmp_path / "model", template=template)
    begin = time.monotonic()
    result = ask(model, timeout=60)
    if part is None:  # text alone: too long for the context
        expect_failure(result, 1, "context")
    else:
        expect_failure(result, 1, part, "--no-chat-template")
    assert time.monotonic() - begin < 30


def test_no_such_model(tmp_path):
    expect_failure(ask(tmp_path / "none"), 1, "none", "no such model directory")
    expect_failure(ask(tmp_path), 1, str(tmp_path), "config.json")
    expect_failure(ask("/dev/null"), 1, "/dev/null")
    expect_failure(ask("/dev/zero"), 1, "/dev/zero")
    expect_failure(ask(""), 2, "no model")


def test_a_gguf_is_not_run(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(100))
    expect_failure(ask(tmp_path / "model.gguf"), 1, "model.gguf",
                   "mlxcel convert")


# --- prompts ---

@pytest.mark.parametrize("data,parts", [
    (b"", ["empty"]), (b"\n", ["empty"]), (b"a\xffb", ["UTF-8", "byte 1"]),
    (b"\xed\xa0\x80", ["UTF-8"]), (b"a\0b", ["NUL", "byte 1"])],
    ids=range(5))
@pytest.mark.parametrize("source", ["pipe", "file"])
def test_prompts_that_are_no_text(letters, tmp_path, source, data,  # noqa: F811
                                  parts):
    if source == "pipe":
        result = run("generate", "-m", letters, stdin=data, memory=MEMORY)
        expect_failure(result, 1, "standard input", *parts)
    else:
        (tmp_path / "prompt").write_bytes(data)
        result = run("generate", "-m", letters, "-f", tmp_path / "prompt")
        expect_failure(result, 1, str(tmp_path / "prompt"), *parts)


def test_prompt_arguments_that_are_no_text(letters):  # noqa: F811
    expect_failure(
        run("generate", "-m", letters, "-p", "x", "--system", b"\xff"), 1,
        "--system", "UTF-8 at byte 0")
    expect_failure(run("generate", "-m", letters, "-p", b"\xff"), 1,
                   "--prompt", "UTF-8 at byte 0")
    expect_failure(run("generate", "-m", letters, "-p", ""), 1, "--prompt",
                   "empty")
    expect_failure(run("run", letters, "-p", ""), 1, "--prompt", "empty")


def test_prompts_that_are_no_file(letters, tmp_path):  # noqa: F811
    for name, part in [(tmp_path / "none", "none"), (tmp_path, "regular"),
                       ("/dev/zero", "regular")]:
        result = run("generate", "-m", letters, "-f", name)
        expect_failure(result, 1, str(name), part)
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 40)
    expect_failure(run("generate", "-m", letters, "-f", tmp_path / "huge",
                       memory=MEMORY), 1, "huge")


def test_a_pipe_without_end_is_bounded(letters):  # noqa: F811
    with open("/dev/zero", "rb") as zero:
        child = start("generate", "-m", letters, stdin=zero)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 1 and out == b""
    assert b"standard input" in err


@pytest.mark.parametrize("length", [4096, 4097, 1 << 20])
def test_prompt_longer_than_the_context(letters, length):  # noqa: F811
    result = run("generate", "-m", letters, "--no-chat-template",
                 stdin=b"x" * length, memory=MEMORY)
    expect_failure(result, 1, f"the prompt has {length} tokens", "4096")


def test_prompt_that_fills_the_context(letters):  # noqa: F811
    result = run("generate", "-m", letters, "--no-chat-template",
                 stdin=b"x" * 4095)
    assert (result.status, result.out) == (0, b"y\n"), result.err


# --- while it runs ---

def test_a_shard_cut_while_in_use(endless_letters, tmp_path):  # noqa: F811
    model = shutil.copytree(endless_letters, tmp_path / "model")
    with open(tmp_path / "out", "wb") as out:
        child = start("generate", "-m", model, "-p", "a", stdout=out)
        deadline = time.monotonic() + 60
        while (tmp_path / "out").stat().st_size < 100:
            assert time.monotonic() < deadline and child.poll() is None
            time.sleep(0.005)
        os.truncate(model / "model.safetensors", 4096)
        err = child.communicate(timeout=60)[1].decode()
    assert child.returncode == 1, err
    last = err.splitlines()[-1]
    assert last.startswith("error: ") and "model.safetensors" in last
    text = (tmp_path / "out").read_text()
    assert text.rstrip("\n") in LETTERS + LETTERS * 50000


def test_out_of_memory_is_an_error(letters):  # noqa: F811
    """Not enough address space for a context: a message, no crash."""
    model = letters
    result = run("generate", "-m", model, "-p", "7", memory=256 << 20)
    assert result.status in (0, 1), result
    if result.status == 1:
        assert "memory" in result.err or "cannot" in result.err
