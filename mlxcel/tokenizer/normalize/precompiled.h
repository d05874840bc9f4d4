#pragma once

#include <memory>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/normalize/normalizer.h"

namespace mlxcel::tokenizer {

/// The Precompiled normalizer of a tokenizer.json file: a character map in
/// Base64, which the `tokenizers` library applies in its own way. Throws
/// Error(invalid_input) naming the file.
std::unique_ptr<Normalizer> make_precompiled(const Json& json);

}  // namespace mlxcel::tokenizer
