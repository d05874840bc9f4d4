"""Published chat templates against transformers' own rendering: for every
template and conversation the same text, or an error in both."""

import os
import random
import re
from pathlib import Path

import pytest
from chat_template_conversations import (
    CLOCK, CONVERSATIONS, SETTINGS, STRANGE, WEATHER, RandomChats, assistant,
    call, result, user)
from chat_template_oracle import (
    SHARE, ask, check, difference, official_chat)

PEERS = Path(os.environ.get("MLXCEL_PEERS_DIR",
                            Path.home() / ".cache" / "mlxcel-peers"))
# As tokenizer_config.json of SmolLM2-135M-Instruct has it.
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] "
    "!= 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant "
    "named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}")


def real_templates():
    folder = PEERS / "chat-templates-0.3.36"
    files = sorted(folder.glob("*.jinja"))
    if not files:
        pytest.skip(f"no published templates in {folder}: "
                    "run tests/oracle/fetch_published_files.sh")
    assert len(files) >= 70
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


def table():
    for name, messages in CONVERSATIONS.items():
        for number, setting in enumerate(SETTINGS):
            yield f"{name}/{number}", {
                "messages": messages, "bos_token": "<s>",
                "eos_token": "</s>", **setting}


def matrix(templates, share=1.0):
    jobs = [(f"{name}: {label}", source, request)
            for name, source in templates.items()
            for label, request in table()]
    return random.Random(7).sample(jobs, int(len(jobs) * share))


def random_jobs(templates, count):
    for name, source in templates.items():
        chats = RandomChats(name)
        for number in range(count):
            yield f"{name}: random {number}", source, chats.request()


def check_chats(jobs, least=0.5):
    """least: the part of them that must render."""
    jobs = list(jobs)
    answers = ask([{"template": source, "input": request}
                   for _, source, request in jobs])
    rendered = [official_chat(source, request) for _, source, request in jobs]
    texts = sum(text is not None for text, _ in rendered)
    assert texts >= len(jobs) * least, f"only {texts} of {len(jobs)} render"
    check((difference(f"{label}\n  {request}", *pair, answer, strict=True)
           for (label, _, request), pair, answer
           in zip(jobs, rendered, answers)), len(jobs))


def test_smollm2():
    check_chats(matrix({"SmolLM2": SMOLLM2}))


def test_published_templates():
    check_chats(matrix(real_templates(), SHARE / 2))


def test_random_conversations():
    check_chats(random_jobs(real_templates(), int(60 * SHARE)), least=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(7))
def test_whole_matrix(part):
    templates = list(real_templates().items())[part::7]
    check_chats(matrix(dict(templates)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(7))
def test_many_random_conversations(part):
    templates = list(real_templates().items())[part::7]
    check_chats(random_jobs(dict(templates), 500), least=0.3)


# Blocks in loops, macros, filters and inside each other.
GENERATION = [
    "{% for m in messages %}ü{{ m.role }}{% generation %}<{{ m.content }}>"
    "{% endgeneration %}é{% endfor %}",
    "{% macro m(x) %}a{% generation %}{{ x }}é{% endgeneration %}{% endmacro %}"
    "é{{ m('xyz') }}{{ m(1) ~ m(2) }}",
    "é{% generation %}a{% generation %}b😀{% endgeneration %}{% endgeneration %}",
    "x{% filter upper %}ß{% generation %}ß{% endgeneration %}{% endfilter %}",
    "{% set x %}é{% generation %}abc{% endgeneration %}{% endset %}{{ x }}",
    "{% for i in [[1], []] recursive %}{% generation %}é{{ i }}"
    "{% endgeneration %}{{ loop(i) if i is iterable }}{% endfor %}",
    "{% block b %}é{% generation %}x{% endgeneration %}{% endblock %}",
    "{% generation %}{% endgeneration %}",
]


def check_spans(jobs):
    jobs = list(jobs)
    answers = ask([{"template": source, "input": request, "spans": True}
                   for _, source, request in jobs])
    marked = 0
    for (label, source, request), answer in zip(jobs, answers):
        text, error, expected = official_chat(source, request, spans=True)
        assert answer.get("text") == text, (label, error, answer)
        if text is None:
            continue
        length = [len(text[:i].encode()) for i in range(len(text) + 1)]
        spans = [[length[min(i, len(text))] for i in span]
                 for span in expected]
        assert answer["spans"] == spans, (label, source, text)
        marked += len(spans)
    return marked


def test_generation_spans():
    chats = list(RandomChats("spans").request() for _ in range(20))
    for chat in chats:
        chat.pop("continue_final_message", None)
    assert check_spans((str(i), source, chat) for source in GENERATION
                       for i, chat in enumerate(chats)) > 200
    published = {name: source for name, source in real_templates().items()
                 if re.search(r"generation -?%}", source)}
    assert len(published) >= 4
    assert check_spans(
        job for job in matrix(published, SHARE)
        if not job[2].get("continue_final_message")) > 20


def long_talk():
    """100 messages of 150 words, a call and its result every ten."""
    text = "The quick brown fox jumps over the lazy dog, Köln. " * 15
    talk = []
    while len(talk) < 100:
        talk += [user(text), assistant(text)]
        if len(talk) % 10 == 6:
            talk += [user(text), assistant("", tool_calls=[
                call("get_weather", {"city": "Köln", "days": 3})]),
                result('{"t": 20}', name="get_weather"), assistant(text)]
    return talk[:100]


def test_speed():
    """2 ms is the aim (docs/benchmarks.md); the bound allows for a loaded
    machine."""
    templates = real_templates()
    request = {"messages": long_talk(), "bos_token": "<s>",
               "tools": [WEATHER, CLOCK, STRANGE],
               "add_generation_prompt": True}
    answers = ask([{"template": source, "rounds": 5, "input": request}
                   for source in templates.values()])
    timed = {name: answer["seconds"] for name, answer in zip(templates, answers)
             if "seconds" in answer}
    assert len(timed) > 40
    slowest = max(timed, key=timed.get)
    assert timed[slowest] < 0.02, f"{slowest}: {timed[slowest] * 1000:.1f} ms"
