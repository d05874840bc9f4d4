#pragma once

#include <cstdint>
#include <vector>

#include "mlxcel/core/json.h"

namespace mlxcel::tokenizer {

/// What is put around the ids of a text.
class PostProcessor {
 public:
  PostProcessor() = default;
  /// The `post_processor` of a tokenizer.json file. Throws
  /// Error(unsupported) for a type that is not implemented.
  explicit PostProcessor(const Json& json);

  /// Puts an id in front of what there is already.
  void prepend(int32_t id);

  /// `special`: with the special tokens of the template, else only the text
  /// where the template has it.
  void apply(std::vector<int32_t>& ids, bool special) const;

 private:
  /// Ids, or the text where there are none.
  struct Part {
    bool is_text;
    std::vector<int32_t> ids;
  };

  void add(const Json& json);
  void add_template(const Json& json);
  static Part special_token(const Json& json, const Json& tokens);

  bool has_template_ = false;
  std::vector<Part> parts_ = {{true, {}}};
};

}  // namespace mlxcel::tokenizer
