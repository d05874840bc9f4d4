#pragma once

#include <memory>

#include "mlxcel/tokenizer/decode/decoder.h"
#include "mlxcel/tokenizer/models/sentencepiece_model.h"
#include "mlxcel/tokenizer/normalize/normalizer.h"

namespace mlxcel::tokenizer {

/// What sentencepiece does to a text before its model sees it
/// (src/normalizer.cc). `prefix_at_start_only`: the dummy prefix comes only
/// before the start of the input, not behind added tokens. Keeps a reference
/// to the model's pieces.
std::unique_ptr<Normalizer> make_sentencepiece_normalizer(
    const SentencePieceFile& file,
    const std::string& path,
    const SentencePieceModel& model,
    bool prefix_at_start_only
);

/// Pieces back to text (src/sentencepiece_processor.cc, Decode). Keeps a
/// reference to the model's pieces.
Decoder make_sentencepiece_decoder(
    const SentencePieceFile& file, const SentencePieceModel& model
);

}  // namespace mlxcel::tokenizer
