"""`mlxcel convert` against the official implementations: values against the
`gguf` package, whole models against mlx-lm, tokenizers against `tokenizers`
and `sentencepiece`."""

import json
import os
import subprocess
from pathlib import Path

import gguf
import numpy as np
import pytest

BUILD = os.environ.get("MLXCEL_BUILD_DIR")
MODELS = os.environ.get("MLXCEL_MODELS_DIR")
PROGRAM = Path(BUILD or "", "mlxcel")

pytestmark = pytest.mark.skipif(
    not BUILD or not PROGRAM.exists(), reason="needs MLXCEL_BUILD_DIR")

TEXTS = ["Hello world", " leading and  double  spaces", "it's 12345 o'clock",
         "tabs\tand\nnew\n\nlines", "naïve Straße 日本語 🚀", "a<end>b <end>",
         "x", "", "C++ f(x) == \"y\" // 3.14", "  ", "İstanbul ½ Ⅳ"]
CORPUS = ["the quick brown fox jumps over the lazy dog",
          "hello world hello there", "it's a test of spaces  and 12345 digits",
          "naïve Straße", "f(x) == y"] * 20

# The tiny models: odd sizes, more query heads than key heads, K types need
# rows of 256.
HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, VOCAB, LAYERS = 256, 512, 8, 2, 40, 2
DIM = {"llama": 32, "qwen2": 32, "qwen3": 48, "gemma": 64}
HF_NAMES = {"attn_norm": "input_layernorm",
            "ffn_norm": "post_attention_layernorm",
            "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
            "attn_q_norm": "self_attn.q_norm",
            "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj",
            "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def convert(source, out, *options):
    done = subprocess.run([PROGRAM, "convert", source, out, *options],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def permute(weights, heads):
    """LlamaModel.permute of llama.cpp's conversion/llama.py."""
    return (weights.reshape(heads, 2, weights.shape[0] // heads // 2,
                            *weights.shape[1:])
            .swapaxes(1, 2).reshape(weights.shape))


def random_blocks(random, rows, columns, kind):
    """A quantised matrix as bytes [rows, bytes]."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    if elements <= 32:
        values = random.standard_normal((rows, columns)).astype(np.float32)
        return gguf.quantize(values * 0.05, kind)
    blocks = random.integers(0, 256, (rows * columns // elements, size),
                             dtype=np.uint8)
    scales = [208] if kind.name == "Q6_K" else [0, 2]
    for at in scales:
        value = random.uniform(2e-4, 4e-4, len(blocks)).astype(np.float16)
        blocks[:, at:at + 2] = value.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


class TinyModel:
    """A GGUF file with random weights and, under HF names and in HF order,
    the values that it stands for."""

    def __init__(self, path, architecture, kind, output=True, seed=3):
        self.architecture = architecture
        self.kind = kind
        self.random = np.random.default_rng(seed)
        self.values = {}
        self.writer = gguf.GGUFWriter(path, architecture)
        self.dim = DIM[architecture]
        self.write_keys()
        self.write_tensors(output)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()

    def write_keys(self):
        w = self.writer
        w.add_block_count(LAYERS)
        w.add_context_length(512)
        w.add_embedding_length(HIDDEN)
        w.add_feed_forward_length(INTERMEDIATE)
        w.add_head_count(HEADS)
        w.add_head_count_kv(KV_HEADS)
        w.add_layer_norm_rms_eps(3e-5)
        w.add_rope_freq_base(20000.0)
        if self.architecture in ("qwen3", "gemma"):
            w.add_key_length(self.dim)
            w.add_value_length(self.dim)
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("gpt-2")
        w.add_token_list(["a", "b", "ab"] + [f"t{i}" for i in range(3, VOCAB)])
        w.add_token_types([1] * VOCAB)
        w.add_token_merges(["a b"])

    def matrix(self, name, rows, columns, kind=None, heads=0):
        kind = kind or self.kind
        blocks = random_blocks(self.random, rows, columns, kind)
        values = gguf.dequantize(blocks, kind).reshape(rows, columns)
        if heads:  # the file holds permuted rows
            self.add(name, permute(blocks, heads), kind)
        else:
            self.add(name, blocks, kind)
        self.values[name] = values

    def add(self, name, data, kind):
        self.writer.add_tensor(name, np.ascontiguousarray(data),
                               raw_dtype=kind)

    def vector(self, name, size, around=0.0, heads=0):
        values = (around + 0.25 * self.random.standard_normal(size)).astype(
            np.float32)
        stored = permute(values, heads) if heads else values
        if self.architecture == "gemma" and name.endswith("norm.weight"):
            stored = values + np.float32(1)
            values = stored - np.float32(1)
        self.writer.add_tensor(name, stored)
        self.values[name] = values

    def write_tensors(self, output):
        llama = self.architecture == "llama"
        q8 = gguf.GGMLQuantizationType.Q8_0
        self.matrix("token_embd.weight", VOCAB, HIDDEN, q8)
        query, key = HEADS * self.dim, KV_HEADS * self.dim
        for i in range(LAYERS):
            b = f"blk.{i}."
            self.vector(b + "attn_norm.weight", HIDDEN, 1.0)
            self.matrix(b + "attn_q.weight", query, HIDDEN,
                        heads=HEADS if llama else 0)
            self.matrix(b + "attn_k.weight", key, HIDDEN,
                        heads=KV_HEADS if llama else 0)
            self.matrix(b + "attn_v.weight", key, HIDDEN)
            if self.architecture == "qwen2":
                self.vector(b + "attn_q.bias", query)
                self.vector(b + "attn_k.bias", key)
                self.vector(b + "attn_v.bias", key)
            if self.architecture == "qwen3":
                self.vector(b + "attn_q_norm.weight", self.dim, 1.0)
                self.vector(b + "attn_k_norm.weight", self.dim, 1.0)
            self.matrix(b + "attn_output.weight", HIDDEN, query,
                        None if query % 256 == 0 else q8)
            self.vector(b + "ffn_norm.weight", HIDDEN, 1.0)
            self.matrix(b + "ffn_gate.weight", INTERMEDIATE, HIDDEN)
            self.matrix(b + "ffn_up.weight", INTERMEDIATE, HIDDEN)
            self.matrix(b + "ffn_down.weight", HIDDEN, INTERMEDIATE)
        self.vector("output_norm.weight", HIDDEN, 1.0)
        self.tied = self.architecture == "gemma" or not output
        if not self.tied:
            self.matrix("output.weight", VOCAB, HIDDEN, q8)

    def hf_values(self):
        named = {}
        for name, values in self.values.items():
            stem, _, suffix = name.rpartition(".")
            if stem.startswith("blk."):
                _, i, part = stem.split(".")
                stem = f"model.layers.{i}.{HF_NAMES[part]}"
            else:
                stem = {"token_embd": "model.embed_tokens",
                        "output_norm": "model.norm",
                        "output": "lm_head"}[stem]
            named[f"{stem}.{suffix}"] = values
        return named

    def hf_config(self):
        return {"model_type": self.architecture, "hidden_size": HIDDEN,
                "num_hidden_layers": LAYERS,
                "intermediate_size": INTERMEDIATE,
                "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
                "head_dim": self.dim, "rms_norm_eps": 3e-5,
                "rope_theta": 20000.0, "vocab_size": VOCAB,
                "max_position_embeddings": 512,
                "tie_word_embeddings": self.tied}


def load_output(out):
    import mlx.core as mx
    tensors = {}
    for file in sorted(Path(out).glob("*.safetensors")):
        tensors.update(mx.load(str(file)))
    return tensors


def output_values(tensors, name):
    """A tensor as float32, dequantised by MLX if it has scales."""
    import mlx.core as mx
    weight = tensors[name]
    scales = tensors.get(name.removesuffix("weight") + "scales")
    if scales is None or not name.endswith(".weight"):
        return np.array(weight.astype(mx.float32))
    biases = tensors[name.removesuffix("weight") + "biases"]
    bits = weight.shape[1] // scales.shape[1]
    return np.array(mx.dequantize(
        weight, scales.astype(mx.float32), biases.astype(mx.float32),
        group_size=32, bits=bits))


def relative_rms(got, wanted):
    error = np.square(got.astype(np.float64) - wanted).sum()
    return np.sqrt(error / np.square(wanted.astype(np.float64)).sum())


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0",
                                  "F16", "BF16", "Q4_K", "Q5_K", "Q6_K"])
def test_values_as_mlx_reads_them(tmp_path, kind):
    source = tmp_path / "m.gguf"
    model = TinyModel(source, "llama", gguf.GGMLQuantizationType[kind])
    convert(source, tmp_path / "out")
    tensors = load_output(tmp_path / "out")
    wanted = model.hf_values()
    bound = {"Q4_K": 1e-3, "Q5_K": 1e-3, "Q6_K": 6e-3}.get(kind, 0)
    for name, values in wanted.items():
        got = output_values(tensors, name)
        assert got.shape == values.shape
        if bound == 0 or "proj" not in name:
            np.testing.assert_array_equal(got, values, err_msg=name)
        else:
            assert 0 < relative_rms(got, values) < bound, name
    planes = {n.rpartition(".")[0] for n in wanted}
    assert {n.rpartition(".")[0] for n in tensors} == planes


def logits(folder):
    import mlx.core as mx
    from mlx.utils import tree_map
    from mlx_lm.utils import load_model
    model, _ = load_model(Path(folder))
    model.update(tree_map(
        lambda a: a.astype(mx.float32)
        if mx.issubdtype(a.dtype, mx.floating) else a, model.parameters()))
    tokens = mx.array([[3, 1, 4, 1, 5, 9, 2, 6, 35, 39, 0]])
    return np.array(model(tokens))[0]


@pytest.mark.parametrize("architecture, output", [
    ("llama", True), ("llama", False), ("qwen2", False), ("qwen3", True),
    ("qwen3", False), ("gemma", False)])
def test_model_gives_the_logits_of_its_values(tmp_path, architecture, output):
    """mlx-lm on the converted directory = mlx-lm on dense weights in HF order
    with a config written here."""
    import mlx.core as mx
    source = tmp_path / "m.gguf"
    model = TinyModel(source, architecture,
                      gguf.GGMLQuantizationType.Q4_1, output)
    convert(source, tmp_path / "out")
    dense = tmp_path / "dense"
    dense.mkdir()
    (dense / "config.json").write_text(json.dumps(model.hf_config()))
    mx.save_safetensors(
        str(dense / "model.safetensors"),
        {k: mx.array(v) for k, v in model.hf_values().items()},
        metadata={"format": "mlx"})
    wanted = logits(dense)
    got = logits(tmp_path / "out")
    scale = np.abs(wanted).max(axis=-1, keepdims=True)
    assert (np.abs(got - wanted) / scale).max() < 1e-4
    # The cases can fail: the wrong row order moves the logits.
    assert np.abs(wanted).max() > 0.1


def test_dense_option(tmp_path):
    source = tmp_path / "m.gguf"
    model = TinyModel(source, "llama", gguf.GGMLQuantizationType.Q4_1)
    report = convert(source, tmp_path / "out", "--dense")
    assert "relative RMS error" in report
    tensors = load_output(tmp_path / "out")
    assert not any(name.endswith("scales") for name in tensors)
    for name, values in model.hf_values().items():
        if name.endswith("proj.weight"):
            expected = values.astype(np.float16).astype(np.float32)
            np.testing.assert_array_equal(
                output_values(tensors, name), expected)


def write_tokenizer(path, keys):
    """A GGUF file of a one-layer model with the given tokenizer metadata."""
    vocab = len(keys["tokens"])
    w = gguf.GGUFWriter(path, "llama")
    w.add_block_count(1)
    w.add_context_length(64)
    w.add_embedding_length(32)
    w.add_feed_forward_length(32)
    w.add_head_count(1)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_tokenizer_model(keys["model"])
    w.add_tokenizer_pre(keys.get("pre", "default"))
    w.add_token_list(keys["tokens"])
    w.add_token_types(keys["types"])
    if "merges" in keys:
        w.add_token_merges(keys["merges"])
    if "scores" in keys:
        w.add_token_scores(keys["scores"])
    for name, value in keys.get("ids", {}).items():
        w.add_uint32(f"tokenizer.ggml.{name}_token_id", value)
    for name, value in keys.get("flags", {}).items():
        w.add_bool(f"tokenizer.ggml.{name}", value)
    if "template" in keys:
        w.add_chat_template(keys["template"])
    one = np.ones(32, np.float32)
    square = np.ones((32, 32), np.float32)
    w.add_tensor("token_embd.weight", np.ones((vocab, 32), np.float32))
    w.add_tensor("output_norm.weight", one)
    for name in ("attn_norm", "ffn_norm"):
        w.add_tensor(f"blk.0.{name}.weight", one)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate",
                 "ffn_up", "ffn_down"):
        w.add_tensor(f"blk.0.{name}.weight", square)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def official_pre_tokenizer(pre):
    from tokenizers import Regex, pre_tokenizers as p
    contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    words = (r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    byte_level = p.ByteLevel(add_prefix_space=False, use_regex=True)
    if pre == "smollm":
        return p.Sequence([p.Digits(individual_digits=True), byte_level])
    if pre == "gpt-2":
        return byte_level
    regex = contraction + words % ("{1,3}" if pre == "llama-bpe" else "")
    return p.Sequence([p.Split(Regex(regex), "isolated"),
                       p.ByteLevel(add_prefix_space=False, use_regex=False)])


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "llama-bpe", "qwen2"])
def test_byte_level_tokenizer(tmp_path, pre):
    """A tokenizer trained here, through GGUF and back: the same ids."""
    from tokenizers import (AddedToken, Tokenizer, decoders, models,
                            normalizers, pre_tokenizers, trainers)
    original = Tokenizer(models.BPE(ignore_merges=pre == "llama-bpe"))
    original.pre_tokenizer = official_pre_tokenizer(pre)
    original.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        original.normalizer = normalizers.NFC()
    original.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=330, special_tokens=["<s>", "<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    original.add_tokens([AddedToken("<tool>", normalized=False)])
    model = json.loads(original.to_str())["model"]
    vocab = original.get_vocab()
    tokens = sorted(vocab, key=vocab.get)
    kinds = {"<s>": 3, "<end>": 3, "<tool>": 4}
    source = tmp_path / "t.gguf"
    write_tokenizer(source, {
        "model": "gpt2", "pre": pre, "tokens": tokens,
        "types": [kinds.get(t, 1) for t in tokens],
        "merges": [" ".join(m) for m in model["merges"]],
        "ids": {"bos": vocab["<s>"], "eos": vocab["<end>"]},
        "flags": {"add_bos_token": False}})
    convert(source, tmp_path / "out")
    got = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    for text in TEXTS + ["call <tool>now</tool>"]:
        ids = original.encode(text).ids
        assert got.encode(text).ids == ids, text
        assert (got.decode(ids, skip_special_tokens=False)
                == original.decode(ids, skip_special_tokens=False))


@pytest.fixture(scope="module")
def sentencepiece_model(tmp_path_factory):
    import sentencepiece
    prefix = str(tmp_path_factory.mktemp("spm") / "m")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_prefix=prefix, vocab_size=340,
        model_type="bpe", byte_fallback=True, add_dummy_prefix=True,
        remove_extra_whitespaces=False, normalization_rule_name="identity",
        character_coverage=1.0, hard_vocab_limit=False, minloglevel=2)
    return prefix + ".model"


@pytest.mark.parametrize("space_prefix", [True, False])
def test_sentencepiece_tokenizer(tmp_path, sentencepiece_model, space_prefix):
    from sentencepiece import SentencePieceProcessor
    from tokenizers import Tokenizer
    spm = SentencePieceProcessor(model_file=sentencepiece_model)
    count = spm.vocab_size()
    types = [2 if spm.IsUnknown(i) else 3 if spm.IsControl(i)
             else 6 if spm.IsByte(i) else 1 for i in range(count)]
    source = tmp_path / "t.gguf"
    keys = {"model": "llama", "tokens": [spm.IdToPiece(i)
                                         for i in range(count)],
            "types": types, "scores": [spm.GetScore(i)
                                       for i in range(count)]}
    if not space_prefix:
        keys["flags"] = {"add_space_prefix": False}
    write_tokenizer(source, keys)
    convert(source, tmp_path / "out")
    got = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    space = spm.PieceToId("▁")
    for text in TEXTS:
        # Without the prefix: a text that begins with a space has it already.
        ids = spm.encode(text if space_prefix else text[1:])
        given = text if space_prefix else " " + text[1:] if text[1:] else ""
        encoded = got.encode(given).ids
        assert encoded == [1] + ids, text
        assert got.encode(given, add_special_tokens=False).ids == ids
        if space_prefix:
            assert got.decode(encoded) == spm.decode(ids)
    assert space >= 0


def test_transformers_loads_the_tokenizer(tmp_path, sentencepiece_model):
    from sentencepiece import SentencePieceProcessor
    from transformers import AutoTokenizer
    spm = SentencePieceProcessor(model_file=sentencepiece_model)
    count = spm.vocab_size()
    source = tmp_path / "t.gguf"
    write_tokenizer(source, {
        "model": "llama", "tokens": [spm.IdToPiece(i) for i in range(count)],
        "types": [3 if i < 3 else 6 if spm.IsByte(i) else 1
                  for i in range(count)],
        "scores": [spm.GetScore(i) for i in range(count)],
        "template": "{{ bos_token }}{% for m in messages %}[{{ m.content }}]"
                    "{% endfor %}{{ eos_token }}"})
    convert(source, tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.bos_token_id == 1 and tokenizer.eos_token_id == 2
    assert tokenizer.encode("hello world") == [1] + spm.encode("hello world")
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hello"}], tokenize=False)
    assert text == "<s>[hello]</s>"


SMOLLM2 = Path(MODELS or "", "SmolLM2-135M-Instruct.Q4_1.gguf")
needs_smollm2 = pytest.mark.skipif(
    not MODELS or not SMOLLM2.exists(), reason="needs the GGUF of SmolLM2")

# llama-completion --verbose-prompt of llama.cpp (llama-cpp-python 0.3.36).
SMOLLM2_TEXT = ("Hello world! It's 12345 o'clock; I'LL we've  two  spaces\ttab"
                "\nnewline über straße 日本語テスト مرحبا 🚀🔥 ½ Ⅳ 3.14159 $100"
                " <|im_start|>user foo_bar(baz) == \"x\"   \n   trailing  "
                "...!!! 1,000,000 C++ e=mc^2 ~/path | a+b=c `code`")
SMOLLM2_IDS = [
    19556, 905, 17, 657, 506, 216, 33, 34, 35, 36, 37, 263, 23, 17466, 43,
    339, 23, 16421, 392, 3543, 216, 827, 216, 5600, 197, 15999, 198, 28160,
    5549, 137, 593, 4040, 34878, 85, 17097, 241, 115, 40993, 179, 120, 248,
    11100, 224, 10391, 134, 11100, 226, 36395, 20602, 44626, 31462, 10805,
    15107, 244, 218, 10813, 238, 115, 216, 16738, 216, 173, 223, 113, 216, 35,
    30, 33, 36, 33, 37, 41, 1885, 33, 32, 32, 216, 1, 4093, 29856, 79, 6299,
    24, 45511, 25, 1758, 476, 104, 18, 333, 11181, 35079, 216, 4563, 29646,
    216, 33, 28, 32, 32, 32, 28, 32, 32, 32, 340, 11444, 297, 45, 21445, 78,
    34, 11417, 31, 1537, 2504, 253, 27, 82, 45, 83, 2179, 4635, 80]


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory):
    out = tmp_path_factory.mktemp("smollm2") / "out"
    convert(SMOLLM2, out)
    return out


@needs_smollm2
@pytest.mark.parametrize("layers", [
    [0, 17], pytest.param(range(30), marks=pytest.mark.slow)])
def test_smollm2_values(smollm2, layers):
    """The real file's values, in the order of its HF names."""
    tensors = load_output(smollm2)
    config = json.loads((smollm2 / "config.json").read_text())
    heads = {"attn_q": config["num_attention_heads"],
             "attn_k": config["num_key_value_heads"]}
    reader = gguf.GGUFReader(SMOLLM2)
    assert len(reader.tensors) == 272
    for tensor in reader.tensors:
        if (tensor.name.startswith("blk.")
                and int(tensor.name.split(".")[1]) not in layers):
            continue
        shape = tensor.shape[::-1]
        data = tensor.data
        if tensor.name == "token_embd.weight" and len(layers) < 30:
            data, shape = data[:1000], (1000, shape[1])
        values = gguf.dequantize(data, tensor.tensor_type).reshape(shape)
        stem = tensor.name.removesuffix(".weight")
        if stem.startswith("blk."):
            _, i, part = stem.split(".")
            stem = f"model.layers.{i}.{HF_NAMES[part]}"
            if part in heads:
                n = heads[part]
                values = (values.reshape(n, len(values) // n // 2, 2, -1)
                          .swapaxes(1, 2).reshape(values.shape))
        else:
            stem = {"token_embd": "model.embed_tokens",
                    "output_norm": "model.norm"}[stem]
        module = {name: plane[:len(values)] for name, plane in tensors.items()
                  if name.startswith(stem + ".")}
        np.testing.assert_array_equal(
            output_values(module, stem + ".weight"), values)


@needs_smollm2
def test_smollm2_tokens(smollm2):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))
    encoded = tokenizer.encode(SMOLLM2_TEXT).ids
    assert encoded == SMOLLM2_IDS
    assert tokenizer.decode(
        encoded, skip_special_tokens=False) == SMOLLM2_TEXT


@needs_smollm2
@pytest.mark.slow
def test_smollm2_answers(smollm2):
    from mlx_lm import generate, load
    model, tokenizer = load(str(smollm2))
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True)
    answer = generate(model, tokenizer, prompt=prompt, max_tokens=16)
    assert answer == "The capital of France is Paris."
