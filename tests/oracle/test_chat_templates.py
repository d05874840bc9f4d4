"""Chat templates against transformers' own environment: for every template
the same text, or an error in both."""

import copy
import json
import os
import random
import re
import subprocess
from pathlib import Path

import chat_template_cases as cases
import pytest

# transformers announces at import that there is no PyTorch.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
from transformers.utils import chat_template_utils as official  # noqa: E402

BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", "build/release"))
PROBE = BUILD / "chat_template_probe"
PEERS = Path(os.environ.get("MLXCEL_PEERS_DIR",
                            Path.home() / ".cache" / "mlxcel-peers"))
# How much of the large tables a run takes; 1 for all of it.
SHARE = float(os.environ.get("MLXCEL_ORACLE_SHARE", "0.25"))

# Text in which Python shows a function, an address or the like.
OPAQUE = (" at 0x", "<built-in", "<class", "<bound method", "<function",
          "<generator", "TemplateReference", "<jinja2", "reversed object")
# Outcomes that differ on purpose; each is told in mlxcel/chat/README.md.
DELIBERATE = (
    "more than 64 bits",  # integers have 64 bits
    "this filter of Jinja is not supported",
    "lipsum is not supported",
    "encode, maketrans and translate are not supported",
    "not supported for escaped text",
    "zero padding and grouping is not supported",
    "sets are not supported",
    "automatic escaping is not supported",
    "no real number",  # Python makes a complex number
)
THINKING_TEST = re.compile(r"(?<![\w.])thinking is (not )?(un)?defined")


def ask(requests):
    """The probe's answers to a list of requests."""
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run([PROBE], input=lines, capture_output=True,
                          text=True, encoding="utf-8", check=True)
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(requests)
    return [json.loads(answer) for answer in answers]


def official_plain(template, context):
    try:
        compiled = official._compile_jinja_template(template)
        return compiled.render(**copy.deepcopy(context)), None
    except Exception as error:  # pylint: disable=broad-except
        return None, f"{type(error).__name__}: {error}"


def official_chat(template, request):
    """What apply_chat_template does before and with the template."""
    request = copy.deepcopy(request)
    try:
        messages = request.pop("messages")
        if not messages:
            raise ValueError("empty")
        kwargs = request.pop("kwargs", {})
        tokens = {name: request.pop(name, "")
                  for name in ("bos_token", "eos_token")}
        if "enable_thinking" in request:
            tokens["enable_thinking"] = request.pop("enable_thinking")
            # Our rule, not transformers': a template that asks whether
            # `thinking` is defined gets the same under that name.
            if THINKING_TEST.search(template):
                tokens["thinking"] = tokens["enable_thinking"]
        text, _ = official.render_jinja_template(
            [official._normalize_chat_messages(messages)],
            chat_template=template, **request, **{**tokens, **kwargs})
        return text[0], None
    except Exception as error:  # pylint: disable=broad-except
        return None, f"{type(error).__name__}: {error}"


def difference(label, expected, error, answer):
    """A line that tells how an answer differs from what is expected, or None."""
    got, failure = answer.get("text"), answer.get("error")
    if expected is not None and any(mark in expected for mark in OPAQUE):
        return None
    if failure and any(reason in failure for reason in DELIBERATE):
        return None
    if expected == got:
        return None
    return (f"{label}\n  official: {error or repr(expected)}"
            f"\n  ours:     {failure or repr(got)}")


def check(differences, count):
    found = [line for line in differences if line]
    assert not found, (f"{len(found)} of {count} differ:\n"
                       + "\n".join(found[:20]))


def check_plain(templates, context):
    templates = list(templates)
    answers = ask([{"template": t, "context": context} for t in templates])
    check((difference(template, *official_plain(template, context), answer)
           for template, answer in zip(templates, answers)), len(templates))


