"""`generate`: where the prompt comes from, what standard output carries,
sampling, stops, limits, interrupts. The letter model makes every reply known.
"""

import json
import re
import signal
import time

import pytest
from mlxcel_program import (  # noqa: F401
    CHAT, END, LETTERS, endless_letters, expect_failure, letter_model, letters,
    needs_program, run, start)

pytestmark = needs_program


def raw(model, prompt, *options, **more):
    return run("generate", "-m", model, "--no-chat-template", "-p", prompt,
               *options, **more)


@pytest.mark.parametrize("prompt,reply", [
    ("x", "yz"), ("5", "6789"), ("a", LETTERS[1:]), ("X", "YZé"),
    ("!", LETTERS), ("wxy", "z"), ("é", LETTERS[0:])])
def test_the_reply_alone_on_standard_output(letters, prompt, reply):  # noqa: F811
    if prompt == "é":  # its last byte ends the text at once
        reply = ""
    result = raw(letters, prompt)
    assert result.status == 0, result.err
    assert result.out == reply.encode() + b"\n"


def test_statistics_on_standard_error(letters):  # noqa: F811
    result = raw(letters, "5")
    assert re.search(r"^\[Generated 5 tokens in \d+\.\d\ds = \d+\.\d\d tok/s; "
                     r"prompt 1 tokens, \d+\.\d\d tok/s\]$", result.err,
                     re.MULTILINE), result.err
    assert str(letters) in result.err and "Llama" in result.err
    assert "cpu" in result.err.lower()
    profile = raw(letters, "5", "--profile")
    assert profile.out == b"6789\n"
    assert re.search(r"^decode +4 ", profile.err, re.MULTILINE), profile.err


@pytest.mark.parametrize("options", [
    ["--exact"], ["--reference"], ["--threads", "1"], ["--device", "cpu"]])
def test_the_same_on_every_backend(letters, options):  # noqa: F811
    result = raw(letters, "X", *options)
    if options == ["--reference"] and "without the graph" in result.err:
        pytest.skip("built without the graph backend")
    assert (result.status, result.text) == (0, "YZé\n"), result.err


def test_chat_template_and_system_message(letters):  # noqa: F811
    def prompt(*options):
        result = run("generate", "-m", letters, "-p", "Hi", *options,
                     MLXCEL_PRINT_TOKEN_IDS="1")
        assert result.text == LETTERS + "\n", result.err
        ids = json.loads(re.search("^prompt ids: (.*)$", result.err,
                                   re.MULTILINE)[1])
        return bytes(ids).decode()
    assert prompt() == "user: Hi\nassistant:"
    assert prompt("--system", "Be brief.") == (
        "system: Be brief.\nuser: Hi\nassistant:")


def test_token_ids_are_printed_on_request(letters):  # noqa: F811
    result = raw(letters, "7", MLXCEL_PRINT_TOKEN_IDS="1")
    assert result.out == b"89\n"
    assert f"prompt ids: [{ord('7')}]\n" in result.err
    assert f"generated ids: [{ord('8')}, {ord('9')}, {END}]\n" in result.err
    assert "ids" not in raw(letters, "7").err


def test_prompt_from_file_and_pipe(letters, tmp_path):  # noqa: F811
    generate = ["generate", "-m", letters, "--no-chat-template"]
    for end in (b"", b"\n"):
        (tmp_path / "prompt").write_bytes(b"7" + end)
        assert run(*generate, "-f", tmp_path / "prompt").out == b"89\n"
        assert run(*generate, stdin=b"7" + end).out == b"89\n"
    # Only one line end is taken off.
    assert run(*generate, stdin=b"7\n\n").out == LETTERS.encode() + b"\n"


def test_an_argument_leaves_the_pipe_alone(letters):  # noqa: F811
    child = start("generate", "-m", letters, "-p", "hi", stdin=-1)
    out, _ = child.communicate(b"\xff never read", timeout=60)
    assert (child.returncode, out) == (0, LETTERS.encode() + b"\n")


