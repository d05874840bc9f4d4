#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/encoding.h"

namespace mlxcel::tokenizer {

/// A token of a text with the bytes that it stands for, and how many spaces
/// it begins and ends with.
struct TextToken {
  int32_t id;
  ByteRange bytes;
  uint32_t leading_spaces;
  uint32_t trailing_spaces;
};

/// What is put around the ids of a text or of two.
class PostProcessor {
 public:
  PostProcessor();
  /// The `post_processor` of a tokenizer.json file. Throws
  /// Error(unsupported) for a type that is not implemented, and for what
  /// follows a template and needs the whole text.
  explicit PostProcessor(const Json& json);

  /// Puts an id in front of what there is already.
  void prepend(int32_t id);

  /// `special`: with the special tokens, else only the text where it stands.
  void apply(std::vector<int32_t>& ids, bool special) const;
  /// The same for the tokens of one or two texts, with offsets and types.
  Encoding apply(
      std::span<const std::string_view> texts,
      const std::vector<std::vector<TextToken>>& tokens,
      bool special
  ) const;

  /// The special token that comes before every text, if there is one.
  std::optional<int32_t> first_added() const;
  /// How many special tokens are put around `texts` texts.
  size_t added_tokens(size_t texts) const;
  /// Whether spaces are cut off from offsets.
  bool trims() const;

 private:
  /// Cuts spaces off from offsets, as ByteLevel and RobertaProcessing do.
  struct Trim {
    bool add_prefix_space;
    bool first_with_special;  // no token comes before the text
    bool first_without;
  };
  /// Ids, or a text.
  struct Part {
    int text;  // 0 or 1, else -1
    uint32_t type_id;
    std::vector<int32_t> ids;
    std::vector<Trim> trims;
  };
  using Group = std::vector<Part>;  // what the library has as one encoding

  void add(const Json& json);
  void add_template(const Json& json);
  void add_bert(const Json& json, bool roberta);
  void add_trim(bool add_prefix_space);
  static Group read_template(
      const Json& list, const Json& tokens, size_t texts
  );
  static Part special_token(const Json& json, const Json& tokens);
  static ByteRange trimmed(
      std::string_view text,
      const TextToken& token,
      bool first,
      const Trim& trim
  );
  static void put_text(
      const Part& part,
      std::string_view text,
      const std::vector<TextToken>& tokens,
      bool special,
      Encoding& encoding
  );

  bool has_template_ = false;
  std::array<std::vector<Group>, 2> plans_;  // for one text and for two
};

}  // namespace mlxcel::tokenizer