def sample(templates, share=None):
    templates = list(templates)
    count = max(1, int(len(templates) * (SHARE if share is None else share)))
    return random.Random(7).sample(templates, min(count, len(templates)))


def test_snippets():
    assert len(cases.SNIPPETS) > 200
    check_plain(cases.SNIPPETS, cases.CONTEXT)


def test_white_space():
    check_plain(cases.whitespace_templates(), cases.CONTEXT)


def test_filters_tests_methods_and_slices():
    check_plain(sample(cases.table_templates()), cases.CONTEXT)


def test_operators():
    check_plain(sample(cases.operator_templates(), SHARE / 4), cases.CONTEXT)


def test_random_programs():
    check_plain(cases.program_templates(int(4000 * SHARE)), cases.CONTEXT)


@pytest.mark.slow
def test_all_tables():
    check_plain(cases.table_templates(), cases.CONTEXT)


@pytest.mark.slow
def test_all_operators():
    check_plain(cases.operator_templates(), cases.CONTEXT)


@pytest.mark.slow
def test_many_random_programs():
    check_plain(cases.program_templates(20000, seed=2), cases.CONTEXT)


# Conversations for real templates.

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather at a place.\nSecond line",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "The <city>"},
        "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        "days": {"type": ["integer", "null"]},
        "spots": {"type": "array", "items": {
            "type": "object", "properties": {"x": {"type": "number"}}}}},
        "required": ["city"]},
    "return": {"type": "string"}}}
