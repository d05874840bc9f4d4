#pragma once

#include <memory>
#include <vector>

#include "mlxcel/tokenizer/models/model.h"
#include "mlxcel/tokenizer/models/word_cache.h"

namespace mlxcel::tokenizer {

/// A model that gives tokens; the ids of a piece are theirs, and those of
/// short pieces are remembered.
class RememberingModel : public Model {
 public:
  std::unique_ptr<Scratch> make_scratch() const override;
  void encode(
      std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids
  ) const final;

 protected:
  using Model::Model;

  struct Work : Scratch {
    WordCache cache;
    std::vector<Token> tokens;
  };
};

}  // namespace mlxcel::tokenizer
