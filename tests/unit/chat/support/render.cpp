#include "tests/unit/chat/support/render.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "mlxcel/core/json.h"

namespace mlxcel::test {

namespace {

// 2023-11-14 22:13:20 UTC.
constexpr int64_t kTime = 1'700'000'000;

struct Variables final : chat::ContextMaker {
  explicit Variables(const std::string& text)
      : values(Json::parse(text, "context")) {}

  chat::Context make() const override {
    chat::Context context;
    for (const auto& [name, value] : values.raw().items()) {
      context.emplace_back(name, chat::Value::from_json(value));
    }
    return context;
  }

  Json values;
};

}  // namespace

std::string render(
    const std::string& source,
    const std::string& context,
    const TemplateLimits& limits
) {
  auto program = chat::compile(source, "test");
  return chat::render(*program, "test", Variables(context), limits, kTime);
}

TemplateError render_error(
    const std::string& source,
    const std::string& context,
    const TemplateLimits& limits
) {
  try {
    std::string text = render(source, context, limits);
    ADD_FAILURE() << source << " rendered to: " << text.substr(0, 200);
  } catch (const TemplateError& error) {
    return error;
  }
  return TemplateError(TemplateError::Kind::failure, "none", 0, 0, "none");
}

}  // namespace mlxcel::test