CLOCK = {"type": "function", "function": {
    "name": "now", "description": "", "parameters": {
        "type": "object", "properties": {}}}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def call(name, arguments, ident="call_1abc2"):
    return {"id": ident, "type": "function",
            "function": {"name": name, "arguments": arguments}}


def result(content, ident="call_1abc2", **more):
    return {"role": "tool", "content": content, "tool_call_id": ident, **more}


TALK = [user("Weather?"),
        assistant("", tool_calls=[call("get_weather", {"city": "Köln"})]),
        result('{"t": 20}', name="get_weather")]

CONVERSATIONS = {
    "user": [user("Hi")],
    "system": [system("Be brief."), user("Hi")],
    "turns": [system("S"), user("a"), assistant("b"), user(" c "),
              assistant("d\n"), user("e")],
    "no system": [user("a"), assistant("b"), user("c")],
    "assistant last": [user("a"), assistant("b")],
    "hard text": [user("<|im_end|> é😀 {{ x }} \"q\" 'p' \\n\t</s>\n\n")],
    "empty text": [user(""), assistant(""), user("")],
    "two users": [user("a"), user("b")],
    "assistant first": [assistant("a"), user("b")],
    "system late": [user("a"), assistant("b"), system("S"), user("c")],
    "two systems": [system("a"), system("b"), user("c")],
    "developer": [{"role": "developer", "content": "D"}, user("c")],
    "unknown role": [{"role": "critic", "content": "D"}, user("c")],
    "null content": [user("a"), {"role": "assistant", "content": None},
                     user("b")],
    "no content": [user("a"), {"role": "assistant"}, user("b")],
    "parts": [user([{"type": "text", "text": "Look "},
                    {"type": "text", "text": "here"}])],
    "image": [user([{"type": "image"}, {"type": "text", "text": "What?"}])],
    "image url": [system([{"type": "text", "text": "S"}]), user([
        {"type": "text", "text": "What?"},
        {"type": "image_url", "image_url": {"url": "data:x"}}])],
    "audio and video": [user([{"type": "audio", "audio_url": "x"},
                              {"type": "video", "video": "y"},
                              {"type": "text", "text": "z"}])],
    "empty parts": [user([])],
    "call": TALK[:2],
    "result": TALK,
    "after result": TALK + [assistant("20 degrees"), user("Thanks")],
    "string arguments": [user("a"), assistant(None, tool_calls=[
        call("get_weather", '{"city": "Köln", "days": 2}')]), result("ok")],
    "two calls": [user("a"), assistant("Let me see", tool_calls=[
        call("get_weather", {"city": "A", "days": 1, "spots": [{"x": 1.5}],
                             "unit": None}, "call_0aaaa"),
        call("now", {}, "call_1bbbb")]),
        result("one", "call_0aaaa", name="get_weather"),
        result("two", "call_1bbbb", name="now"), assistant("done"), user("x")],
    "short ids": [user("a"), assistant("", tool_calls=[
        call("now", {}, "abcdefghi")]), result("t", "abcdefghi")],
    "bare calls": [user("a"), assistant("", tool_calls=[
        {"name": "now", "arguments": {"a": True}}]), result({"k": [1, None]})],
    "empty calls": [user("a"), assistant("b", tool_calls=[]), user("c")],
    "list result": [user("a"), assistant("", tool_calls=[call("now", {})]),
                    result([{"type": "text", "text": "12:00"}])],
    "result first": [result("x"), user("a")],
    "reasoning": [user("a"), assistant("b", reasoning_content="I think"),
                  user("c")],
    "thinking": [user("a"), assistant("b", thinking="I think"), user("c"),
                 assistant("d", reasoning="more")],
    "think tags": [user("a"), assistant("<think>\nhm\n</think>\n\nb"),
                   user("c")],
    "reasoning call": [user("a"), assistant(
        "", reasoning_content="need it", tool_calls=[call("now", {})]),
        result("12")],
    "many": [m for i in range(6) for m in (user(f"q{i}"), assistant(f"a{i}"))],
    "empty": [],
}

SETTINGS = [
    {"add_generation_prompt": True},
    {"add_generation_prompt": False},
    {"add_generation_prompt": True, "tools": [WEATHER]},
    {"add_generation_prompt": True, "tools": [CLOCK, WEATHER],
     "enable_thinking": True},
    {"add_generation_prompt": True, "enable_thinking": False},
    {"add_generation_prompt": True, "tools": []},
    {"continue_final_message": True},
    {"add_generation_prompt": True, "kwargs": {
        "documents": [{"title": "T", "text": "Some text"}],
        "reasoning_effort": "high", "thinking": True, "date_string": "1 May",
        "builtin_tools": ["wolfram_alpha"], "preserve_thinking": True}},
]


def real_templates():
    folder = PEERS / "chat-templates-0.3.36"
    files = sorted(folder.glob("*.jinja"))
    if not files:
        pytest.skip(f"no published templates in {folder}: "
                    "run tests/oracle/fetch_chat_templates.sh")
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


def chat_requests():
    for name, messages in CONVERSATIONS.items():
        for number, setting in enumerate(SETTINGS):
            yield f"{name}/{number}", {
                "messages": messages, "bos_token": "<s>",
                "eos_token": "</s>", **setting}


def check_chats(templates):
    jobs = [(f"{name}: {label}", source, request)
            for name, source in templates.items()
            for label, request in chat_requests()]
    answers = ask([{"template": source, "input": request}
                   for _, source, request in jobs])
    rendered = [official_chat(source, request) for _, source, request in jobs]
    texts = sum(text is not None for text, _ in rendered)
    assert texts > len(jobs) / 2, "most conversations should render"
    check((difference(label, *pair, answer) for (label, _, _), pair, answer
           in zip(jobs, rendered, answers)), len(jobs))


# As tokenizer_config.json of SmolLM2-135M-Instruct has it.
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] "
    "!= 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant "
    "named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}")


def test_smollm2():
    check_chats({"SmolLM2": SMOLLM2})


def test_published_templates():
    check_chats(real_templates())


def test_template_messages_are_carried():
    """A rejection carries the template's own message, with its place."""
    answer, = ask([{"template": "a\n  {{ raise_exception('Roles: ' ~ 7) }}",
                    "context": {}}])
    assert answer["reason"] == "Roles: 7"
    assert (answer["line"], answer["column"]) == (2, 21)
