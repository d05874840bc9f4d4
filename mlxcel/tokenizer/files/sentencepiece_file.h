#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mlxcel::tokenizer {

/// What a tokenizer.model file holds: the parts of sentencepiece's
/// src/sentencepiece_model.proto that decide how text is encoded and decoded.
struct SentencePieceFile {
  /// With the numbers of the format.
  enum class Type {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
  };
  enum class Kind { unigram = 1, bpe = 2 };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };

  std::vector<Piece> pieces;  // by id
  Kind kind = Kind::unigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  std::string unk_surface = " \xe2\x81\x87 ";
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  // Of the normalizer.
  std::string char_map;  // CharMap
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  /// The id of the one unknown piece, or -1.
  int32_t unknown_id() const;
};

/// Reads and checks a file. Throws Error(io | invalid_input | unsupported)
/// naming the file and the field.
SentencePieceFile read_sentencepiece_file(const std::string& path);

}  // namespace mlxcel::tokenizer
