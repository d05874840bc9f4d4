#include "mlxcel/tokenizer/split/pattern.h"

#include <fmt/format.h>

#include "mlxcel/core/error.h"

namespace mlxcel::tokenizer {

std::shared_ptr<const Regex> make_pattern(const Json& json) {
  if (auto text = json.find("String")) {
    return Regex::literal(text->as_string());
  }
  Json pattern = json.at("Regex");
  try {
    return Regex::compile(pattern.as_string());
  } catch (const Error& error) {
    fail(
        error.code(),
        fmt::format(
            "[{}] {}: {}", json.document_name(), pattern.path(), error.message()
        )
    );
  }
}

void unsupported_type(
    const Json& json, const char* what, const std::string& type
) {
  fail(
      ErrorCode::unsupported,
      fmt::format(
          "[{}] {}: the {} type {} is not supported",
          json.document_name(),
          json.path(),
          what,
          quote(type)
      )
  );
}

}  // namespace mlxcel::tokenizer
