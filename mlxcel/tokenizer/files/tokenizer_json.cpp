#include "mlxcel/tokenizer/files/tokenizer_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/os.h"
#include "mlxcel/tokenizer/files/model_json.h"

namespace mlxcel::tokenizer {

namespace {

namespace dom = simdjson::dom;

constexpr uint64_t max_file = uint64_t{1} << 30;  // bytes
constexpr size_t max_depth = 128;

/// The file with the padding that simdjson needs: what follows it in its last
/// page, if that is enough, else a copy.
class PaddedFile {
 public:
  explicit PaddedFile(const std::string& path) : file_(MappedFile::open(path)) {
    std::span<const std::byte> bytes = file_->bytes();
    if (bytes.size() > max_file) {
      reject_json(path, "size", "more than 1 GB");
    }
    auto data = reinterpret_cast<const char*>(bytes.data());
    size_t used = bytes.size() % os::page_size();
    if (used != 0 && used + simdjson::SIMDJSON_PADDING <= os::page_size()) {
      text_ = {data, bytes.size()};
      return;
    }
    copy_ = simdjson::padded_string(data, bytes.size());
    text_ = copy_;
  }

  std::string_view text() const {
    return text_;
  }
  bool changed() const {
    return file_->faulted();
  }

 private:
  std::shared_ptr<MappedFile> file_;
  simdjson::padded_string copy_;
  std::string_view text_;
};

/// The fields that are not null.
using Sections = std::map<std::string_view, dom::element>;

Sections read_sections(dom::element root, const std::string& file) {
  dom::object fields;
  if (root.get(fields) != simdjson::SUCCESS) {
    reject_json(file, "document", "expected an object");
  }
  Sections sections;
  for (dom::key_value_pair field : fields) {
    if (!field.value.is_null() &&
        !sections.emplace(field.key, field.value).second) {
      reject_json(file, std::string(field.key), "given twice");
    }
  }
  return sections;
}

/// A section as a document that names its fields in errors.
std::optional<Json> find_section(
    const Sections& sections, const char* name, const std::string& file
) {
  auto at = sections.find(name);
  if (at == sections.end()) {
    return std::nullopt;
  }
  std::string text =
      fmt::format("{{\"{}\":{}}}", name, simdjson::minify(at->second));
  return Json::parse(text, file).at(name);
}

AddedToken read_added_token(
    dom::element element, const std::string& file, const std::string& where
) {
  AddedToken token;
  std::string_view content;
  if (element["content"].get(content) != simdjson::SUCCESS) {
    reject_json(file, where + ".content", "expected a text");
  }
  token.content = content;
  struct Flag {
    const char* name;
    bool* value;
  };
  for (const Flag& flag :
       {Flag{"single_word", &token.single_word},
        Flag{"lstrip", &token.lstrip},
        Flag{"rstrip", &token.rstrip},
        Flag{"normalized", &token.normalized},
        Flag{"special", &token.special}}) {
    auto error = element[flag.name].get(*flag.value);
    if (error != simdjson::SUCCESS && error != simdjson::NO_SUCH_FIELD) {
      reject_json(
          file, fmt::format("{}.{}", where, flag.name), "expected true or false"
      );
    }
  }
  return token;
}

std::vector<AddedToken> read_added_tokens(
    const Sections& sections, const std::string& file
) {
  std::vector<AddedToken> tokens;
  auto at = sections.find("added_tokens");
  if (at == sections.end()) {
    return tokens;
  }
  dom::array elements;
  if (at->second.get(elements) != simdjson::SUCCESS) {
    reject_json(file, "added_tokens", "expected a list");
  }
  for (dom::element element : elements) {
    tokens.push_back(read_added_token(
        element, file, fmt::format("added_tokens[{}]", tokens.size())
    ));
  }
  return tokens;
}

dom::object find_model(const Sections& sections, const std::string& file) {
  auto at = sections.find("model");
  dom::object model;
  if (at == sections.end() || at->second.get(model) != simdjson::SUCCESS) {
    reject_json(file, "model", "expected an object");
  }
  return model;
}

/// By default the type that the other fields show, in files from before types
/// were written.
std::string model_type(const dom::object& model, const std::string& file) {
  std::string_view type;
  auto error = model["type"].get(type);
  if (error == simdjson::SUCCESS) {
    return std::string(type);
  }
  if (error != simdjson::NO_SUCH_FIELD) {
    reject_json(file, "model.type", "expected a text");
  }
  auto has = [&model](const char* name) {
    return model[name].error() == simdjson::SUCCESS;
  };
  dom::array pieces;
  return has("merges")                                     ? "BPE"
         : has("max_input_chars_per_word")                 ? "WordPiece"
         : model["vocab"].get(pieces) == simdjson::SUCCESS ? "Unigram"
                                                           : "WordLevel";
}

std::unique_ptr<Model> read_model(
    const dom::object& model,
    const std::string& type,
    const std::string& file,
    bool reads_bytes
) {
  if (type == "BPE") {
    return read_bpe(model, {file, reads_bytes});
  }
  if (type == "Unigram") {
    return read_unigram(model, {file, reads_bytes});
  }
  if (type == "WordPiece") {
    return read_word_piece(model, {file, reads_bytes});
  }
  if (type == "WordLevel") {
    return read_word_level(model, {file, reads_bytes});
  }
  fail(
      ErrorCode::unsupported,
      fmt::format("[{}] model: the type {} is not supported", file, quote(type))
  );
}

/// Fields that a reader does not know might change what a text becomes.
void check_names(const Sections& sections, const std::string& file) {
  static constexpr std::string_view known[] = {
      "version",
      "truncation",
      "padding",
      "added_tokens",
      "normalizer",
      "pre_tokenizer",
      "model",
      "decoder",
      "post_processor"};
  for (const auto& [name, value] : sections) {
    if (std::find(std::begin(known), std::end(known), name) ==
        std::end(known)) {
      fail(
          ErrorCode::unsupported,
          fmt::format("[{}] the field {} is not known", file, quote(name))
      );
    }
    std::string_view version;
    if (name == "version" &&
        (value.get(version) != simdjson::SUCCESS || version != "1.0")) {
      fail(
          ErrorCode::unsupported,
          fmt::format("[{}] version: expected \"1.0\"", file)
      );
    }
  }
}

}  // namespace

void reject_json(
    const std::string& file, const std::string& field, const std::string& reason
) {
  fail(
      ErrorCode::invalid_input, fmt::format("[{}] {}: {}", file, field, reason)
  );
}

Parts read_tokenizer_json(const std::string& path) {
  PaddedFile file(path);
  std::string_view text = file.text();
  dom::parser parser;
  dom::element root;
  auto error = parser.allocate(text.size(), max_depth);
  if (!error) {
    bool has_padding = true;
    error = parser.parse(text.data(), text.size(), !has_padding).get(root);
  }
  if (file.changed()) {
    fail(ErrorCode::io, fmt::format("[{}] changed while it was read", path));
  }
  if (error) {
    reject_json(path, "document", simdjson::error_message(error));
  }
  Sections sections = read_sections(root, path);
  check_names(sections, path);
  dom::object model = find_model(sections, path);
  std::string type = model_type(model, path);
  Parts parts;
  if (auto json = find_section(sections, "normalizer", path)) {
    parts.normalizer = make_normalizer(*json);
  }
  if (auto json = find_section(sections, "pre_tokenizer", path)) {
    parts.pre_tokenizer = PreTokenizer(*json, type == "BPE");
  }
  if (auto json = find_section(sections, "post_processor", path)) {
    parts.post_processor = PostProcessor(*json);
  }
  if (auto json = find_section(sections, "truncation", path)) {
    parts.limits.truncation = read_truncation(*json);
  }
  if (auto json = find_section(sections, "padding", path)) {
    parts.limits.padding = read_padding(*json);
  }
  if (auto json = find_section(sections, "decoder", path)) {
    parts.decoder = Decoder(*json);
  } else if (parts.pre_tokenizer.has_byte_level()) {
    // Without it the text would be full of the alphabet's odd characters.
    parts.decoder = Decoder::byte_level();
  }
  parts.model =
      read_model(model, type, path, parts.pre_tokenizer.gives_bytes());
  parts.added_tokens = AddedTokens(
      read_added_tokens(sections, path),
      parts.model->vocab(),
      parts.normalizer.get()
  );
  return parts;
}

}  // namespace mlxcel::tokenizer
