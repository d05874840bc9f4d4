"""Where a template may stand, and templates built in: against transformers'
tokenizers and mlx-lm."""

import itertools
import json

import pytest
import tokenizers
import transformers
from chat_template_conversations import CONVERSATIONS, RandomChats
from chat_template_conversations import CLOCK, STRANGE, WEATHER
from chat_template_oracle import ask
from mlx_lm.chat_templates import deepseek_v32

CONFIGS = {
    "none": None, "string": "config", "named": [
        {"name": "default", "template": "config default"},
        {"name": "tool_use", "template": "config tools"}],
    "no default": [{"name": "rag", "template": "config rag"}],
}
# Files of a directory; what a template prints says which it is.
FILES = ["chat_template.jinja", "additional_chat_templates/tool_use.jinja",
         "additional_chat_templates/rag.jinja",
         "additional_chat_templates/default.jinja"]
HELLO = [{"role": "user", "content": "Hi"}]
# With both: transformers lets files replace all that the config has; here the
# config goes first and files add to it, as mlxcel/chat/README.md says.


def directory(root, config, files):
    folder = root / "model"
    (folder / "additional_chat_templates").mkdir(parents=True)
    tokenizers.Tokenizer(tokenizers.models.BPE()).save(
        str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": "<s>"}
    if config is not None:
        settings["chat_template"] = config
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    for name in files:
        (folder / name).write_text("{{ bos_token }}" + name)
    return folder


def official(tokenizer, **request):
    try:
        return tokenizer.apply_chat_template(
            request.pop("messages"), tokenize=False, **request)
    except Exception:  # pylint: disable=broad-except
        return None


@pytest.mark.parametrize("config, files", [
    (config, chosen) for config in CONFIGS for count in range(len(FILES) + 1)
    for chosen in itertools.combinations(FILES, count)
    if config == "none" or not chosen])
def test_places(tmp_path, config, files):
    folder = directory(tmp_path, CONFIGS[config], files)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    requests = [{}, {"tools": [CLOCK]}, {"tools": []}]
    names = [None, "default", "tool_use", "rag"]
    answers = ask([{"directory": str(folder), "input": {
        "messages": HELLO, **request, **({"template_name": name} if name
                                         else {})}}
                   for request in requests for name in names])
    for (request, name), answer in zip(
            itertools.product(requests, names), answers):
        known = tokenizer.chat_template
        known = set(known) if isinstance(known, dict) else (
            {"default"} if known else set())
        if name is not None and name not in known:
            assert "text" not in answer
            continue
        if name is not None and isinstance(tokenizer.chat_template, str):
            name = None
        expected = official(tokenizer, messages=HELLO, chat_template=name,
                            **request)
        assert answer.get("text") == expected, (request, name, answer)


def check_deepseek(folder, requests):
    (folder / "config.json").write_text('{"model_type": "deepseek_v32"}')
    answers = ask([{"directory": str(folder), "input": request}
                   for request in requests])
    texts = 0
    for request, answer in zip(requests, answers):
        try:
            expected = deepseek_v32.apply_chat_template(**request)
        except Exception as failure:  # pylint: disable=broad-except
            expected, error = None, failure
        else:
            error = None
        assert answer.get("text") == expected, (request, error, answer)
        texts += expected is not None
    return texts


def texts_only(messages):
    """Contents as texts, arguments as JSON text, as mlx-lm wants them."""
    for message in messages:
        if not isinstance(message.get("content", ""), str):
            message["content"] = str(message["content"])
        for name in ("thinking", "reasoning"):
            message.pop(name, None)
        for call in message.get("tool_calls", []):
            function = call.get("function", {})
            if not isinstance(function.get("arguments"), str):
                function["arguments"] = json.dumps(
                    function.get("arguments"), ensure_ascii=False)
    return messages


def test_deepseek_v32(tmp_path):
    requests = []
    chats = RandomChats("deepseek")
    talks = [messages for messages in CONVERSATIONS.values() if messages]
    talks += [[chats.message() for _ in range(1 + i % 6)] for i in range(800)]
    for messages in talks:
        messages = json.loads(json.dumps(messages))
        messages = [{key: value for key, value in message.items()
                     if value is not None} for message in messages]
        # mlx-lm takes a result at the start for one of the last message's.
        if (any("content" not in message for message in messages)
                or messages[0].get("role") == "tool"):
            continue
        messages = texts_only(messages)
        for extra in ({}, {"enable_thinking": False}, {"enable_thinking": True},
                      {"tools": [WEATHER, STRANGE, CLOCK]}):
            for prompt in (True, False):
                requests.append({"messages": messages,
                                 "add_generation_prompt": prompt, **extra})
    assert check_deepseek(tmp_path, requests) > len(requests) / 5
