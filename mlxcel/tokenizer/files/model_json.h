#pragma once

#include <memory>
#include <string>

#include "mlxcel/tokenizer/models/model.h"

namespace simdjson::dom {
class object;
}

namespace mlxcel::tokenizer {

/// What a reader of the `model` object of a tokenizer.json file must know.
struct ModelContext {
  std::string file;  // for messages
  bool reads_bytes;  // PreTokenizer::gives_bytes
};

/// Throws Error(invalid_input | unsupported) naming the field.
std::unique_ptr<Model> read_bpe(
    const simdjson::dom::object& json, const ModelContext& context
);
std::unique_ptr<Model> read_unigram(
    const simdjson::dom::object& json, const ModelContext& context
);
std::unique_ptr<Model> read_word_piece(
    const simdjson::dom::object& json, const ModelContext& context
);
std::unique_ptr<Model> read_word_level(
    const simdjson::dom::object& json, const ModelContext& context
);

/// `model.vocab`: ids by token. Throws Error(invalid_input) naming the token.
Vocab read_vocab(const simdjson::dom::object& tokens, const std::string& file);

/// Throws Error(invalid_input): `[file] field: reason`.
[[noreturn]] void reject_json(
    const std::string& file, const std::string& field, const std::string& reason
);

}  // namespace mlxcel::tokenizer
