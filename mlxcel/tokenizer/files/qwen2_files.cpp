#include <fmt/format.h>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/lines.h"
#include "mlxcel/core/utf8.h"
#include "mlxcel/tokenizer/files/file_formats.h"
#include "mlxcel/tokenizer/files/part_recipes.h"
#include "mlxcel/tokenizer/files/patterns.h"
#include "mlxcel/tokenizer/models/bpe.h"

namespace mlxcel::tokenizer {

namespace {

constexpr uint64_t max_file = uint64_t{256} << 20;  // bytes

Vocab read_vocab(const std::string& path) {
  Json json = Json::parse_file(path, max_file);
  auto entries = json.items();
  Vocab vocab;
  vocab.reserve(entries.size());
  // Added tokens are numbered behind the count, whatever the ids are.
  auto most = static_cast<int64_t>(entries.size()) - 1;
  for (const auto& [token, id] : entries) {
    if (!id.is_integer() || id.as_int() < 0 || id.as_int() > most ||
        most > Vocab::max_id) {
      id.reject(
          fmt::format("expected an id from 0 to {}, got {}", most, id.preview())
      );
    }
    vocab.add(token, static_cast<int32_t>(id.as_int()));
  }
  vocab.build();
  return vocab;
}

/// One merge a line, "left right"; the first line may be "#version: 0.2".
class MergeReader {
 public:
  MergeReader(std::string path, const Vocab& vocab)
      : path_(std::move(path)), vocab_(vocab) {}

  std::vector<MergeTable::Merge> read() {
    std::string text = read_file(path_, max_file);
    if (find_invalid_utf8(text)) {
      fail(ErrorCode::invalid_input, fmt::format("[{}] not UTF-8", path_));
    }
    LineReader lines(text);
    for (std::string_view line; lines.next(line);) {
      line_ = lines.number();
      if (line.ends_with('\r')) {
        line.remove_suffix(1);
      }
      if (!line.empty() && !(line_ == 1 && line.starts_with("#version"))) {
        add(line);
      }
    }
    return std::move(merges_);
  }

 private:
  [[noreturn]] void reject(const std::string& reason) const {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[{}] line {}: {}", path_, line_, reason)
    );
  }

  int32_t find(std::string_view token) const {
    int32_t id = vocab_.find_or_none(token);
    if (id < 0) {
      reject(fmt::format("{} is not in the vocabulary", quote(token)));
    }
    return id;
  }

  void add(std::string_view line) {
    size_t space = line.find(' ');
    if (space == std::string_view::npos ||
        line.find(' ', space + 1) != std::string_view::npos) {
      reject(fmt::format("expected two tokens and a space, got {}", quote(line))
      );
    }
    std::string whole(line.substr(0, space));
    whole += line.substr(space + 1);
    merges_.push_back(
        {find(line.substr(0, space)), find(line.substr(space + 1)), find(whole)}
    );
  }

  std::string path_;
  const Vocab& vocab_;
  size_t line_ = 0;
  std::vector<MergeTable::Merge> merges_;
};

/// New tokens are numbered in their order, known ones keep their id: what
/// comes of it must be what the checkpoint declares.
AddedTokens make_added_tokens(
    const TokenizerConfig& config,
    const Vocab& vocab,
    const Normalizer* normalizer,
    const std::string& model_dir
) {
  std::vector<AddedToken> tokens = config.added_tokens;
  for (AddedToken& token : tokens) {
    token.id = -1;
  }
  AddedTokens added(tokens, vocab, normalizer);
  for (const AddedToken& declared : config.added_tokens) {
    int32_t id = added.find(declared.content);
    if (id != declared.id) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[{}] added token {}: declared as id {}, but behind the {} "
              "tokens of vocab.json it is {}",
              model_dir,
              quote(declared.content),
              declared.id,
              vocab.count(),
              id
          )
      );
    }
  }
  return added;
}

}  // namespace

Parts read_qwen2_files(
    const std::string& model_dir, const TokenizerConfig& config
) {
  Parts parts;
  parts.normalizer = normalizer_from(R"({"type":"NFC"})");
  parts.pre_tokenizer = byte_level_pre_tokenizer(
      qwen2_pattern, config.add_prefix_space.value_or(false)
  );
  parts.decoder = Decoder::byte_level();
  Vocab vocab = read_vocab(join_path(model_dir, "vocab.json"));
  std::string merges_path = join_path(model_dir, "merges.txt");
  std::vector<MergeTable::Merge> merges =
      MergeReader(merges_path, vocab).read();
  BpeOptions options;
  options.reads_bytes = parts.pre_tokenizer.gives_bytes();
  parts.model = std::make_unique<Bpe>(std::move(vocab), merges, options);
  parts.added_tokens = make_added_tokens(
      config, parts.model->vocab(), parts.normalizer.get(), model_dir
  );
  return parts;
}

}  // namespace mlxcel::tokenizer
