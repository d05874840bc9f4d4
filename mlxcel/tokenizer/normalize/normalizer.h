#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/normalize/text.h"

namespace mlxcel::tokenizer {

/// Changes a text before it is cut into pieces.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Text& text) const = 0;
  /// `text` normalized on its own.
  std::string apply_to(std::string_view text) const;
};

/// The `normalizer` of a tokenizer.json file. Throws Error(unsupported) for a
/// type that is not implemented.
std::unique_ptr<Normalizer> make_normalizer(const Json& json);

}  // namespace mlxcel::tokenizer
