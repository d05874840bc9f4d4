"""Conversations for test_chat_template_matrix.py: a table, and random ones."""

import random

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
# Schemas as strange as they come.
STRANGE = {"type": "function", "function": {
    "name": "strange", "description": "a\n\tb \"c\" \\ <d> & é😀",
    "strict": True, "parameters": {
        "type": "object", "additionalProperties": False,
        "$defs": {"point": {"type": "object", "properties": {
            "x": {"type": "integer", "minimum": -5, "maximum": 1e3}}}},
        "properties": {
            "any": {"anyOf": [{"type": "string"}, {"type": "null"}],
                    "description": "either", "default": None},
            "one": {"oneOf": [{"type": "integer", "description": "i"},
                              {"type": "array", "items": {"type": "string"}}]},
            "ref": {"$ref": "#/$defs/point"},
            "deep": {"type": "object", "required": ["b"], "properties": {
                "a": {"type": "array", "items": {
                    "type": "array", "items": {"type": "boolean"}}},
                "b": {"type": "object", "properties": {
                    "c": {"type": "string", "enum": ["x", "y"],
                          "nullable": True}}}}},
            "const": {"const": 3.0}, "untyped": {}, "free": {"type": "object"},
            "items": {"type": "array"}, "format": {
                "type": "string", "format": "date", "minLength": 1,
                "examples": ["2024-01-01"]}},
        "required": ["any", "deep"]}}}
BARE = {"name": "bare", "description": "No wrapper", "parameters": {
    "type": "object", "properties": {"q": {"type": "string"}},
    "required": ["q"]}}
NO_PARAMETERS = {"type": "function", "function": {
    "name": "ping", "description": "Ping"}}
