#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "mlxcel/core/base64.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/lines.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/tokenizer/files/file_formats.h"
#include "mlxcel/tokenizer/files/part_recipes.h"
#include "mlxcel/tokenizer/files/patterns.h"
#include "mlxcel/tokenizer/models/bpe.h"
#include "mlxcel/tokenizer/split/byte_level.h"

namespace mlxcel::tokenizer {

namespace {

constexpr uint64_t max_file = uint64_t{64} << 20;  // bytes
constexpr size_t max_token = 512;                  // bytes
constexpr int32_t reserved_by_kimi = 256;
constexpr int extras = 205;

class RankReader {
 public:
  /// `by_line`: the ranks are the numbers of the lines, without those that
  /// repeat a token (tokenization_hy.py, _load_tiktoken_bpe).
  RankReader(std::string path, bool by_line)
      : path_(std::move(path)), by_line_(by_line) {}

  Vocab read() {
    std::string text = read_file(path_, max_file);
    LineReader lines(text);
    for (std::string_view line; lines.next(line);) {
      line_ = lines.number();
      if (line.ends_with('\r')) {
        line.remove_suffix(1);
      }
      if (!line.empty()) {
        add(line);
      }
    }
    check_bytes();
    Vocab vocab;
    vocab.reserve(ranks_.size());
    for (const auto& [token, rank] : ranks_) {
      vocab.add(token, rank);
    }
    vocab.build();
    return vocab;
  }

 private:
  [[noreturn]] void reject(const std::string& reason) const {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[{}] line {}: {}", path_, line_, reason)
    );
  }

  void add(std::string_view line) {
    size_t space = line.find(' ');
    if (space == std::string_view::npos) {
      reject(fmt::format("expected a token and a rank, got {}", quote(line)));
    }
    std::string token =
        decode_base64(line.substr(0, space), StrayBits::ignored).value_or("");
    if (token.empty() || token.size() > max_token) {
      reject(fmt::format(
          "expected base64 of 1 to {} bytes, got {}",
          max_token,
          quote(line.substr(0, space))
      ));
    }
    auto rank = parse_int(line.substr(space + 1));
    if (!rank || *rank < 0 || *rank > Vocab::max_id) {
      reject(fmt::format(
          "expected a rank from 0 to {}, got {}",
          Vocab::max_id,
          quote(line.substr(space + 1))
      ));
    }
    std::string spelling;
    append_byte_level(spelling, token);
    auto id = static_cast<int32_t>(by_line_ ? ranks_.size() : *rank);
    if (!ranks_.emplace(spelling, id).second && !by_line_) {
      reject(fmt::format("the token {} is given twice", quote(spelling)));
    }
  }

  void check_bytes() const {
    for (unsigned b = 0; b < 256; ++b) {
      std::string spelling;
      append_byte_level(spelling, std::string(1, static_cast<char>(b)));
      if (!ranks_.contains(spelling)) {
        fail(
            ErrorCode::invalid_input,
            fmt::format("[{}] there is no token for the byte {}", path_, b)
        );
      }
    }
  }

  std::string path_;
  bool by_line_;
  size_t line_ = 0;
  std::map<std::string, int32_t, std::less<>> ranks_;  // by spelling
};

/// Every way to make a token of two, in the order of its rank.
std::vector<MergeTable::Merge> derive_merges(const Vocab& vocab) {
  std::vector<MergeTable::Merge> merges;
  for (size_t i = 0; i < vocab.id_limit(); ++i) {
    auto id = static_cast<int32_t>(i);
    std::string_view token = vocab.has(id) ? vocab.token(id) : "";
    for (size_t cut = 1; cut < token.size(); ++cut) {
      if ((static_cast<unsigned char>(token[cut]) & 0xc0) == 0x80) {
        continue;  // inside a character that spells one byte
      }
      int32_t left = vocab.find_or_none(token.substr(0, cut));
      int32_t right = left < 0 ? -1 : vocab.find_or_none(token.substr(cut));
      if (right >= 0) {
        merges.push_back({left, right, id});
      }
    }
  }
  return merges;
}

/// The names of the control ids, in order.
std::vector<std::string> control_names(TiktokenFamily family, int32_t first) {
  std::vector<std::string> names;
  if (family == TiktokenFamily::kimi) {
    for (int32_t i = 0; i < reserved_by_kimi; ++i) {
      names.push_back(fmt::format("<|reserved_token_{}|>", first + i));
    }
    return names;
  }
  bool qwen = family == TiktokenFamily::qwen;
  names = qwen ? std::vector<
                     std::string>{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
               : std::vector<std::string>{
                     "<|endoftext|>",
                     "<|startoftext|>",
                     "<|bos|>",
                     "<|eos|>",
                     "<|pad|>"};
  for (int i = 0; i < extras; ++i) {
    names.push_back(fmt::format("<|extra_{}|>", i));
  }
  if (qwen) {
    for (const char* tag :
         {"<ref>",
          "</ref>",
          "<box>",
          "</box>",
          "<quad>",
          "</quad>",
          "<img>",
          "</img>",
          "<imgpad>"}) {
      names.emplace_back(tag);
    }
  }
  return names;
}

std::vector<AddedToken> control_tokens(
    TiktokenFamily family,
    const Vocab& vocab,
    const TokenizerConfig& config,
    const std::string& path
) {
  auto first = static_cast<int32_t>(vocab.count());
  std::map<int32_t, std::string> names;
  for (std::string& name : control_names(family, first)) {
    names.emplace(first + static_cast<int32_t>(names.size()), std::move(name));
  }
  for (const AddedToken& token : config.added_tokens) {
    if (family == TiktokenFamily::kimi && !names.contains(token.id)) {
      continue;  // as tokenization_kimi.py does
    }
    names[token.id] = token.content;
  }
  std::vector<AddedToken> tokens;
  for (const auto& [id, name] : names) {
    if (vocab.has(id)) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[{}] id {} is the rank of a token and the control token {}",
              path,
              id,
              quote(name)
          )
      );
    }
    AddedToken token;
    token.content = name;
    token.special = true;
    token.id = id;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

Parts read_tiktoken(
    const std::string& path,
    const TokenizerConfig& config,
    TiktokenFamily family
) {
  bool kimi = family == TiktokenFamily::kimi;
  Parts parts;
  if (kimi) {
    parts.chunks = ChunkLimits{400'000, 25'000};
  } else {
    // Before control tokens are looked for, too.
    parts.normalizer = normalizer_from(R"({"type":"NFC"})");
  }
  parts.pre_tokenizer =
      byte_level_pre_tokenizer(kimi ? kimi_pattern : qwen2_pattern, false);
  parts.decoder = Decoder::byte_level();
  Vocab vocab = RankReader(path, family == TiktokenFamily::hunyuan).read();
  std::vector<MergeTable::Merge> merges = derive_merges(vocab);
  BpeOptions options;
  options.ignore_merges = true;
  options.rank_by_result = true;
  options.reads_bytes = parts.pre_tokenizer.gives_bytes();
  parts.model = std::make_unique<Bpe>(std::move(vocab), merges, options);
  parts.added_tokens = AddedTokens(
      control_tokens(family, parts.model->vocab(), config, path),
      parts.model->vocab(),
      parts.normalizer.get()
  );
  return parts;
}

}  // namespace mlxcel::tokenizer
