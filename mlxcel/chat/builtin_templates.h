#pragma once

#include <string_view>

namespace mlxcel {

/// How the prompts of a family are made whose checkpoints carry no template.
struct BuiltInTemplate {
  std::string_view family;
  const char* source;
  /// Whether it wants the arguments of tool calls as values, not as text.
  bool parses_arguments;
};

/// The template of a family, by a `model_type` or the `chat_template_type` of
/// MLX conversions, or null. Throws Error(unsupported) for a family whose
/// prompts are made of ids and not of text.
const BuiltInTemplate* find_built_in_template(std::string_view family);

}  // namespace mlxcel
