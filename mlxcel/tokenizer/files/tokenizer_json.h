#pragma once

#include <string>

#include "mlxcel/tokenizer/parts.h"

namespace mlxcel::tokenizer {

/// Reads a tokenizer.json file (the format of the `tokenizers` library,
/// version 1.0). Throws Error(io | invalid_input | unsupported) naming the file
/// and the field.
Parts read_tokenizer_json(const std::string& path);

}  // namespace mlxcel::tokenizer