BUILT_IN = {"type": "code_interpreter"}


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
    "deep arguments": [user("a"), assistant("", tool_calls=[call(
        "strange", {"any": None, "deep": {"a": [[True, False], []],
                                          "b": {"c": "é \"q\" \n"}},
                    "n": -1, "f": 0.1, "big": 1e21, "z": 1e-9, "s": ""})]),
        result("ok", name="strange"), assistant("done")],
    "rounds of calls": [user("a"), assistant("1", tool_calls=[
        call("now", {}, "call_00001")]), result("x", "call_00001", name="now"),
        assistant("2", tool_calls=[
            call("get_weather", {"city": "B"}, "call_00002")]),
        result("y", "call_00002", name="get_weather"), assistant("3"),
        user("b"), assistant("", tool_calls=[call("now", {}, "call_00003")]),
        result("z", "call_00003", name="now")],
    "rounds with reasoning": [user("a"), assistant(
        "", reasoning_content="r1", tool_calls=[call("now", {})]),
        result("x", name="now"), assistant(
            "", reasoning_content="r2\n", tool_calls=[call("now", {})]),
        result("y", name="now"), assistant("z", reasoning_content="r3"),
        user("b"), assistant("c", reasoning_content=" ")],
    "call without id": [user("a"), assistant("", tool_calls=[
        {"function": {"name": "now", "arguments": {}}}]),
        {"role": "tool", "content": "x", "name": "now"}],
    "broken arguments": [user("a"), assistant("", tool_calls=[
        call("now", "{not json")]), result("x")],
    "list arguments": [user("a"), assistant("", tool_calls=[
        call("now", [1, "a"])]), result("x")],
    "no arguments": [user("a"), assistant("", tool_calls=[
        {"id": "call_1abc2", "type": "function",
         "function": {"name": "now"}}]), result("x")],
    "null calls": [user("a"), assistant("b", tool_calls=None), user("c")],
    "call with parts": [user("a"), assistant(
        [{"type": "text", "text": "Let me"}], tool_calls=[call("now", {})]),
        result("x")],
    "results of all kinds": [user("a"), assistant("", tool_calls=[
        call("now", {}, f"call_{i}aaaa") for i in range(5)]),
        result("", "call_0aaaa"), result(12, "call_1aaaa"),
        result(["a", {"b": 1}], "call_2aaaa"), result(None, "call_3aaaa"),
        result([{"type": "text", "text": "1"}, {"type": "image"},
                {"type": "text", "text": "2"}], "call_4aaaa")],
    "result without call": [user("a"), result("x"), user("b")],
    "result by output": [user("a"), assistant("", tool_calls=[
        call("now", {})]), result({"output": "12:00"}, name="now")],
    "other roles": [user("a"), {"role": "ipython", "content": "1"},
                    {"role": "function", "name": "now", "content": "2"},
                    {"role": "observation", "content": "3"}],
    "only system": [system("S")],
    "only assistant": [assistant("a")],
    "empty system": [system(""), user("a")],
    "system and developer": [system("S"), {"role": "developer",
                                           "content": "D"}, user("a")],
    "system parts": [system([{"type": "text", "text": "A"},
                             {"type": "text", "text": "B"}]), user("c")],
    "assistant parts": [user("a"), assistant([
        {"type": "text", "text": "b"}, {"type": "text", "text": "c"}]),
        user("d")],
    "thinking parts": [user("a"), assistant([
        {"type": "thinking", "thinking": "hm", "closed": True},
        {"type": "text", "text": "b"}]), user("c")],
    "image only": [user([{"type": "image"}])],
    "images between": [user([
        {"type": "text", "text": "1"}, {"type": "image", "image": "a.png"},
        {"type": "text", "text": "2"}, {"type": "image", "url": "b.png"}]),
        assistant("ok"), user([{"type": "image"}, {"type": "image"}])],
    "image of assistant": [user("a"), assistant([{"type": "image"}])],
    "input parts": [user([{"type": "input_text", "text": "a"},
                          {"type": "input_image", "image_url": "x"},
                          {"type": "input_audio", "input_audio": {}}])],
    "unknown part": [user([{"type": "smell", "smell": "x"}])],
    "part without type": [user([{"text": "a"}])],
    "texts in a list": [user(["a", "b"])],
    "number content": [user(5), assistant(1.5), user(True)],
    "dict content": [user({"type": "text", "text": "a"})],
    "no role": [{"content": "a"}],
    "odd role": [{"role": 5, "content": "a"}],
    "more members": [{"role": "user", "content": "a", "name": "Zoë",
                      "weight": 0, "refusal": None},
                     assistant("b", prefix=True, refusal=None, annotations=[]),
                     user("c")],
    "reasoning of all kinds": [user("a"), assistant("b", reasoning_content=""),
                               user("c"), assistant("", reasoning="x"),
                               user("d"), assistant("e", thinking=None)],
    "think in the middle": [user("<think>x</think>"), assistant(
        "a</think>b<think>c</think>d"), user("e"), assistant("<think>open")],
    "no_think": [user("a /no_think"), assistant("b"), user("c /think")],
    "white space": [system("  S\n"), user("\n a \n"), assistant(" b\n\n"),
                    user("\t")],
    "two assistants": [user("a"), assistant("b"), assistant("c"), user("d")],
    "user last of calls": [user("a"), assistant("", tool_calls=[
        call("now", {})]), user("never mind")],
    "final parts": [user("a"), assistant([
        {"type": "text", "text": "b"}, {"type": "text", "text": " c "}])],
    "final reasoning": [user("a"), assistant("", reasoning_content="I th")],
    "many": [m for i in range(6) for m in (user(f"q{i}"), assistant(f"a{i}"))],
    "empty": [],
}

