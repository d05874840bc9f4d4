#include "mlxcel/chat/builtin_templates.h"

#include <fmt/format.h>

#include <string>

#include "mlxcel/core/error.h"

namespace mlxcel {

namespace {

// Source of the format: mlx-lm, chat_templates/deepseek_v32.py, which follows
// the encoder that the model is published with.
constexpr const char* kDeepSeekV32 = R"TEMPLATE(
{%- if thinking_mode is not defined -%}
  {%- set thinks = enable_thinking is not defined or enable_thinking -%}
{%- elif thinking_mode in ['thinking', 'chat'] -%}
  {%- set thinks = thinking_mode == 'thinking' -%}
{%- else -%}
  {{- raise_exception('thinking_mode must be "thinking" or "chat"') -}}
{%- endif -%}
{%- set state = namespace(question=-1, calls=0, results=0) -%}
{%- for message in messages -%}
  {%- if message.role in ['user', 'developer'] -%}
    {%- set state.question = loop.index0 -%}
  {%- endif -%}
{%- endfor -%}

{%- macro describe(tools) -%}
## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part of your reply to the user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:

<｜DSML｜function_calls>
...
</｜DSML｜function_calls>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>
{% for tool in tools %}
{{ tool.function | tojson }}
{% endfor %}
</functions>
{{ '' }}
{%- endmacro -%}

{%- macro extras(message) -%}
  {%- if tools or message.tools -%}
    {{- '\n\n' ~ describe(tools or message.tools) -}}
  {%- endif -%}
  {%- if message.response_format -%}
    {{- '\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n' -}}
    {{- message.response_format | tojson -}}
  {%- endif -%}
{%- endmacro -%}

{{- '<｜begin▁of▁sentence｜>' -}}
{%- for message in messages -%}
  {%- set index = loop.index0 -%}
  {%- if message.role == 'system' -%}
    {{- message.content or '' -}}
    {{- extras(message) -}}
  {%- elif message.role in ['user', 'developer'] -%}
    {{- '<｜User｜>' -}}
    {%- if message.role == 'developer' -%}
      {%- if not message.content or (thinks and index < state.question) -%}
        {{- raise_exception('A developer message must have content and be the last question') -}}
      {%- endif -%}
      {{- extras(message) ~ '\n\n# The user\'s message is: ' -}}
    {%- endif -%}
    {{- message.content if message.content is defined else none -}}
    {%- set opens = thinks and index == state.question -%}
    {%- if not (opens and loop.last and message.role == 'user' and not add_generation_prompt) -%}
      {{- '<｜Assistant｜>' ~ ('<think>' if opens else '</think>') -}}
    {%- endif -%}
  {%- elif message.role == 'assistant' -%}
    {%- if thinks and index > state.question -%}
      {%- if not message.reasoning_content and not message.tool_calls -%}
        {{- raise_exception('After the last question, an assistant message needs reasoning_content or tool_calls') -}}
      {%- endif -%}
      {{- (message.reasoning_content or '') ~ '</think>' -}}
    {%- endif -%}
    {{- message.content or '' -}}
    {%- if message.tool_calls -%}
      {{- '\n\n<｜DSML｜function_calls>\n' -}}
      {%- for call in message.tool_calls -%}
        {{- '<｜DSML｜invoke name="' ~ call.function.name ~ '">\n' -}}
        {%- for name, value in call.function.arguments.items() -%}
          {{- '<｜DSML｜parameter name="' ~ name ~ '" string="' -}}
          {{- 'true">' ~ value if value is string else 'false">' ~ value | tojson -}}
          {{- '</｜DSML｜parameter>' ~ ('' if loop.last else '\n') -}}
        {%- endfor -%}
        {{- '\n</｜DSML｜invoke>\n' -}}
      {%- endfor -%}
      {{- '</｜DSML｜function_calls>' -}}
    {%- endif -%}
    {%- set state.calls = (message.tool_calls or []) | length -%}
    {%- set state.results = 0 -%}
    {{- '<｜end▁of▁sentence｜>' -}}
  {%- elif message.role == 'tool' -%}
    {%- set state.results = state.results + 1 -%}
    {%- if state.results > state.calls or index == 0 or messages[index - 1].role not in ['assistant', 'tool'] -%}
      {{- raise_exception('A tool message answers no call') -}}
    {%- endif -%}
    {{- '\n\n<function_results>' if state.results == 1 -}}
    {{- '\n<result>' ~ (message.content if message.content is defined else none) ~ '</result>' -}}
    {%- if state.results == state.calls -%}
      {{- '\n</function_results>\n\n' -}}
      {{- '<think>' if thinks and index >= state.question else '</think>' -}}
    {%- endif -%}
  {%- else -%}
    {{- raise_exception('Unknown role: ' ~ message.role) -}}
  {%- endif -%}
{%- endfor -%}
)TEMPLATE";

constexpr BuiltInTemplate kTemplates[] = {
    {"deepseek_v32", kDeepSeekV32, true},
};

}  // namespace

const BuiltInTemplate* find_built_in_template(std::string_view family) {
  for (const BuiltInTemplate& known : kTemplates) {
    if (known.family == family) {
      return &known;
    }
  }
  if (family == "kimi_k3") {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[chat template] {}: its prompts are made of token ids by an "
            "encoder of its own, not by a chat template",
            family
        )
    );
  }
  return nullptr;
}

}  // namespace mlxcel
