#include "mlxcel/tokenizer/normalize/normalizer.h"

#include <fmt/format.h>

#include <optional>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/normalize/character_normalizers.h"
#include "mlxcel/tokenizer/normalize/normal_form.h"
#include "mlxcel/tokenizer/normalize/precompiled.h"
#include "mlxcel/tokenizer/split/pattern.h"
#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr size_t max_steps = 64;

class Form : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  void apply(Text& text) const override {
    normalize(text, form_);
  }

 private:
  NormalForm form_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : addition_(std::move(text)) {}
  void apply(Text& text) const override {
    if (!text.empty()) {
      TextEditor editor(text);
      editor.insert_before(addition_);
      editor.finish();
    }
  }

 private:
  std::string addition_;
};

class Replace : public Normalizer {
 public:
  explicit Replace(const Json& json)
      : pattern_(make_pattern(json.at("pattern"))),
        content_(json.at("content").as_string()) {}

  void apply(Text& text) const override {
    RegexScan scan(*pattern_, text.view());
    Regex::Match match{};
    std::optional<TextEditor> editor;
    while (scan.next(match)) {
      if (!editor) {
        editor.emplace(text);
      }
      editor->keep(match.begin - editor->position());
      editor->skip(match.end - match.begin);
      editor->insert(content_);
    }
    if (editor) {
      editor->finish();
    }
  }

 private:
  std::shared_ptr<const Regex> pattern_;
  std::string content_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(Text& text) const override {
    std::string_view view = text.view();
    size_t begin = 0;
    size_t end = view.size();
    while (left_ && begin < end) {
      const char* p = view.data() + begin;
      if (!is_space(utf8::next(p))) {
        break;
      }
      begin = static_cast<size_t>(p - view.data());
    }
    while (right_ && begin < end) {
      size_t last = utf8::last_begin(view.substr(0, end));
      const char* p = view.data() + last;
      if (!is_space(utf8::next(p))) {
        break;
      }
      end = last;
    }
    if (end - begin < view.size()) {
      TextEditor editor(text);
      editor.skip(begin);
      editor.keep(end - begin);
      editor.skip(view.size() - end);
      editor.finish();
    }
  }

 private:
  static bool is_space(char32_t c) {
    return (unicode::attributes()[c] & unicode::space) != 0;
  }

  bool left_;
  bool right_;
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(const Json& json) {
    Json list = json.at("normalizers");
    if (list.size() > max_steps) {
      list.reject("more than 64 steps");
    }
    for (const Json& element : list.elements()) {
      steps_.push_back(make_normalizer(element));
    }
  }
  void apply(Text& text) const override {
    for (const auto& step : steps_) {
      step->apply(text);
    }
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace

std::string Normalizer::apply_to(std::string_view text) const {
  Text copy(text, 0, false);
  apply(copy);
  return std::string(copy.view());
}

std::unique_ptr<Normalizer> make_normalizer(const Json& json) {
  const std::string& type = json.at("type").as_string();
  if (type == "NFC") {
    return std::make_unique<Form>(NormalForm::nfc);
  }
  if (type == "NFD") {
    return std::make_unique<Form>(NormalForm::nfd);
  }
  if (type == "NFKC") {
    return std::make_unique<Form>(NormalForm::nfkc);
  }
  if (type == "NFKD") {
    return std::make_unique<Form>(NormalForm::nfkd);
  }
  if (type == "Lowercase") {
    return make_lowercase();
  }
  if (type == "Prepend") {
    return std::make_unique<Prepend>(json.at("prepend").as_string());
  }
  if (type == "Replace") {
    return std::make_unique<Replace>(json);
  }
  if (type == "Strip") {
    return std::make_unique<Strip>(
        json.at("strip_left").as_bool(), json.at("strip_right").as_bool()
    );
  }
  if (type == "Sequence") {
    return std::make_unique<Sequence>(json);
  }
  if (type == "BertNormalizer") {
    return make_bert_normalizer(json);
  }
  if (type == "StripAccents") {
    return make_strip_accents();
  }
  if (type == "Nmt") {
    return make_nmt();
  }
  if (type == "ByteLevel") {
    return make_byte_spelling();
  }
  if (type == "Precompiled") {
    return make_precompiled(json);
  }
  unsupported_type(json, "normalizer", type);
}

}  // namespace mlxcel::tokenizer