def test_a_file_inside_the_directory_means_it(letters):  # noqa: F811
    assert raw(letters / "config.json", "7").out == b"89\n"
    assert raw(letters / "model.safetensors", "7").out == b"89\n"
    assert run("run", letters, "-p", "7", "--no-chat-template").out == b"89\n"


@pytest.mark.parametrize("limit,reply", [
    (0, ""), (1, "b"), (5, "bcdef"), (25, LETTERS[1:]), (1000, LETTERS[1:]),
    (-1, LETTERS[1:])])
def test_max_tokens(letters, limit, reply):  # noqa: F811
    result = raw(letters, "a", "-n", str(limit))
    assert (result.status, result.text) == (0, reply + "\n"), result.err


def test_the_context_ends_the_reply(letters):  # noqa: F811
    assert raw(letters, "a", "-c", "9").text == "bcdefghi\n"
    result = raw(letters, "a", "-c", "4097")
    expect_failure(result, 2, "--ctx-size 4097", "4096")


@pytest.mark.parametrize("stops,reply", [
    (["fgh"], "bcde"), (["k", "d"], "bc"), (["b"], ""), (["xyz!"], None),
    (["A"], None), (["yz"], LETTERS[1:24])])
def test_stop_strings(letters, stops, reply):  # noqa: F811
    options = [word for stop in stops for word in ("--stop", stop)]
    reply = LETTERS[1:] if reply is None else reply
    assert raw(letters, "a", *options).text == reply + "\n"


def test_stop_strings_out_of_bounds(letters):  # noqa: F811
    expect_failure(raw(letters, "a", "--stop", ""), 2, "stop", "empty")
    many = ["--stop", "#"] * 300
    expect_failure(raw(letters, "a", *many), 2, "stop", "256")


HOT = ["--temp", "50", "-n", "40"]


def test_seeds(letters):  # noqa: F811
    first = raw(letters, "a", *HOT, "--seed", "5")
    assert first.status == 0
    assert raw(letters, "a", *HOT, "--seed", "5").out == first.out
    assert raw(letters, "a", *HOT, "--seed", "6").out != first.out
    one, other = (raw(letters, "a", *HOT).out for _ in range(2))
    assert one != other


def test_any_bytes_come_out_as_text(letters):  # noqa: F811
    for seed in range(4):
        out = raw(letters, "a", *HOT, "--seed", str(seed)).out
        assert "\ufffd" in out.decode()


def test_sampling_options_do_something(letters):  # noqa: F811
    """Each of them makes a hot draw safe again, or a sure one unsure."""
    hot = ["--temp", "9", "--seed", "1"]
    assert raw(letters, "a", *hot).text != LETTERS[1:] + "\n"
    for option in (["--top-k", "1"], ["--top-p", "0.5"], ["--min-p", "0.5"]):
        assert raw(letters, "a", *hot, *option).text == LETTERS[1:] + "\n"
    # A penalty takes what was there already down to chance.
    penalty = ["--temp", "1", "--seed", "1", "-n", "30",
               "--repetition-penalty", "1000", "--repeat-last-n"]
    assert raw(letters, "zyx", *penalty, "0").text == "yz\n"
    assert raw(letters, "zyx", *penalty, "1").text == "yz\n"
    assert raw(letters, "zyx", *penalty, "2").text != "yz\n"
    assert raw(letters, "zyx", *penalty, "-1").text != "yz\n"


def test_defaults_of_the_checkpoint_give_way_to_flags(tmp_path):
    model = letter_model(tmp_path / "model")
    (model / "generation_config.json").write_text(json.dumps(
        {"do_sample": True, "temperature": 50.0, "top_k": 0, "top_p": 1.0,
         "eos_token_id": [END, ord("m")]}))
    seed = ["--seed", "1", "-n", "30"]
    assert raw(model, "a", *seed).text != "bcdefghijkl\n"
    # Its stop id ends the reply as the tokenizer's does.
    assert raw(model, "a", *seed, "--temp", "0").text == "bcdefghijkl\n"
    assert raw(model, "a", *seed, "--top-k", "1").text == "bcdefghijkl\n"


