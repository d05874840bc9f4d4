#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "mlxcel/tokenizer/parts.h"
#include "mlxcel/tokenizer/tokenizer.h"
#include "mlxcel/tokenizer/tokenizer_config.h"

namespace mlxcel {

struct Tokenizer::Impl {
  Impl(tokenizer::Parts tokenizer_parts, tokenizer::TokenizerConfig facts);

  /// The token of an id; empty if it has none.
  std::optional<std::string_view> token(int32_t id) const;
  void encode_text(
      std::string_view text, FindAdded find, std::vector<int32_t>& ids
  ) const;
  /// Takes the pieces for the model and the added tokens between them.
  class Consumer : public tokenizer::PieceSink {
   public:
    /// `spelling`: what the token was found as.
    virtual void take_added(
        int32_t id, std::string_view spelling, const ByteRange& bytes
    ) = 0;
  };
  class Ids;
  class Tokens;
  /// `offset`: where `text` begins; `tracked`: pieces know where they are.
  void cut_chunk(
      std::string_view text,
      size_t offset,
      FindAdded find,
      bool tracked,
      Consumer& consumer
  ) const;
  void cut_text(
      std::string_view text, FindAdded find, bool tracked, Consumer& consumer
  ) const;
  std::vector<tokenizer::TextToken> encode_tokens(
      std::string_view text, FindAdded find
  ) const;
  Encoding encode_texts(
      std::span<const std::string_view> texts, const EncodeOptions& options
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

/// Throws Error(invalid_input) for a text that is too long or no UTF-8.
void check_text(std::string_view text);

}  // namespace mlxcel
