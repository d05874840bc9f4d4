"""`score`: log-probabilities, logits, pieces; with and without tokenizer."""

import json
import math

import numpy as np
import pytest
from mlxcel_program import (  # noqa: F401
    LETTER_CONFIG, expect_failure, letters, needs_program, run)

pytestmark = needs_program

CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "vocab_size": 160, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128, "tie_word_embeddings": False,
}
TOKENS = [(7 * i * i + 3) % 160 for i in range(70)]
COMMAS = ",".join(map(str, TOKENS))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A random model without a tokenizer."""
    folder = tmp_path_factory.mktemp("score")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    result = run("synth", folder / "config.json", folder / "model")
    assert result.status == 0, result.err
    return folder / "model"


def score(model, *options):
    result = run("score", "-m", model, "--tokens", COMMAS, "--json", *options)
    assert result.status == 0, result.err
    return json.loads(result.out)


def test_json_and_logits_agree(model, tmp_path):
    file = tmp_path / "logits.npy"
    result = score(model, "--logits", file, "--top-k", "3")
    logits = np.load(file)
    assert logits.dtype == np.float32 and logits.shape == (70, 160)
    assert result["tokens"] == TOKENS and result["vocabulary"] == 160
    wide = logits.astype(np.float64)
    expected = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    ours = np.array(result["logprobs"])
    assert ours.shape == (69,)
    assert np.abs(ours - expected[np.arange(69), TOKENS[1:]]).max() < 1e-6
    assert result["perplexity"] == pytest.approx(math.exp(-ours.mean()))
    assert len(result["top"]) == 70
    for row, top in zip(expected, result["top"]):
        order = np.argsort(-row, kind="stable")[:3]
        assert [entry["token"] for entry in top] == order.tolist()
        assert top[0]["logprob"] == pytest.approx(row[order[0]])
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("chunks", ["1", "70", "24,1,1", "64,6", "3,7", "69,1",
                                    "1000"])
def test_pieces_change_nothing(model, chunks):
    whole = np.array(score(model)["logprobs"])
    pieces = np.array(score(model, "--chunks", chunks)["logprobs"])
    assert np.abs(whole - pieces).max() < 1e-4


def test_exact_is_the_default(model):
    assert score(model)["logprobs"] == score(model, "--exact")["logprobs"]
    fast = np.array(score(model, "--no-exact")["logprobs"])
    difference = np.abs(fast - score(model)["logprobs"]).max()
    assert 0 < difference < 0.5


def test_text_and_file(letters, tmp_path):  # noqa: F811
    by_text = run("score", "-m", letters, "--text", "abc", "--json")
    (tmp_path / "text").write_text("abc")
    by_file = run("score", "-m", letters, "--file", tmp_path / "text", "--json")
    by_ids = run("score", "-m", letters, "--tokens", "97,98,99", "--json")
    results = [json.loads(result.out) for result in (by_text, by_file, by_ids)]
    for result in results:
        result.pop("seconds")
    assert results[0] == results[1] == results[2]
    assert results[0]["tokens"] == [97, 98, 99]
    assert results[0]["perplexity"] == pytest.approx(1, abs=1e-4)


def test_table(letters):  # noqa: F811
    lines = run("score", "-m", letters, "--text", "ab\né",
                "--top-k", "1").text.splitlines()
    assert lines[0].split() == ["token", "log", "p", "text"]
    assert lines[1].split() == ["97", "-", '"a"']
    assert lines[2].split() == ["98", "-0.000005", '"b"']
    assert lines[3].split()[::2] == ["10", '"\\n"']
    assert lines[4].split()[0] == "195"
    assert lines[6].startswith("after position 0: 98:-0.0000")
    assert lines[-1].startswith("perplexity ") and "4 tokens" in lines[-1]


def test_one_token_has_perplexity_one(model):
    result = run("score", "-m", model, "--tokens", "5", "--json")
    assert json.loads(result.out)["perplexity"] == 1


def test_bad_input(model, letters, tmp_path):  # noqa: F811
    def refused(status, *options, parts, where=model):
        expect_failure(run("score", "-m", where, *options), status, *parts)
    refused(2, "--tokens", "160", parts=["token id 160", "160"])
    refused(2, "--tokens", "-1", parts=["token id -1"])
    refused(1, "--tokens", ",".join(["1"] * 129), parts=["129 tokens", "128"])
    refused(2, "--tokens", COMMAS, "-c", "129", parts=["--ctx-size 129"])
    refused(2, "--tokens", "1", "--chunks", "0", parts=["chunks"])
    refused(2, "--tokens", "1", "--chunks", "4,-1", parts=["chunks"])
    refused(2, "--text", "", parts=["--text", "empty"], where=letters)
    refused(1, "--text", "a", parts=["tokenizer"])
    refused(1, "--file", tmp_path / "none", parts=["none"], where=letters)
    (tmp_path / "bytes").write_bytes(b"ab\xff")
    refused(1, "--file", tmp_path / "bytes", where=letters,
            parts=["bytes", "UTF-8 at byte 2"])
    (tmp_path / "nul").write_bytes(b"a\0")
    refused(1, "--file", tmp_path / "nul", parts=["NUL"], where=letters)
    (tmp_path / "empty").write_bytes(b"")
    refused(1, "--file", tmp_path / "empty", parts=["empty"], where=letters)
    refused(1, "--tokens", "1", "--logits", tmp_path / "no" / "l.npy",
            parts=["l.npy"])


def test_logits_are_whole_or_absent(model, tmp_path):
    file = tmp_path / "logits.npy"
    result = run("score", "-m", model, "--tokens", COMMAS, "--logits", file,
                 file_size=4096)
    assert result.status == 1 and "logits.npy" in result.err, result
    assert list(tmp_path.iterdir()) == []
