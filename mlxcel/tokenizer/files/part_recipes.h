#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "mlxcel/tokenizer/decode/decoder.h"
#include "mlxcel/tokenizer/normalize/normalizer.h"
#include "mlxcel/tokenizer/post_processor.h"
#include "mlxcel/tokenizer/split/pre_tokenizer.h"

namespace mlxcel::tokenizer {

/// Parts for readers whose files don't spell them out, made of the JSON that
/// a tokenizer.json file would have.
std::unique_ptr<Normalizer> normalizer_from(const std::string& json);
PreTokenizer pre_tokenizer_from(const std::string& json);
Decoder decoder_from(const std::string& json);

/// Puts ids in front of a text and behind it, where there are some.
PostProcessor put_around(
    std::optional<int32_t> before, std::optional<int32_t> behind
);

/// Cuts at a pattern and hands on bytes.
PreTokenizer byte_level_pre_tokenizer(
    const std::string& pattern, bool add_prefix_space
);

}  // namespace mlxcel::tokenizer
