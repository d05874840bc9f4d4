#pragma once

#include <memory>
#include <optional>

#include "mlxcel/tokenizer/decode/decoder.h"
#include "mlxcel/tokenizer/limits.h"
#include "mlxcel/tokenizer/models/model.h"
#include "mlxcel/tokenizer/normalize/normalizer.h"
#include "mlxcel/tokenizer/post_processor.h"
#include "mlxcel/tokenizer/split/added_tokens.h"
#include "mlxcel/tokenizer/split/pre_tokenizer.h"
#include "mlxcel/tokenizer/split/text_chunks.h"

namespace mlxcel::tokenizer {

/// What a tokenizer is made of, whatever file it comes from.
struct Parts {
  std::optional<ChunkLimits> chunks;       // of a text, encoded one by one
  std::unique_ptr<Normalizer> normalizer;  // null: none
  PreTokenizer pre_tokenizer;
  std::unique_ptr<Model> model;
  AddedTokens added_tokens;
  PostProcessor post_processor;
  Limits limits;
  Decoder decoder;
};

}  // namespace mlxcel::tokenizer