SETTINGS = [
    {"add_generation_prompt": True},
    {"add_generation_prompt": False},
    {"add_generation_prompt": True, "tools": [WEATHER]},
    {"add_generation_prompt": True, "tools": [CLOCK, WEATHER],
     "enable_thinking": True},
    {"add_generation_prompt": False, "tools": [
        STRANGE, NO_PARAMETERS], "enable_thinking": False},
    {"add_generation_prompt": True, "tools": [BARE]},
    {"add_generation_prompt": True, "tools": [WEATHER, BUILT_IN]},
    {"add_generation_prompt": True, "enable_thinking": False},
    {"add_generation_prompt": True, "tools": []},
    {"continue_final_message": True},
    {"continue_final_message": True, "tools": [CLOCK],
     "enable_thinking": False},
    {"continue_final_message": True, "continued_member": "reasoning_content"},
    {"add_generation_prompt": True,
     "documents": [{"title": "T", "text": "Some text"},
                   {"title": "é", "text": "more\n", "n": 1}],
     "kwargs": {"citation_mode": "fast", "enable_citations": True}},
    {"add_generation_prompt": True, "documents": [],
     "kwargs": {"reasoning_effort": "low", "thinking": False}},
    {"add_generation_prompt": True, "documents": [{"a": [1, None]}],
     "tools": [WEATHER], "kwargs": {
         "reasoning_effort": "high", "thinking": True, "date_string": "1 May",
         "builtin_tools": ["wolfram_alpha"], "preserve_thinking": True}},
]

# Variables that published templates read, each with what it may be.
VARIABLES = {
    "add_vision_id": [True], "available_tools": [[], [WEATHER]],
    "builtin_tools": [["browser"], ["python", "browser"], []],
    "clear_thinking": [True, False], "custom_instructions": ["CI"],
    "current_date": ["1 May"], "custom_tools": [[WEATHER]],
    "date_string": ["1 May"], "datetime": ["now"],
    "default_system_prompt": [True, "D"], "developer_instruction": ["DI"],
    "developer_preamble": ["DP"], "drop_thinking": [True, False],
    "enable_citations": [True, False], "grounding": ["enabled", "disabled"],
    "include_thinking": [True, False], "is_training": [True],
    "keep_past_thinking": [True, False], "keep_reasoning": [True, False],
    "knowledge_cutoff": ["2024"], "model_identity": ["I am"],
    "platform_instruction_override": ["PI"], "preserve_thinking": [True, False],
    "preserved_thinking": [True, False], "reasoning": [True, "on"],
    "reasoning_effort": ["low", "medium", "high", "none", "max", 5],
    "reasoning_mode": ["full", "off"], "reasoning_strength": ["high"],
    "render_assistant_messages_raw": [True], "response_format": [
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}],
    "response_schema": [{"type": "object"}], "skip_thinking": [True, False],
    "system_prompt": ["SP"], "think_render_option": ["interleaved", "never"],
    "thinking": [True, False], "thinking_budget": [0, 512, -1],
    "thinking_effort": ["high"], "thinking_mode": ["chat", "thinking"],
    "tool_choice": ["auto", "required", "none"],
    "tool_output_instructions": ["TO"], "tools_in_user_message": [True, False],
    "training_prompt": [True], "truncate_history_thinking": [True, False],
    "use_json_tooldef": [True],
}


