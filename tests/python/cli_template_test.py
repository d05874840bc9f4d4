"""`template`: exactly the prompt, from the template files alone."""

import json
import os
import subprocess

import pytest
from mlxcel_program import CHAT, expect_failure, needs_program, run

pytestmark = needs_program

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
HELLO = [{"role": "user", "content": "Grüße 😀\n"}]
SHOW = ("{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}\n"
        "{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}"
        "{% if documents %}{{ documents[0].title }}{% endif %}"
        "{{ '[think]' if enable_thinking is defined and enable_thinking }}"
        "{{ extra }}{% if add_generation_prompt %}<assistant>{% endif %}")


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    write(folder / "tokenizer_config.json",
          {"bos_token": "<s>", "chat_template": SHOW})
    return folder


@pytest.fixture
def hello(tmp_path):
    return write(tmp_path / "hello.json", HELLO)


def prompt(*options, **more):
    result = run("template", *options, **more)
    assert result.status == 0 and result.err == "", result
    return result.text


def refused(status, *options, parts, **more):
    expect_failure(run("template", *options, **more), status, *parts)


def test_the_prompt_and_nothing_else(model, hello):
    text = "<s><user>Grüße 😀\n\n"
    assert prompt("-m", model, "--messages", hello) == text + "<assistant>"
    assert prompt(model, "--messages", hello,
                  "--no-generation-prompt") == text


def test_standard_input_and_a_file_as_model(model):
    talk = json.dumps(HELLO).encode()
    expected = "<s><user>Grüße 😀\n\n<assistant>"
    assert prompt("-m", model, "--messages", "-", stdin=talk) == expected
    assert prompt("-m", model / "tokenizer_config.json", "--messages", "-",
                  stdin=talk) == expected


def test_tools_documents_and_variables(model, hello, tmp_path):
    tools = write(tmp_path / "tools.json", [{"name": "é", "z": 1, "a": None}])
    documents = write(tmp_path / "documents.json", [{"title": "T"}])
    text = prompt("-m", model, "--messages", hello, "--tools", tools,
                  "--documents", documents, "--enable-thinking", "on",
                  "--chat-template-kwargs", '{"extra": 1, "bos_token": ""}',
                  "--chat-template-kwargs", '{"extra": "x"}')
    assert text == ('<user>Grüße 😀\n\n[{"name": "é", "z": 1, "a": null}]'
                    "T[think]x<assistant>")
    off = prompt("-m", model, "--messages", hello, "--enable-thinking", "off")
    assert "[think]" not in off


def test_continues_the_final_message(model, tmp_path):
    talk = write(tmp_path / "talk.json",
                 HELLO + [{"role": "assistant", "content": "The answer"}])
    text = prompt("-m", model, "--messages", talk, "--continue-final-message")
    assert text.endswith("<assistant>The answer")
    empty = write(tmp_path / "empty.json", [{"role": "assistant"}])
    refused(2, "-m", model, "--messages", empty, "--continue-final-message",
            parts=["continue_final_message", "content"])


def test_another_template(model, hello, tmp_path):
    other = write(tmp_path / "other.jinja", "{{ bos_token }}!{{ messages[0].role }}")
    assert prompt("-m", model, "--messages", hello,
                  "--chat-template", other) == "<s>!user"
    assert prompt("--messages", hello, "--chat-template", other) == "!user"
    refused(1, "--messages", hello, "--chat-template", tmp_path / "none",
            parts=["none"])


def test_named_templates(model, hello, tmp_path):
    write(model / "tokenizer_config.json", {"chat_template": [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "with tools"}]})
    folder = model / "additional_chat_templates"
    folder.mkdir()
    write(folder / "rag.jinja", "{{ documents|length }} documents")
    tools = write(tmp_path / "tools.json", [{}])
    start = ["-m", model, "--messages", hello]
    assert prompt(*start) == "plain"
    assert prompt(*start, "--tools", tools) == "with tools"
    assert prompt(*start, "--documents", tools,
                  "--chat-template-name", "rag") == "1 documents"
    refused(2, *start, "--chat-template-name", "x",
            parts=['"x"', "default, tool_use, rag"])
    (folder / "rag.jinja").write_text("{{")
    refused(1, *start, "--chat-template-name", "rag",
            parts=["rag.jinja:1:3: not valid Jinja"])


