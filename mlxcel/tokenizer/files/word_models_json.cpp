#include <fmt/format.h>
#include <simdjson.h>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/files/model_json.h"
#include "mlxcel/tokenizer/models/word_models.h"

namespace mlxcel::tokenizer {

namespace {

namespace dom = simdjson::dom;

template <typename T>
T get(const dom::object& json, const char* name, const ModelContext& context) {
  T value{};
  if (auto error = json[name].get(value)) {
    reject_json(
        context.file,
        fmt::format("model.{}", name),
        error == simdjson::NO_SUCH_FIELD ? "missing"
                                         : simdjson::error_message(error)
    );
  }
  return value;
}

}  // namespace

Vocab read_vocab(const dom::object& tokens, const std::string& file) {
  Vocab vocab;
  vocab.reserve(tokens.size());
  for (dom::key_value_pair field : tokens) {
    uint64_t id = 0;
    if (field.value.get(id) != simdjson::SUCCESS ||
        id > static_cast<uint64_t>(Vocab::max_id)) {
      reject_json(
          file,
          fmt::format("model.vocab[{}]", quote(field.key)),
          fmt::format("expected an id from 0 to {}", Vocab::max_id)
      );
    }
    vocab.add(field.key, static_cast<int32_t>(id));
  }
  vocab.build();
  return vocab;
}

std::unique_ptr<Model> read_word_piece(
    const dom::object& json, const ModelContext& context
) {
  WordPieceOptions options;
  options.unk_token = get<std::string_view>(json, "unk_token", context);
  options.continuing_subword_prefix =
      get<std::string_view>(json, "continuing_subword_prefix", context);
  options.max_input_chars_per_word =
      get<uint64_t>(json, "max_input_chars_per_word", context);
  return std::make_unique<WordPiece>(
      read_vocab(get<dom::object>(json, "vocab", context), context.file),
      std::move(options)
  );
}

std::unique_ptr<Model> read_word_level(
    const dom::object& json, const ModelContext& context
) {
  return std::make_unique<WordLevel>(
      read_vocab(get<dom::object>(json, "vocab", context), context.file),
      std::string(get<std::string_view>(json, "unk_token", context))
  );
}

}  // namespace mlxcel::tokenizer
