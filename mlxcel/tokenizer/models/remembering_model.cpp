#include "mlxcel/tokenizer/models/remembering_model.h"

#include "mlxcel/tokenizer/models/hash.h"

namespace mlxcel::tokenizer {

std::unique_ptr<Model::Scratch> RememberingModel::make_scratch() const {
  return std::make_unique<Work>();
}

void RememberingModel::encode(
    std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
) const {
  auto& work = static_cast<Work&>(scratch);
  uint64_t hash = hash_text(piece);
  if (work.cache.find(piece, hash, ids)) {
    return;
  }
  size_t start = ids.size();
  work.tokens.clear();
  encode_tokens(piece, scratch, work.tokens);
  for (const Token& token : work.tokens) {
    ids.push_back(token.id);
  }
  work.cache.put(piece, hash, ids.data() + start, ids.size() - start);
}

}  // namespace mlxcel::tokenizer