def test_without_a_template(tmp_path, hello):
    talk = write(tmp_path / "talk.json", [
        {"role": "system", "content": "S"},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": "b"}])
    result = run("template", "-m", tmp_path, "--messages", talk)
    assert result.status == 0
    assert result.text == "S\nUser: a\nAssistant: b\nAssistant:"
    assert "no chat template" in result.err and result.err.count("\n") == 1
    result = run("template", "-m", tmp_path, "--messages", talk,
                 "--continue-final-message")
    assert result.text == "S\nUser: a\nAssistant: b"
    refused(1, "-m", tmp_path, "--messages", hello, "--tools", talk,
            parts=["tools", "no chat template"])
    for content in (5, [{"type": "image"}]):
        odd = write(tmp_path / "odd.json", HELLO + [
            {"role": "user", "content": content}])
        refused(1, "-m", tmp_path, "--messages", odd,
                parts=["messages[1].content", "no chat template"])


def test_a_family_without_templates(tmp_path, hello):
    write(tmp_path / "config.json", {"model_type": "deepseek_v32"})
    assert prompt("-m", tmp_path, "--messages", hello).endswith(
        "<｜User｜>Grüße 😀\n<｜Assistant｜><think>")
    write(tmp_path / "config.json", {"model_type": "kimi_k3"})
    refused(1, "-m", tmp_path, "--messages", hello, parts=["kimi_k3", "ids"])


def test_template_errors_say_where_and_why(model, hello):
    config = model / "tokenizer_config.json"
    start = ["-m", model, "--messages", hello]
    write(config, {"chat_template":
                   "a\n  {{ raise_exception('No ' ~ messages[0].role) }}"})
    refused(1, *start, parts=[
        "tokenizer_config.json:2:21: the template rejects this conversation: "
        "No user"])
    write(config, {"chat_template": "{% if a %}\nä {% endfor %}"})
    refused(1, *start, parts=["tokenizer_config.json:2:6: not valid Jinja:"])
    write(config, {"chat_template": "ä{{ messages[0].a.b }}"})
    refused(1, *start, parts=["tokenizer_config.json:1:", "no attribute"])
    write(config, {"chat_template":
                   "{% for i in range(99999) %}{% for j in range(99999) %}"
                   "{% endfor %}{% endfor %}"})
    refused(1, *start, parts=["stopped:"])


@pytest.mark.parametrize("text, parts", [
    ("", ["bad.json"]),
    ("[{]", ["bad.json", "not valid JSON at byte"]),
    ("{}", ["bad.json", "messages: expected a list of objects, got an object"]),
    ("[]", ["bad.json: messages: the conversation is empty"]),
    ("5", ["messages: expected a list of objects, got 5"]),
    ('[{"role": "user"}, "x"]', ['messages[1]: expected an object, got "x"']),
    ('[{"role": "a", "role": "b"}]', ["bad.json", "duplicate key"]),
    ('[{"role": "\\ud800"}]', ["bad.json", "surrogate"]),
    ("[" * 100000, ["bad.json", "nested deeper"]),
])
def test_bad_messages(model, tmp_path, text, parts):
    bad = write(tmp_path / "bad.json", text)
    refused(1, "-m", model, "--messages", bad, parts=parts)


def test_bad_command_lines(model, hello, tmp_path):
    def usage(*options, part):
        result = run("template", *options)
        assert result.status == 2 and result.out == b"", result
        assert part in result.err
    start = ["-m", model, "--messages", hello]
    usage("-m", model, part="--messages")
    usage("--messages", hello, part="-m MODEL")
    usage(*start, "--enable-thinking", "maybe", part="--enable-thinking")
    usage(*start, "--chat-template-kwargs", "[1]",
          part="[--chat-template-kwargs]")
    usage(*start, "--chat-template-kwargs", "{", part="--chat-template-kwargs")
    usage(*start, "--chat-template-kwargs", '{"messages": []}',
          part="'messages' is not free")
    refused(1, "-m", tmp_path / "none", "--messages", hello,
            parts=["none", "no such model directory"])
    refused(1, "-m", model, "--messages", tmp_path / "none", parts=["none"])
    bad = write(tmp_path / "bad.json", "[5]")
    refused(1, *start, "--tools", bad, parts=["bad.json", "tools[0]"])
    refused(1, *start, "--documents", bad, parts=["bad.json", "documents[0]"])


def test_a_closed_pipe_is_an_error(model, hello):
    with open("/dev/full", "wb") as full:
        from mlxcel_program import PROGRAM
        done = subprocess.run(
            [PROGRAM, "template", "-m", model, "--messages", hello],
            stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1 and b"standard output" in done.stderr


def test_as_transformers(model, tmp_path):
    """The prompt is what apply_chat_template gives for the same directory."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    tokenizers.Tokenizer(tokenizers.models.BPE()).save(
        str(model / "tokenizer.json"))
    write(model / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": CHAT})
    official = transformers.AutoTokenizer.from_pretrained(model)
    talk = write(tmp_path / "talk.json",
                 HELLO + [{"role": "assistant", "content": None}])
    assert prompt("-m", model, "--messages", talk) == (
        official.apply_chat_template(json.loads(talk.read_text()),
                                     tokenize=False,
                                     add_generation_prompt=True))
