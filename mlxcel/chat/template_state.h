#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mlxcel/chat/ast.h"
#include "mlxcel/chat/interpreter.h"
#include "mlxcel/chat/template.h"

namespace mlxcel {

struct ChatTemplate::State {
  /// One template; one that cannot be parsed keeps its error for render().
  struct Variant {
    std::string name;
    std::string source;
    std::string label;  // in errors
    std::shared_ptr<const chat::Program> program;
    std::exception_ptr error;
  };

  std::string origin;
  std::vector<Variant> variants;  // at least one when used
  /// "bos_token" and so on, from tokenizer_config.json.
  std::vector<std::pair<std::string, std::string>> special_tokens;

  std::string render(
      const RenderInput& input, std::vector<chat::GeneratedPart>& generated
  ) const;
  std::string names() const;
  /// Whether arguments of tool calls that are JSON text become values first.
  bool parses_arguments = false;

  /// Replaces one of the same name.
  void add(std::string name, std::string source, std::string label);
  /// The one to render with. Throws Error if there is none.
  const Variant& choose(
      const std::optional<std::string>& wanted, bool with_tools
  ) const;
  const Variant* find(std::string_view name) const;
};

}  // namespace mlxcel
