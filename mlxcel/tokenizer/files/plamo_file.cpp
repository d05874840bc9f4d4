#include <fmt/format.h>

#include <array>
#include <cmath>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/lines.h"
#include "mlxcel/tokenizer/files/file_formats.h"
#include "mlxcel/tokenizer/files/part_recipes.h"
#include "mlxcel/tokenizer/models/plamo.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr uint64_t max_file = uint64_t{256} << 20;  // bytes
constexpr size_t special_ids = 4;                   // unk, bos, eos, pad
constexpr int32_t bos_id = 1;
constexpr int32_t eos_id = 2;

class PlamoReader {
 public:
  explicit PlamoReader(std::string path) : path_(std::move(path)) {}

  PlamoPieces read() {
    std::string text = read_file(path_, max_file);
    LineReader lines(text);
    for (std::string_view line; lines.next(line);) {
      add(line);
    }
    check();
    return std::move(file_);
  }

 private:
  void add(std::string_view line) {
    size_t id = file_.pieces.size();
    if (id > static_cast<size_t>(Vocab::max_id)) {
      fail(
          ErrorCode::invalid_input, fmt::format("[{}] too many tokens", path_)
      );
    }
    Json json = Json::parse(line, fmt::format("{} line {}", path_, id + 1));
    std::vector<Json> row = json.elements();
    if (row.size() < 2) {
      json.reject("expected a token, a score and a kind");
    }
    PlamoPieces::Piece piece;
    piece.text = row[0].as_string();
    piece.score = row[1].as_double();
    piece.is_byte = row.size() > 2 && row[2].as_string() == "BYTE";
    if (piece.text.empty() || !std::isfinite(piece.score)) {
      json.reject("expected a token that is not empty and a finite score");
    }
    file_.pieces.push_back(std::move(piece));
  }

  void check() const {
    std::array<bool, 256> bytes{};
    for (const PlamoPieces::Piece& piece : file_.pieces) {
      for (unsigned b = 0; piece.is_byte && b < 256; ++b) {
        bytes[b] = bytes[b] || piece.text == fmt::format("<0x{:02X}>", b);
      }
    }
    for (unsigned b = 0; b < 256; ++b) {
      if (!bytes[b]) {
        fail(
            ErrorCode::invalid_input,
            fmt::format("[{}] there is no byte token <0x{:02X}>", path_, b)
        );
      }
    }
  }

  std::string path_;
  PlamoPieces file_;
};

/// Long runs of one character, other than a line feed, and of spaces stand by
/// themselves.
class RunSplit : public PreTokenizerStep {
 public:
  explicit RunSplit(const TokenizerConfig& config)
      : repeated_(config.break_around_repeated_chars),
        spaces_(config.break_around_consecutive_spaces) {}

  void split(const Piece& piece, PieceSink& sink) const override {
    std::string_view text = piece.view();
    size_t done = 0;
    auto emit = [&](size_t end) {
      if (end > done) {
        sink.take({piece.text, piece.begin + done, piece.begin + end});
        done = end;
      }
    };
    for (size_t at = 0; at < text.size();) {
      size_t size = utf8::length(static_cast<unsigned char>(text[at]));
      std::string_view character = text.substr(at, size);
      size_t end = at + size;
      size_t count = 1;
      while (text.substr(end, size) == character) {
        end += size;
        ++count;
      }
      if (is_long(character, count)) {
        emit(at);
        emit(end);
      }
      at = end;
    }
    emit(text.size());
  }

 private:
  bool is_long(std::string_view character, size_t count) const {
    return (repeated_ && character != "\n" && count >= *repeated_) ||
           (spaces_ && character == " " && count >= *spaces_);
  }

  std::optional<size_t> repeated_;
  std::optional<size_t> spaces_;
};

std::vector<AddedToken> added_tokens(
    const PlamoPieces& file, const TokenizerConfig& config
) {
  std::vector<AddedToken> tokens;
  for (size_t id = 0; id < special_ids; ++id) {
    AddedToken token;
    token.content = file.pieces[id].text;
    token.special = true;
    token.normalized = false;
    token.id = static_cast<int32_t>(id);
    tokens.push_back(std::move(token));
  }
  tokens.insert(
      tokens.end(), config.added_tokens.begin(), config.added_tokens.end()
  );
  return tokens;
}

}  // namespace

Parts read_plamo(const std::string& path, const TokenizerConfig& config) {
  PlamoPieces file = PlamoReader(path).read();
  Parts parts;
  // What looks like a special token stands by itself.
  parts.pre_tokenizer = pre_tokenizer_from(
      R"({"type":"Split","behavior":"Isolated","invert":false,)"
      R"("pattern":{"Regex":"<\\|plamo:[^|\\s]{0,64}\\|>"}})"
  );
  if (config.break_around_repeated_chars ||
      config.break_around_consecutive_spaces) {
    parts.pre_tokenizer.append(std::make_unique<RunSplit>(config));
  }
  parts.decoder =
      decoder_from(R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},)"
                   R"({"type":"Fuse"}]})");
  parts.model = std::make_unique<PlamoUnigram>(file);
  parts.added_tokens =
      AddedTokens(added_tokens(file, config), parts.model->vocab(), nullptr);
  auto id_if = [](std::optional<bool> wanted, int32_t id) {
    return wanted.value_or(false) ? std::optional(id) : std::nullopt;
  };
  parts.post_processor = put_around(
      id_if(config.add_bos_token, bos_id), id_if(config.add_eos_token, eos_id)
  );
  return parts;
}

}  // namespace mlxcel::tokenizer
