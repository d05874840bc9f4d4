#pragma once

#include <string>

#include "mlxcel/tokenizer/parts.h"
#include "mlxcel/tokenizer/tokenizer_config.h"

namespace mlxcel::tokenizer {

/// The parts of whichever tokenizer a model directory holds. A tokenizer.json
/// may have lost its BOS; for other files `config` is changed to say that
/// none is to be put back. Throws Error(not_found) listing what was tried,
/// or what the reader of the file throws.
Parts read_tokenizer_directory(
    const std::string& model_dir, TokenizerConfig& config
);

}  // namespace mlxcel::tokenizer