@pytest.mark.parametrize("option,value,name", [
    ("--temp", "nan", "temperature"), ("--temp", "-1", "temperature"),
    ("--temp", "inf", "temperature"), ("--temp", "101", "temperature"),
    ("--top-k", "-1", "top-k"), ("--top-p", "0", "top-p"),
    ("--top-p", "-0.5", "top-p"), ("--top-p", "1.5", "top-p"),
    ("--top-p", "nan", "top-p"), ("--min-p", "-0.1", "min-p"),
    ("--min-p", "2", "min-p"), ("--min-p", "nan", "min-p"),
    ("--repetition-penalty", "0", "repetition-penalty"),
    ("--repetition-penalty", "-1", "repetition-penalty"),
    ("--repetition-penalty", "nan", "repetition-penalty"),
    ("--seed", "0.5", "--seed")])
def test_sampling_ranges(letters, option, value, name):  # noqa: F811
    result = raw(letters, "a", option, value)
    assert result.status == 2 and name in result.err and result.out == b""


def wait_for_size(path, size):
    deadline = time.monotonic() + 60
    while path.stat().st_size < size:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_interrupt_ends_the_reply(endless_letters, tmp_path):  # noqa: F811
    with open(tmp_path / "out", "wb") as out:
        child = start("generate", "-m", endless_letters, "-p", "a",
                      "--no-chat-template", stdout=out)
        wait_for_size(tmp_path / "out", 100)
        child.send_signal(signal.SIGINT)
        err = child.communicate(timeout=60)[1].decode()
    assert child.returncode == 0, err
    text = (tmp_path / "out").read_text()
    assert text.endswith("\n") and text[:-1] in LETTERS[1:] + LETTERS * 50000
    assert "[Generated " in err


def test_interrupt_outside_a_reply_ends_with_130(letters):  # noqa: F811
    child = start("generate", "-m", letters, stdin=-1)
    time.sleep(0.3)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    child.wait(timeout=60)
    assert child.returncode == 130
    child.communicate()


def test_a_closed_pipe_ends_it(endless_letters):  # noqa: F811
    child = start("generate", "-m", endless_letters, "-p", "a",
                  "--no-chat-template")
    assert child.stdout.read(20)
    child.stdout.close()
    child.wait(timeout=20)
    assert child.returncode == 1
    assert "standard output" in child.stderr.read().decode()
    child.stderr.close()


def test_a_full_disk_is_told(letters):  # noqa: F811
    with open("/dev/full", "wb") as full:
        child = start("generate", "-m", letters, "-p", "a", stdout=full)
        err = child.communicate(timeout=60)[1].decode()
    assert child.returncode == 1
    assert "standard output" in err


def test_a_model_without_template_continues_plain_lines(tmp_path):
    model = letter_model(tmp_path / "model", template=None)
    result = run("generate", "-m", model, "-p", "Hi", "--system", "Sys",
                 MLXCEL_PRINT_TOKEN_IDS="1")
    assert result.text == LETTERS + "\n", result.err
    ids = json.loads(re.search("^prompt ids: (.*)$", result.err,
                               re.MULTILINE)[1])
    assert bytes(ids) == b"Sys\nUser: Hi\nAssistant:"


def test_a_template_that_fails_is_an_error(tmp_path):
    for template, part in [
            ("{{ raise_exception('no pirates') }}", "no pirates"),
            ("{% if %}", "template"),
            ("{{ messages | frobnicate }}", "frobnicate"),
            ("{% for i in range(10**9) %}x{% endfor %}", "template")]:
        model = letter_model(tmp_path / "model", template=template)
        result = run("generate", "-m", model, "-p", "Hi")
        expect_failure(result, 1, part, "--no-chat-template")
        assert raw(model, "7").out == b"89\n"
