"""The program from outside, and small checkpoints for it."""

import json
import os
import resource
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", ROOT / "build" / "release"))
MODELS = Path(os.environ.get("MLXCEL_MODELS_DIR", ROOT / ".deps" / "models"))
PROGRAM = BUILD / "mlxcel"
SMOLLM2 = "SmolLM2-135M-Instruct"

needs_program = pytest.mark.skipif(
    not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


@dataclass
class Result:
    status: int
    out: bytes
    err: str

    @property
    def text(self):
        return self.out.decode()


def environment(**changes):
    """Ours, without variables that change what the program does, and offline.
    """
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("MLXCEL_", "LLAMA_ARG_", "HF_"))}
    return {**kept, "MLXCEL_OFFLINE": "1", **changes}


def limited(memory=None, file_size=None):
    """For preexec_fn: bounds in bytes on address space and written files."""
    def apply():
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    return apply


def run(*arguments, stdin=b"", timeout=60, cwd=None, program=PROGRAM,
        memory=None, file_size=None, **variables):
    done = subprocess.run(
        [program, *arguments], input=stdin, capture_output=True,
        timeout=timeout, cwd=cwd, check=False, env=environment(**variables),
        preexec_fn=limited(memory, file_size))
    return Result(done.returncode, done.stdout,
                  done.stderr.decode(errors="backslashreplace"))


def start(*arguments, stdin=subprocess.DEVNULL, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([PROGRAM, *arguments], stdin=stdin,
                            env=environment(), **options)


def expect_failure(result, status, *parts):
    """One message on standard error that has the parts, and no output."""
    assert result.status == status, result
    assert result.out == b"", result
    lines = result.err.splitlines()
    assert lines and lines[-1].startswith("error: "), result.err
    assert len(result.err) < 5000, result.err[:5000]
    for part in parts:
        assert part in lines[-1], result.err


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)."""
    header, offset = {"__metadata__": {"format": "mlx"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def byte_alphabet():
    """The letters by which byte-level BPE writes bytes, in order of bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(other)) for b in range(256)]


END = 256  # the id of <|end|>


def write_byte_tokenizer(folder, template=None):
    """A tokenizer whose ids are the bytes of the text, then <|end|>."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False,
                  "trim_offsets": True, "use_regex": True}
    vocabulary = {letter: i for i, letter in enumerate(byte_alphabet())}
    vocabulary["<|end|>"] = END
    tokenizer = {
        "version": "1.0",
        "added_tokens": [
            {"id": END, "content": "<|end|>", "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False,
             "special": True}],
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = {"eos_token": "<|end|>"}
    if template is not None:
        settings["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


CHAT = ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WIDTH = 320  # hidden size and vocabulary of the letter model


def successor(endless):
    """What follows each byte: the next letter or digit; `é` after `Z`; the
    end after `z`, `9` and `é`; `a` after all else."""
    after = {i: ord("a") for i in range(WIDTH)}
    for run_of in (b"abcdefghijklmnopqrstuvwxyz", b"0123456789",
                   b"ABCDEFGHIJKLMNOPQRSTUVWXYZ\xc3\xa9"):
        for this, following in zip(run_of, run_of[1:]):
            after[this] = following
        after[run_of[-1]] = ord("a") if endless else END
    return after


LETTER_CONFIG = {
    "model_type": "llama", "hidden_size": WIDTH, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 64, "vocab_size": WIDTH, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "eos_token_id": END,
}


def letter_model(folder, template=CHAT, endless=False, **config):
    """A checkpoint that says what comes next in the alphabet: one-hot
    embeddings, layers that add nothing, a head that permutes."""
    folder.mkdir(parents=True, exist_ok=True)
    one = struct.pack("<H", 0x3f80)  # 1.0 in bfloat16

    def matrix(rows, cols, ones=()):
        data = bytearray(2 * rows * cols)
        for row, col in ones:
            at = 2 * (row * cols + col)
            data[at:at + 2] = one
        return "BF16", (rows, cols), bytes(data)

    def norm():
        return "BF16", (WIDTH,), one * WIDTH

    layer = "model.layers.0."
    tensors = {
        "lm_head.weight": matrix(
            WIDTH, WIDTH,
            [(after, i) for i, after in successor(endless).items()]),
        "model.embed_tokens.weight": matrix(
            WIDTH, WIDTH, [(i, i) for i in range(WIDTH)]),
        layer + "input_layernorm.weight": norm(),
        layer + "mlp.down_proj.weight": matrix(WIDTH, 64),
        layer + "mlp.gate_proj.weight": matrix(64, WIDTH),
        layer + "mlp.up_proj.weight": matrix(64, WIDTH),
        layer + "post_attention_layernorm.weight": norm(),
        layer + "self_attn.k_proj.weight": matrix(WIDTH // 2, WIDTH),
        layer + "self_attn.o_proj.weight": matrix(WIDTH, WIDTH),
        layer + "self_attn.q_proj.weight": matrix(WIDTH, WIDTH),
        layer + "self_attn.v_proj.weight": matrix(WIDTH // 2, WIDTH),
        "model.norm.weight": norm(),
    }
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({**LETTER_CONFIG, **config}))
    write_byte_tokenizer(folder, template)
    return folder


@pytest.fixture(scope="session")
def letters(tmp_path_factory):
    return letter_model(tmp_path_factory.mktemp("letters") / "model")


@pytest.fixture(scope="session")
def endless_letters(tmp_path_factory):
    return letter_model(tmp_path_factory.mktemp("endless") / "model",
                        endless=True, max_position_embeddings=1 << 20)


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory):
    """The converted SmolLM2; converted here if only the GGUF is there."""
    directory = MODELS / SMOLLM2
    if (directory / "config.json").exists():
        return directory
    gguf = MODELS / f"{SMOLLM2}.Q4_1.gguf"
    if not gguf.exists():
        pytest.skip(f"neither {directory} nor {gguf} is there (make model)")
    directory = tmp_path_factory.mktemp("smollm2") / SMOLLM2
    result = run("convert", gguf, directory, timeout=300)
    assert result.status == 0, result.err
    return directory
