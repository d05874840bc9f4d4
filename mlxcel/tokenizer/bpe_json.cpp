#include <fmt/format.h>
#include <simdjson.h>

#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/bpe.h"
#include "mlxcel/tokenizer/model_json.h"

namespace mlxcel::tokenizer {

namespace {

namespace dom = simdjson::dom;

class BpeReader {
 public:
  BpeReader(const dom::object& json, const ModelContext& context)
      : file_(context.file) {
    options_.reads_bytes = context.reads_bytes;
    bool has_vocab = false;
    bool has_merges = false;
    for (dom::key_value_pair field : json) {
      if (field.key == "vocab") {
        has_vocab = true;
        read_vocab(get<dom::object>(field.value, "vocab"));
      } else if (field.key == "merges") {
        has_merges = true;
        read_merges(get<dom::array>(field.value, "merges"));
      } else if (!field.value.is_null()) {
        read_option(field.key, field.value);
      }
    }
    if (!has_vocab || !has_merges) {
      reject(has_vocab ? "merges" : "vocab", "missing");
    }
  }

  std::unique_ptr<Model> model() {
    vocab_.build();
    std::vector<MergeTable::Merge> merges = resolve_merges();
    return std::make_unique<Bpe>(
        std::move(vocab_), merges, std::move(options_)
    );
  }

 private:
  struct Pair {
    std::string_view left;
    std::string_view right;
  };

  [[noreturn]] void reject(
      std::string_view field, const std::string& reason
  ) const {
    reject_json(file_, fmt::format("model.{}", field), reason);
  }

  template <typename T>
  T get(dom::element element, std::string_view field) const {
    T value{};
    if (auto error = element.get(value)) {
      reject(field, simdjson::error_message(error));
    }
    return value;
  }

  void read_option(std::string_view key, dom::element value) {
    if (key == "unk_token") {
      options_.unk_token = get<std::string_view>(value, key);
    } else if (key == "continuing_subword_prefix") {
      options_.continuing_subword_prefix = get<std::string_view>(value, key);
    } else if (key == "end_of_word_suffix") {
      options_.end_of_word_suffix = get<std::string_view>(value, key);
    } else if (key == "fuse_unk") {
      options_.fuse_unk = get<bool>(value, key);
    } else if (key == "byte_fallback") {
      options_.byte_fallback = get<bool>(value, key);
    } else if (key == "ignore_merges") {
      options_.ignore_merges = get<bool>(value, key);
    } else if (key == "dropout" && get<double>(value, key) != 0) {
      fail(
          ErrorCode::unsupported,
          fmt::format(
              "[{}] model.dropout: encoding at random is not supported", file_
          )
      );
    }
  }

  void read_vocab(dom::object tokens) {
    vocab_.reserve(tokens.size());
    for (dom::key_value_pair field : tokens) {
      uint64_t id = 0;
      if (field.value.get(id) != simdjson::SUCCESS ||
          id > static_cast<uint64_t>(Vocab::max_id)) {
        reject(
            fmt::format("vocab[{}]", quote(field.key)),
            fmt::format("expected an id from 0 to {}", Vocab::max_id)
        );
      }
      vocab_.add(field.key, static_cast<int32_t>(id));
    }
  }

  /// Merges may stand before the vocabulary: they are resolved at the end.
  void read_merges(dom::array merges) {
    pairs_.reserve(merges.size());
    for (dom::element merge : merges) {
      if (merge.is_string()) {
        add_merge_line(get<std::string_view>(merge, "merges"));
      } else {
        add_merge_pair(get<dom::array>(merge, "merges"));
      }
    }
  }

  void add_merge_line(std::string_view line) {
    if (line.starts_with("#version")) {
      return;
    }
    size_t space = line.find(' ');
    if (space == std::string_view::npos ||
        line.find(' ', space + 1) != std::string_view::npos) {
      reject_merge(
          pairs_.size(),
          fmt::format("expected two tokens and a space, got {}", quote(line))
      );
    }
    pairs_.push_back({line.substr(0, space), line.substr(space + 1)});
  }

  void add_merge_pair(dom::array tokens) {
    if (tokens.size() != 2) {
      reject_merge(
          pairs_.size(), fmt::format("expected 2 tokens, got {}", tokens.size())
      );
    }
    pairs_.push_back(
        {get<std::string_view>(tokens.at(0).value_unsafe(), "merges"),
         get<std::string_view>(tokens.at(1).value_unsafe(), "merges")}
    );
  }

  [[noreturn]] void reject_merge(
      size_t index, const std::string& reason
  ) const {
    reject(fmt::format("merges[{}]", index), reason);
  }

  int32_t find(size_t merge, std::string_view token) const {
    int32_t id = vocab_.find_or_none(token);
    if (id < 0) {
      reject_merge(
          merge, fmt::format("{} is not in the vocabulary", quote(token))
      );
    }
    return id;
  }

  std::vector<MergeTable::Merge> resolve_merges() const {
    std::vector<MergeTable::Merge> merges;
    merges.reserve(pairs_.size());
    size_t prefix = options_.continuing_subword_prefix.size();
    std::string both;
    int32_t last = -1;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const Pair& pair = pairs_[i];
      if (pair.right.size() < prefix) {
        reject_merge(i, "the second token is shorter than the prefix");
      }
      both = pair.left;
      both += pair.right.substr(prefix);
      // Most vocabularies are in the order of their merges.
      bool follows = vocab_.has(last + 1) && vocab_.token(last + 1) == both;
      last = follows ? last + 1 : find(i, both);
      merges.push_back({find(i, pair.left), find(i, pair.right), last});
    }
    return merges;
  }

  std::string file_;
  BpeOptions options_;
  Vocab vocab_;
  std::vector<Pair> pairs_;  // views of the parsed document
};

}  // namespace

std::unique_ptr<Model> read_bpe(
    const dom::object& json, const ModelContext& context
) {
  return BpeReader(json, context).model();
}

}  // namespace mlxcel::tokenizer