class RandomChats:
    """Conversations that no one would have thought of."""

    TEXTS = ["", "a", " b ", "Hi\n", "\n\n", "é😀", "<think>\nx\n</think>\n\ny",
             "</think>", "{{ x }}", "{% y %}", "<|im_end|>", "</s>", "\\n\"'",
             "[TOOL_CALLS]", "a /no_think", "{\"a\": 1}", "\u2028 \x00\x7f",
             "0", "null", "<tool_response>x</tool_response>", "x" * 300]
    SCALARS = [None, True, False, 0, -1, 7, 2.5, -0.0, 1e16, 1e-7, 12345678901]
    ROLES = ["user"] * 6 + ["assistant"] * 6 + ["tool"] * 3 + [
        "system"] * 2 + ["developer", "function", "ipython", "model", ""]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, part):
        return self.random.random() < part

    def text(self):
        return "".join(self.random.choices(
            self.TEXTS, k=self.random.choice([1, 1, 1, 2, 3])))

    def value(self, depth=0):
        pick = self.random.random()
        if depth > 2 or pick < 0.35:
            return self.random.choice(self.SCALARS)
        if pick < 0.7:
            return self.text()
        count = self.random.randrange(4)
        if pick < 0.85:
            return [self.value(depth + 1) for _ in range(count)]
        names = self.random.sample(
            ["type", "a", "items", "text", "é", "properties", "x y"], count)
        return {name: self.value(depth + 1) for name in names}

    def part(self):
        kind = self.random.choice(
            ["text"] * 5 + ["image", "image_url", "video", "audio", "thinking",
                            "tool_result", "odd"])
        part = {"type": kind}
        if kind == "text" or self.chance(0.1):
            part["text"] = self.text()
        elif kind != "image":
            part[kind] = self.text() if self.chance(0.5) else self.value()
        return self.text() if self.chance(0.03) else part

    def content(self):
        pick = self.random.random()
        if pick < 0.7:
            return self.text()
        if pick < 0.92:
            return [self.part() for _ in range(self.random.randrange(4))]
        return None if pick < 0.96 else self.value()

    def arguments(self):
        if self.chance(0.1):
            return self.random.choice(["", "{", "{\"a\": 1}", None, [1]])
        return {name: self.value() for name in self.random.sample(
            ["city", "b", "name", "content", "x y", "é"],
            self.random.randrange(4))}

    def call(self):
        made = call(self.random.choice(["now", "get_weather", "f.g", "é"]),
                    self.arguments(), self.random.choice(
                        ["call_1abc2", "abcdefghi", "functions.now:0", ""]))
        if self.chance(0.1):
            made = made["function"]
        if self.chance(0.1):
            made.pop(self.random.choice(list(made)))
        return made

    def message(self):
        message = {"role": self.random.choice(self.ROLES),
                   "content": self.content()}
        if message["role"] == "assistant":
            if self.chance(0.4):
                message["tool_calls"] = [
                    self.call() for _ in range(self.random.randrange(4))]
            if self.chance(0.3):
                message[self.random.choice(
                    ["reasoning_content", "thinking", "reasoning"])] = (
                        self.text())
        if message["role"] == "tool":
            message["tool_call_id"] = "call_1abc2"
            if self.chance(0.6):
                message["name"] = "now"
        if self.chance(0.05):
            message.pop(self.random.choice(list(message)))
        return message

    def tool(self):
        tool = self.random.choice(
            [WEATHER, CLOCK, STRANGE, NO_PARAMETERS, BARE, BUILT_IN])
        if self.chance(0.2):
            properties = {name: {"type": self.random.choice(
                ["string", "integer", ["number", "null"], "array", "object"]),
                "description": self.text(), "default": self.value()}
                for name in ("a", "b", "name")}
            tool = {"type": "function", "function": {
                "name": "random", "description": self.text(), "parameters": {
                    "type": "object", "properties": properties,
                    "required": self.random.sample(["a", "b", "name"], 1)}}}
        return tool

    def request(self):
        messages = [self.message() for _ in range(
            self.random.choice([1, 1, 2, 3, 4, 6, 9]))]
        if self.chance(0.5):
            # Most templates want them in turn.
            for i, message in enumerate(messages):
                message["role"] = ("user", "assistant")[i % 2]
        request = {"messages": messages, "bos_token": "<s>",
                   "eos_token": "</s>", "kwargs": {}}
        if self.chance(0.15):
            request["continue_final_message"] = True
        else:
            request["add_generation_prompt"] = self.chance(0.7)
        if self.chance(0.4):
            request["tools"] = [
                self.tool() for _ in range(self.random.randrange(4))]
        if self.chance(0.2):
            request["documents"] = [
                {"title": self.text(), "text": self.text()}
                for _ in range(self.random.randrange(3))]
        if self.chance(0.5):
            request["enable_thinking"] = self.chance(0.5)
        for name in self.random.sample(
                sorted(VARIABLES), self.random.choice([0, 0, 1, 3, 10])):
            request["kwargs"][name] = self.random.choice(VARIABLES[name])
        return request
