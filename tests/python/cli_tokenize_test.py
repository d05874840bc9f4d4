"""`tokenize` and `detokenize` beside the official library."""

import json
import shutil

import pytest
from mlxcel_program import (  # noqa: F401
    expect_failure, needs_program, run, smollm2)
from tokenizers import Tokenizer

pytestmark = needs_program

TEXTS = [
    "Hello, world", "", " ", "\n\n  a\tb", "naïve café — 東京 🏳️‍🌈 e\u0301",
    "x = [i**2 for i in range(10)]\r\n", "<|im_start|>user\nhi<|im_end|>",
    "a<|im_end|><|endoftext|> b", "\u0000\u200b\ufeff", "1234567890" * 5,
]


@pytest.fixture(scope="module")
def folder(smollm2, tmp_path_factory):  # noqa: F811
    """The tokenizer alone: no weights, no config.json."""
    folder = tmp_path_factory.mktemp("tokenizer")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(smollm2 / name, folder)
    return folder


@pytest.fixture(scope="module")
def official(folder):
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def output(*arguments, stdin=b""):
    result = run(*arguments, stdin=stdin)
    assert result.status == 0, result
    return result.text


@pytest.mark.parametrize("text", TEXTS)
def test_ids_pieces_and_offsets(folder, official, text):
    found = json.loads(output("tokenize", "-m", folder, "--json", "-",
                              stdin=text.encode()))
    expected = official.encode(text)
    assert found["ids"] == expected.ids
    assert found["pieces"] == expected.tokens
    assert [tuple(pair) for pair in found["offsets"]] == expected.offsets


def test_the_same_from_argument_file_and_pipe(folder, official, tmp_path):
    text = "Two lines,\nthe last with its newline.\n"
    file = tmp_path / "text"
    file.write_text(text)
    expected = official.encode(text).ids
    for source in ([text], ["--file", file], ["-"], []):
        ids = output("tokenize", "-m", folder, "--ids", *source,
                     stdin=text.encode())
        assert json.loads(ids) == expected, source


def test_table_has_a_line_for_each_token(folder, official):
    text = "Hello\nthere"
    lines = output("tokenize", "-m", folder, text).splitlines()
    rows = [line.split(maxsplit=1) for line in lines]
    expected = official.encode(text)
    assert [int(row[0]) for row in rows] == expected.ids
    assert [json.loads(row[1]) for row in rows] == expected.tokens


def test_plain_takes_added_tokens_for_text(folder, official):
    text = "<|im_end|>"
    assert len(official.encode(text).ids) == 1
    ids = json.loads(output("tokenize", "-m", folder, "--plain", "--ids", text))
    assert len(ids) > 1
    assert output("detokenize", "-m", folder, json.dumps(ids)) == text


def test_no_special(folder, tmp_path):
    """A tokenizer that puts a token in front does so only by default."""
    changed = tmp_path / "bos"
    shutil.copytree(folder, changed)
    path = changed / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|endoftext|>": {
            "id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}},
    }
    path.write_text(json.dumps(tokenizer))
    with_bos = json.loads(output("tokenize", "-m", changed, "--ids", "hi"))
    without = json.loads(
        output("tokenize", "-m", changed, "--ids", "--no-special", "hi"))
    assert with_bos == [0, *without]


def test_many_lines(folder, official):
    lines = "".join(json.dumps(text) + "\n" for text in TEXTS).encode()
    ids = output("tokenize", "-m", folder, "--jsonl", stdin=lines)
    expected = [official.encode(text).ids for text in TEXTS]
    assert [json.loads(line) for line in ids.splitlines()] == expected
    for skip in (False, True):
        flags = ["--skip-special"] if skip else []
        texts = output("detokenize", "-m", folder, "--jsonl", *flags,
                       stdin=ids.encode())
        assert [json.loads(line) for line in texts.splitlines()] == [
            official.decode(each, skip_special_tokens=skip)
            for each in expected]


@pytest.mark.parametrize("ids", ["[19556, 28]", "19556,28", " 19556 28\n"])
def test_ways_to_write_ids(folder, official, ids):
    assert (output("detokenize", "-m", folder, ids)
            == output("detokenize", "-m", folder, stdin=ids.encode())
            == official.decode([19556, 28]))


def test_no_ids_are_no_text(folder):
    assert output("detokenize", "-m", folder, "[]") == ""
    assert output("detokenize", "-m", folder) == ""


@pytest.mark.parametrize("line,part", [
    (b'"open', "line 2"), (b"{}", "line 2"), (b"[1]", "line 2"),
    (b'"\\ud800"', "line 2"), (b'"\xff"', "line 2"), (b"", "line 2"),
])
def test_bad_lines_are_named(folder, line, part):
    result = run("tokenize", "-m", folder, "--jsonl",
                 stdin=b'"good"\n' + line + b'\n"good"\n')
    assert result.status == 1
    assert part in result.err and "standard input" in result.err


@pytest.mark.parametrize("line", [b'"a"', b"[-1]", b"[1.5]", b"[1e99]", b"[", b"[null]"])
def test_bad_ids_are_named(folder, line):
    result = run("detokenize", "-m", folder, "--jsonl",
                 stdin=b"[1]\n" + line + b"\n")
    assert result.status == 1
    assert "line 2" in result.err


def test_refusals(folder, tmp_path):
    expect_failure(run("tokenize", "-m", folder, "-", stdin=b"a\xffb"),
                   1, "UTF-8", "byte 1")
    expect_failure(run("tokenize", "-m", tmp_path / "none", "a"), 1, "none")
    expect_failure(run("tokenize", "-m", tmp_path, "a"), 1, "tokenizer.json")
    expect_failure(run("detokenize", "-m", folder, "1,x"), 1, '"x"')
    expect_failure(run("tokenize", "-m", folder, "--ids", "--json", "a"),
                   2, "--ids")
    expect_failure(run("tokenize", "-m", folder, "--jsonl", "a"),
                   2, "--jsonl")
    assert run("tokenize", "a").status == 2
