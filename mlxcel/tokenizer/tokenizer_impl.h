#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "mlxcel/tokenizer/tokenizer.h"
#include "mlxcel/tokenizer/tokenizer_config.h"
#include "mlxcel/tokenizer/tokenizer_json.h"

namespace mlxcel {

struct Tokenizer::Impl {
  Impl(tokenizer::Parts tokenizer_parts, tokenizer::TokenizerConfig facts);

  /// The token of an id; empty if it has none.
  std::optional<std::string_view> token(int32_t id) const;
  void encode_text(
      std::string_view text, bool special, std::vector<int32_t>& ids
  ) const;
  void encode_chunk(
      std::string_view text, bool special, std::vector<int32_t>& ids
  ) const;
  /// Puts a BOS in front where a checkpoint has lost it
  /// (detection-and-routing 6.2).
  void repair_bos();
  std::optional<int32_t> find_id(std::string_view token) const;

  /// A scratch of the model for the time of a call.
  class Lease {
   public:
    explicit Lease(const Impl& owner);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    tokenizer::Model::Scratch& scratch() {
      return *scratch_;
    }

   private:
    const Impl& owner_;
    std::unique_ptr<tokenizer::Model::Scratch> scratch_;
  };

  tokenizer::Parts parts;
  tokenizer::TokenizerConfig config;
  std::optional<int32_t> added_bos;

  // Scratches that no call is using.
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<tokenizer::Model::Scratch>> scratches;
};

}  // namespace mlxcel
