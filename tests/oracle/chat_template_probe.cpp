// Renders what it reads: lines of JSON, each an object with `template` or, for
// chats, `directory` (of a model), and either `context` (the variables of a
// plain rendering) or `input` (messages, tools, ... of a chat). Prints a line
// {"text": ...}, with `spans` if the request asks for them, {"seconds": ...} of
// the fastest of `rounds`, or {"error": ..., "kind": ..., "line": ...,
// "column": ...} for each.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "mlxcel/chat/engine.h"
#include "mlxcel/chat/template.h"

namespace {

using mlxcel::Json;
using Document = nlohmann::ordered_json;

struct Variables final : mlxcel::chat::ContextMaker {
  explicit Variables(const Json& all) : values(all) {}

  mlxcel::chat::Context make() const override {
    mlxcel::chat::Context context;
    for (const auto& [name, value] : values.raw().items()) {
      context.emplace_back(name, mlxcel::chat::Value::from_json(value));
    }
    return context;
  }

  Json values;
};

std::string render_plain(const std::string& source, const Json& context) {
  auto program = mlxcel::chat::compile(source, "probe");
  constexpr int64_t kTime = 1'700'000'000;
  return mlxcel::chat::render(
      *program, "probe", Variables(context), mlxcel::TemplateLimits(), kTime
  );
}

mlxcel::RenderInput chat_input(const Json& input) {
  mlxcel::RenderInput all(input.at("messages"));
  all.tools = input.find("tools");
  all.kwargs = input.find("kwargs");
  all.add_generation_prompt = input.bool_or("add_generation_prompt", false);
  all.continue_final_message = input.bool_or("continue_final_message", false);
  if (auto token = input.find("bos_token")) {
    all.bos_token = token->as_string();
  }
  if (auto token = input.find("eos_token")) {
    all.eos_token = token->as_string();
  }
  all.documents = input.find("documents");
  all.continued_member = input.string_or("continued_member", "content");
  if (auto name = input.find("template_name")) {
    all.template_name = name->as_string();
  }
  if (auto thinking = input.find("enable_thinking")) {
    all.enable_thinking = thinking->as_bool();
  }
  return all;
}

mlxcel::ChatTemplate chat_template(const Json& request) {
  if (auto source = request.find("template")) {
    return mlxcel::ChatTemplate::from_source(source->as_string(), "probe");
  }
  const std::string& directory = request.at("directory").as_string();
  auto found = mlxcel::ChatTemplate::load(directory);
  if (!found) {
    mlxcel::fail(mlxcel::ErrorCode::not_found, "[probe] no template");
  }
  return *found;
}

// The fastest of some renderings.
double best_time(
    const mlxcel::ChatTemplate& chat,
    const mlxcel::RenderInput& input,
    int64_t rounds
) {
  using Clock = std::chrono::steady_clock;
  auto best = Clock::duration::max();
  for (int64_t i = 0; i < rounds; ++i) {
    auto start = Clock::now();
    chat.render(input);
    best = std::min(best, Clock::now() - start);
  }
  return std::chrono::duration<double>(best).count();
}

void render_chat(const Json& request, const Json& input, Document& result) {
  auto chat = chat_template(request);
  if (int64_t rounds = request.int_or("rounds", 0); rounds > 0) {
    result["seconds"] = best_time(chat, chat_input(input), rounds);
    return;
  }
  if (!request.bool_or("spans", false)) {
    result["text"] = chat.render(chat_input(input));
    return;
  }
  mlxcel::RenderedChat rendered = chat.render_with_spans(chat_input(input));
  result["text"] = rendered.text;
  result["spans"] = Document::array();
  for (const mlxcel::TextSpan& span : rendered.generated) {
    result["spans"].push_back({span.begin, span.end});
  }
}

Document answer(const std::string& line) {
  Document result = Document::object();
  try {
    Json request = Json::parse(line, "request");
    if (auto input = request.find("input")) {
      render_chat(request, *input, result);
    } else {
      result["text"] = render_plain(
          request.at("template").as_string(), request.at("context")
      );
    }
  } catch (const mlxcel::TemplateError& error) {
    result["error"] = error.message();
    result["reason"] = error.reason();
    result["kind"] = static_cast<int>(error.kind());
    result["line"] = error.line();
    result["column"] = error.column();
  } catch (const mlxcel::Error& error) {
    result["error"] = error.message();
  }
  return result;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(line).dump() << '\n' << std::flush;
  }
}
