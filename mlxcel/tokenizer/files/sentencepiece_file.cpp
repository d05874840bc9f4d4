#include "mlxcel/tokenizer/files/sentencepiece_file.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <unordered_set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/tokenizer/files/protobuf.h"
#include "mlxcel/tokenizer/models/vocab.h"

namespace mlxcel::tokenizer {

namespace {

using Type = SentencePieceFile::Type;

constexpr uint64_t max_file = uint64_t{64} << 20;  // bytes
constexpr size_t max_piece = 8000;                 // bytes; sentencepiece's

/// Field numbers as in sentencepiece_model.proto.
class FileReader {
 public:
  explicit FileReader(std::string path) : path_(std::move(path)) {}

  SentencePieceFile read() {
    std::string bytes = read_file(path_, max_file);
    ProtoReader model(bytes, path_, "model");
    while (model.next()) {
      switch (model.field()) {
        case 1:
          read_piece(model.as_bytes());
          break;
        case 2:
          read_trainer_spec(model.as_bytes());
          break;
        case 3:
          read_normalizer_spec(model.as_bytes());
          break;
        case 5:
          read_denormalizer_spec(model.as_bytes());
          break;
        default:
          break;
      }
    }
    check();
    return std::move(file_);
  }

 private:
  [[noreturn]] void reject(size_t id, const std::string& reason) const {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[{}] pieces[{}]: {}", path_, id, reason)
    );
  }

  void read_piece(std::string_view bytes) {
    size_t id = file_.pieces.size();
    if (id > static_cast<size_t>(Vocab::max_id)) {
      reject(id, "too many pieces");
    }
    ProtoReader reader(bytes, path_, fmt::format("pieces[{}]", id));
    SentencePieceFile::Piece piece;
    while (reader.next()) {
      if (reader.field() == 1) {
        piece.text = reader.as_text();
      } else if (reader.field() == 2) {
        piece.score = reader.as_float();
      } else if (reader.field() == 3) {
        uint64_t type = reader.as_varint();
        if (type < 1 || type > 6) {
          reader.reject(fmt::format("expected a type from 1 to 6, got {}", type)
          );
        }
        piece.type = static_cast<Type>(type);
      }
    }
    if (piece.text.empty() || piece.text.size() >= max_piece) {
      reject(
          id,
          fmt::format(
              "expected a piece of 1 to {} bytes, got {}",
              max_piece - 1,
              piece.text.size()
          )
      );
    }
    if (!std::isfinite(piece.score)) {
      reject(id, "the score is not finite");
    }
    file_.pieces.push_back(std::move(piece));
  }

  void read_trainer_spec(std::string_view bytes) {
    ProtoReader reader(bytes, path_, "trainer_spec");
    while (reader.next()) {
      switch (reader.field()) {
        case 3:
          read_kind(reader);
          break;
        case 24:
          file_.whitespace_as_suffix = reader.as_bool();
          break;
        case 35:
          file_.byte_fallback = reader.as_bool();
          break;
        case 44:
          file_.unk_surface = reader.as_text();
          break;
        case 46:
          file_.bos_piece = reader.as_text();
          break;
        case 47:
          file_.eos_piece = reader.as_text();
          break;
        default:
          break;
      }
    }
  }

  void read_kind(const ProtoReader& reader) {
    uint64_t kind = reader.as_varint();
    if (kind != 1 && kind != 2) {
      fail(
          ErrorCode::unsupported,
          fmt::format(
              "[{}] trainer_spec.model_type: expected unigram (1) or bpe (2), "
              "got {}",
              path_,
              kind
          )
      );
    }
    file_.kind = static_cast<SentencePieceFile::Kind>(kind);
  }

  void read_normalizer_spec(std::string_view bytes) {
    ProtoReader reader(bytes, path_, "normalizer_spec");
    while (reader.next()) {
      switch (reader.field()) {
        case 2:
          file_.char_map = reader.as_bytes();
          break;
        case 3:
          file_.add_dummy_prefix = reader.as_bool();
          break;
        case 4:
          file_.remove_extra_whitespaces = reader.as_bool();
          break;
        case 5:
          file_.escape_whitespaces = reader.as_bool();
          break;
        default:
          break;
      }
    }
  }

  void read_denormalizer_spec(std::string_view bytes) {
    ProtoReader reader(bytes, path_, "denormalizer_spec");
    while (reader.next()) {
      if (reader.field() == 2 && !reader.as_bytes().empty()) {
        fail(
            ErrorCode::unsupported,
            fmt::format(
                "[{}] denormalizer_spec: rules for decoding are not supported",
                path_
            )
        );
      }
    }
  }

  /// What sentencepiece demands (src/model_interface.cc, InitializePieces).
  void check() const {
    std::unordered_set<std::string_view> seen;
    std::array<bool, 256> bytes{};
    int32_t unknown = -1;
    for (size_t id = 0; id < file_.pieces.size(); ++id) {
      const auto& piece = file_.pieces[id];
      if (piece.text == std::string_view("\0", 1) &&
          piece.type == Type::unused) {
        continue;
      }
      if (piece.text.find('\0') != std::string::npos) {
        reject(id, "holds a NUL");
      }
      if (!seen.insert(piece.text).second) {
        reject(id, fmt::format("{} is given twice", quote(piece.text)));
      }
      if (piece.type == Type::unknown) {
        if (unknown >= 0) {
          reject(id, "a second unknown piece");
        }
        unknown = static_cast<int32_t>(id);
      }
      if (piece.type == Type::byte) {
        mark_byte(id, bytes);
      }
    }
    if (file_.pieces.empty() || (unknown < 0 && !file_.byte_fallback)) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[{}] pieces: there is no {}",
              path_,
              file_.pieces.empty() ? "piece" : "unknown piece"
          )
      );
    }
    for (size_t b = 0; file_.byte_fallback && b < bytes.size(); ++b) {
      if (!bytes[b]) {
        fail(
            ErrorCode::invalid_input,
            fmt::format("[{}] pieces: there is no <0x{:02X}>", path_, b)
        );
      }
    }
  }

  void mark_byte(size_t id, std::array<bool, 256>& bytes) const {
    if (!file_.byte_fallback) {
      reject(id, "a byte, though byte_fallback is off");
    }
    for (size_t b = 0; b < bytes.size(); ++b) {
      if (file_.pieces[id].text == fmt::format("<0x{:02X}>", b)) {
        bytes[b] = true;
        return;
      }
    }
    reject(id, fmt::format("{} is no byte", quote(file_.pieces[id].text)));
  }

  std::string path_;
  SentencePieceFile file_;
};

}  // namespace

int32_t SentencePieceFile::unknown_id() const {
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type == Type::unknown) {
      return static_cast<int32_t>(id);
    }
  }
  return -1;
}

SentencePieceFile read_sentencepiece_file(const std::string& path) {
  return FileReader(path).read();
}

}  // namespace mlxcel::tokenizer
