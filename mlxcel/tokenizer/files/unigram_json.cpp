#include <fmt/format.h>
#include <simdjson.h>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/files/model_json.h"
#include "mlxcel/tokenizer/models/unigram.h"

namespace mlxcel::tokenizer {

namespace {

namespace dom = simdjson::dom;

[[noreturn]] void reject(
    const ModelContext& context,
    const std::string& field,
    const std::string& reason
) {
  reject_json(context.file, "model." + field, reason);
}

std::vector<UnigramPiece> read_pieces(
    const dom::element& element, const ModelContext& context
) {
  dom::array list;
  if (element.get(list) != simdjson::SUCCESS) {
    reject(context, "vocab", "expected a list");
  }
  std::vector<UnigramPiece> pieces;
  pieces.reserve(list.size());
  for (dom::element entry : list) {
    dom::array pair;
    std::string_view text;
    double score = 0;
    if (entry.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get(text) != simdjson::SUCCESS ||
        pair.at(1).get(score) != simdjson::SUCCESS) {
      reject(
          context,
          fmt::format("vocab[{}]", pieces.size()),
          "expected a token and its score"
      );
    }
    pieces.push_back({std::string(text), score});
  }
  return pieces;
}

}  // namespace

std::unique_ptr<Model> read_unigram(
    const dom::object& json, const ModelContext& context
) {
  UnigramOptions options;
  dom::element vocab;
  if (json["vocab"].get(vocab) != simdjson::SUCCESS) {
    reject(context, "vocab", "missing");
  }
  std::vector<UnigramPiece> pieces = read_pieces(vocab, context);
  dom::element unk_id;
  if (json["unk_id"].get(unk_id) == simdjson::SUCCESS && !unk_id.is_null()) {
    uint64_t id = 0;
    if (unk_id.get(id) != simdjson::SUCCESS || id >= pieces.size()) {
      reject(context, "unk_id", "expected the place of a token in vocab");
    }
    options.unk_id = static_cast<int32_t>(id);
  }
  auto error = json["byte_fallback"].get(options.byte_fallback);
  if (error != simdjson::SUCCESS && error != simdjson::NO_SUCH_FIELD) {
    reject(context, "byte_fallback", "expected true or false");
  }
  return std::make_unique<Unigram>(pieces, options);
}

}  // namespace mlxcel::tokenizer
