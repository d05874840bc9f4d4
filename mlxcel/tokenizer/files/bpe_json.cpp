#include <fmt/format.h>
#include <simdjson.h>

#include <optional>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/files/model_json.h"
#include "mlxcel/tokenizer/models/bpe.h"

namespace mlxcel::tokenizer {

namespace {

namespace dom = simdjson::dom;

class BpeReader {
 public:
  BpeReader(const dom::object& json, const ModelContext& context)
      : file_(context.file) {
    options_.reads_bytes = context.reads_bytes;
    std::optional<dom::object> vocab;
    std::optional<dom::array> merges;
    for (dom::key_value_pair field : json) {
      if (field.key == "vocab") {
        vocab = get<dom::object>(field.value, "vocab");
      } else if (field.key == "merges") {
        merges = get<dom::array>(field.value, "merges");
      } else if (!field.value.is_null()) {
        read_option(field.key, field.value);
      }
    }
    if (!vocab || !merges) {
      reject(vocab ? "merges" : "vocab", "missing");
    }
    vocab_ = read_vocab(*vocab, file_);
    read_merges(*merges);
  }

  std::unique_ptr<Model> model() {
    return std::make_unique<Bpe>(
        std::move(vocab_), merges_, std::move(options_)
    );
  }

 private:
  [[noreturn]] void reject(std::string_view field, const std::string& reason)
      const {
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

  void read_merges(dom::array merges) {
    constexpr size_t block = 256;  // looked up together
    merges_.reserve(merges.size());
    for (dom::element merge : merges) {
      if (merge.is_string()) {
        add_merge_line(get<std::string_view>(merge, "merges"));
      } else {
        add_merge_pair(get<dom::array>(merge, "merges"));
      }
      if (pending_.size() >= block * 3) {
        resolve_pending();
      }
    }
    resolve_pending();
  }

  void add_merge_line(std::string_view line) {
    if (line.starts_with("#version")) {
      return;
    }
    size_t space = line.find(' ');
    if (space == std::string_view::npos ||
        line.find(' ', space + 1) != std::string_view::npos) {
      reject_merge(
          fmt::format("expected two tokens and a space, got {}", quote(line))
      );
    }
    add_merge(line.substr(0, space), line.substr(space + 1));
  }

  void add_merge_pair(dom::array tokens) {
    if (tokens.size() != 2) {
      reject_merge(fmt::format("expected 2 tokens, got {}", tokens.size()));
    }
    add_merge(
        get<std::string_view>(tokens.at(0).value_unsafe(), "merges"),
        get<std::string_view>(tokens.at(1).value_unsafe(), "merges")
    );
  }

  void add_merge(std::string_view left, std::string_view right) {
    size_t prefix = options_.continuing_subword_prefix.size();
    if (right.size() < prefix) {
      reject_merge("the second token is shorter than the prefix");
    }
    pending_.insert(pending_.end(), {left, right, {}});
    merged_text_ += left;
    merged_text_ += right.substr(prefix);
  }

  /// Looks up the tokens of the pending merges and what they make.
  void resolve_pending() {
    size_t prefix = options_.continuing_subword_prefix.size();
    size_t start = 0;
    for (size_t i = 0; i < pending_.size(); i += 3) {
      size_t size = pending_[i].size() + pending_[i + 1].size() - prefix;
      pending_[i + 2] = std::string_view(merged_text_).substr(start, size);
      start += size;
    }
    pending_ids_.resize(pending_.size());
    vocab_.find_many(pending_.data(), pending_ids_.data(), pending_.size());
    for (size_t i = 0; i < pending_.size(); i += 3) {
      for (size_t j = i; j < i + 3; ++j) {
        if (pending_ids_[j] < 0) {
          std::string_view missing = pending_[j];
          pending_.clear();
          reject_merge(
              fmt::format("{} is not in the vocabulary", quote(missing))
          );
        }
      }
      merges_.push_back(
          {pending_ids_[i], pending_ids_[i + 1], pending_ids_[i + 2]}
      );
    }
    pending_.clear();
    merged_text_.clear();
  }

  [[noreturn]] void reject_merge(const std::string& reason) const {
    size_t index = merges_.size() + pending_.size() / 3;
    reject(fmt::format("merges[{}]", index), reason);
  }

  std::string file_;
  BpeOptions options_;
  Vocab vocab_;
  std::vector<MergeTable::Merge> merges_;
  // Three a merge: left, right and what they make.
  std::vector<std::string_view> pending_;
  std::vector<int32_t> pending_ids_;
  std::string merged_text_;
};

}  // namespace

std::unique_ptr<Model> read_bpe(
    const dom::object& json, const ModelContext& context
) {
  return BpeReader(json, context).model();
}

}  // namespace mlxcel::tokenizer
