// Renders what it reads: lines of JSON, each an object with `template` and
// either `context` (the variables of a plain rendering) or `input` (messages,
// tools, ... of a chat). Prints a line {"text": ...} or {"error": ...,
// "kind": ..., "line": ..., "column": ...} for each.

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

std::string render_chat(const std::string& source, const Json& input) {
  mlxcel::RenderInput all(input.at("messages"));
  all.tools = input.find("tools");
  all.kwargs = input.find("kwargs");
  all.add_generation_prompt = input.bool_or("add_generation_prompt", false);
  all.continue_final_message = input.bool_or("continue_final_message", false);
  all.bos_token = input.string_or("bos_token", "");
  all.eos_token = input.string_or("eos_token", "");
  if (auto thinking = input.find("enable_thinking")) {
    all.enable_thinking = thinking->as_bool();
  }
  return mlxcel::ChatTemplate::from_source(source, "probe").render(all);
}

Document answer(const std::string& line) {
  Document result = Document::object();
  try {
    Json request = Json::parse(line, "request");
    const std::string& source = request.at("template").as_string();
    auto input = request.find("input");
    result["text"] = input ? render_chat(source, *input)
                           : render_plain(source, request.at("context"));
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
