#include <array>

#include "mlxcel/chat/builtin_templates.h"
#include "mlxcel/chat/conversation.h"
#include "tests/fuzz/chat_template_support.h"

// Hostile values in fixed templates. The input is a JSON object with messages,
// tools, documents and kwargs as a caller gives them.

using namespace mlxcel;

namespace {

// Each walks the values in another way.
constexpr std::array kSources = {
    R"({% for m in messages %}{{ m.role }}{{ m.content }}{{ m|tojson }}
{{- m|tojson(indent=2, sort_keys=true, ensure_ascii=true) }}{{ m|string }}
{%- for k, v in m.items() %}{{ k }}{{ v is string }}{{ v|length }}
{%- endfor %}{% endfor %}{{ tools|tojson }}{{ documents }})",
    R"({% macro show(v) %}{% if v is mapping %}{% for k, w in v|dictsort %}
{{- k }}={{ show(w) }}{% endfor %}{% elif v is string %}{{ v|trim|upper }}
{%- elif v is iterable %}{% for w in v %}{{ loop.index }}{{ show(w) }}
{%- endfor %}{% elif v is number %}{{ v * 2 }}{{ v // 3 }}{{ '%s' % v }}
{%- else %}{{ v }}{% endif %}{% endmacro %}{{ show(messages) }}
{{- show(tools) }})",
    R"({% for m in messages %}{% generation %}{{ (m.content ~ '')[1:-1] }}
{%- endgeneration %}{{ (m.content ~ '').split('a')|join('-') }}
{{- (m.content ~ '').split()|length }}{{ (m.content ~ '').title() }}
{{- (m.content ~ '').replace(m.role ~ '', 'x') }}{{ (m.content ~ '')|indent }}
{{- (m.content ~ '').rsplit('é', 2)[0] }}{{ (m.content ~ '')[::-1] }}
{{- (m.content ~ '').strip(m.role ~ '') }}{{ (m.content ~ '')|truncate(9) }}
{{- '{:>9}|{!r}'.format(m.role ~ '', m.content) }}{{ '%r' % (m.content,) }}
{{- m.content|string|urlencode }}{{ m.content|string|escape }}{% endfor %})",
    R"({{ messages|map(attribute='content')|list }}{{ messages|sort }})",
    R"({{ messages|groupby('role') }}{{ messages|map(attribute='role')|unique
|list }}{{ messages|selectattr('content', 'string')|list|length }}
{{- messages|rejectattr('tool_calls')|list }})",
    R"({% for m in messages %}{{ m.content|sum }}{{ m.content|max }}
{{- m.content|float }}{{ m.content|int }}{% endfor %})",
    R"({{ messages[-1].content + 'x' }}{{ messages[0] == messages[-1] }}
{{- messages[0] in messages }}{{ messages[-1].tool_calls[0].function.arguments
|items|list }})"};

RenderInput parse_input(const Json& all) {
  RenderInput input(all.at("messages"));
  input.tools = all.find("tools");
  input.documents = all.find("documents");
  input.kwargs = all.find("kwargs");
  input.now = 0;
  input.limits = fuzz::small_limits();
  return input;
}

std::vector<ChatTemplate> make_templates() {
  std::vector<ChatTemplate> all;
  for (const char* source : kSources) {
    all.push_back(ChatTemplate::from_source(source, "fuzz"));
  }
  const BuiltInTemplate* known = find_built_in_template("deepseek_v32");
  all.push_back(ChatTemplate::from_source(known->source, "deepseek"));
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<ChatTemplate> templates = make_templates();
  try {
    RenderInput input =
        parse_input(Json::parse(fuzz::as_text(data, size), "fuzz"));
    for (const ChatTemplate& chat_template : templates) {
      fuzz::check_rendering(chat_template, input);
    }
    plain_prompt(input);
  } catch (const Error&) {
  }
  return 0;
}
