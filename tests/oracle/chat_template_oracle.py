"""Our chat templates, through the probe program, and transformers' own."""

import contextlib
import copy
import json
import os
import re
import resource
import subprocess
from pathlib import Path

# transformers announces at import that there is no PyTorch.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
from transformers.utils import chat_template_utils as official  # noqa: E402

PROBE = Path(os.environ.get("MLXCEL_BUILD_DIR",
                            "build/release")) / "chat_template_probe"
# How much of the large tables a run takes; 1 for all of it.
SHARE = float(os.environ.get("MLXCEL_ORACLE_SHARE", "0.25"))

# Bytes of address space that the official side may take.
MEMORY = 8 << 30

# Text in which Python shows a function, an address or the like.
OPAQUE = re.compile(
    r" at 0x[0-9a-f]|<built-in |<class '|<bound method |<function \S+ at"
    r"|<generator |TemplateReference|<jinja2|reversed object")
# Outcomes that differ on purpose; each is told in mlxcel/chat/README.md.
DELIBERATE = (
    "more than 64 bits",  # integers have 64 bits
    "this filter of Jinja is not supported",
    "lipsum is not supported",
    "encode, maketrans and translate are not supported",
    "is unknown here",  # a character reference of striptags
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


@contextlib.contextmanager
def bounded_memory():
    """A random program may ask for a text of many gigabytes; ours refuses it,
    the official one would take the machine along."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def official_plain(template, context):
    try:
        with bounded_memory():
            compiled = official._compile_jinja_template(template)
            return compiled.render(**copy.deepcopy(context)), None
    except Exception as error:  # pylint: disable=broad-except
        return None, f"{type(error).__name__}: {error}"


def official_chat(template, request, spans=False):
    """What apply_chat_template does before and with the template: text, error
    and, if asked for, the spans of the generation blocks."""
    request = copy.deepcopy(request)
    try:
        messages = request.pop("messages")
        if not messages:
            raise ValueError("empty")
        kwargs = request.pop("kwargs", {})
        tokens = {name: request.pop(name, "")
                  for name in ("bos_token", "eos_token")}
        if request.get("continue_final_message"):
            request["continue_final_message"] = request.pop(
                "continued_member", True)
        if "enable_thinking" in request:
            tokens["enable_thinking"] = request.pop("enable_thinking")
            # Our rule, not transformers': a template that asks whether
            # `thinking` is defined gets the same under that name.
            if THINKING_TEST.search(template):
                tokens["thinking"] = tokens["enable_thinking"]
        text, indices = official.render_jinja_template(
            [official._normalize_chat_messages(messages)],
            chat_template=template, return_assistant_tokens_mask=spans,
            **request, **{**tokens, **kwargs})
        return (text[0], None, indices[0]) if spans else (text[0], None)
    except Exception as error:  # pylint: disable=broad-except
        failure = f"{type(error).__name__}: {error}"
        return (None, failure, None) if spans else (None, failure)


def difference(label, expected, error, answer, strict=False):
    """A line that tells how an answer differs from what is expected, or None.
    Unless strict, what differs on purpose is none."""
    got, failure = answer.get("text"), answer.get("error")
    if not strict:
        if expected is not None and OPAQUE.search(expected):
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
