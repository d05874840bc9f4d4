#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mlxcel/tokenizer/normalize/text.h"
#include "mlxcel/tokenizer/tokenizer.h"

namespace mlxcel::test {

/// The sections of a tokenizer.json file, as JSON.
struct TokenizerFile {
  std::string model;
  std::string added_tokens = "[]";
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string post_processor = "null";
  std::string decoder = "null";

  std::string text() const;
  /// Through a temporary file.
  std::shared_ptr<const Tokenizer> load() const;
};

/// A BPE model whose tokens have the ids 0, 1, 2 ... and whose merges are
/// "a b". `options` are further fields, e.g. R"("fuse_unk":true)".
std::string bpe_model(
    const std::vector<std::string>& tokens,
    const std::vector<std::string>& merges,
    const std::string& options = ""
);

/// An added token that is special and not normalized; `options` as above.
std::string added_token(
    const std::string& content, const std::string& options = ""
);

std::string quoted(const std::string& text);
/// "[first,second]" of JSON texts.
std::string json_list(const std::vector<std::string>& elements);

/// Collects pieces as text.
class PieceList : public tokenizer::PieceSink {
 public:
  void take(const tokenizer::Piece& piece) override {
    pieces.emplace_back(piece.view());
  }
  std::vector<std::string> pieces;
};

}  // namespace mlxcel::test
