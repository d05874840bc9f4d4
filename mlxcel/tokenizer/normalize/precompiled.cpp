#include "mlxcel/tokenizer/normalize/precompiled.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <array>
#include <optional>

#include "mlxcel/core/base64.h"
#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/normalize/char_map.h"
#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr size_t max_grapheme = 5;  // bytes that are looked up as a whole

/// Replaces graphemes of up to 5 bytes, and the characters of others, by what
/// the shortest entry for them says.
class Precompiled : public Normalizer {
 public:
  explicit Precompiled(CharMap map) : map_(std::move(map)) {
    for (unsigned c = 0; c < ascii_.size(); ++c) {
      char byte = static_cast<char>(c);
      ascii_[c] = map_.find_shortest({&byte, 1}).length != 0;
    }
  }

  void apply(Text& text) const override {
    std::string_view view = text.view();
    Edit edit(text);
    for (size_t begin = 0; begin < view.size();) {
      size_t end = grapheme_end(view, begin);
      take(view.substr(begin, end - begin), edit);
      begin = end;
    }
    edit.finish();
  }

 private:
  /// What becomes of each character: TextChange for a tracked text.
  struct Edit {
    explicit Edit(Text& target) : text(target), editor(target) {}

    void keep(std::string_view part) {
      if (!text.tracked()) {
        editor.keep(part.size());
        return;
      }
      const char* p = part.data();
      while (p != part.data() + part.size()) {
        changes.push_back({utf8::next(p), 0});
      }
    }
    void replace(std::string_view part, std::string_view replacement) {
      modified = true;
      if (!text.tracked()) {
        editor.swap(part.size(), replacement);
        return;
      }
      auto count = static_cast<ptrdiff_t>(utf8::count(part));
      auto added = static_cast<ptrdiff_t>(utf8::count(replacement)) - count;
      size_t start = changes.size();
      const char* p = replacement.data();
      while (p != replacement.data() + replacement.size()) {
        changes.push_back({utf8::next(p), 0});
      }
      for (ptrdiff_t i = 0; i < added; ++i) {
        changes[changes.size() - 1 - static_cast<size_t>(i)].added = 1;
      }
      if (added < 0 && !changes.empty()) {
        changes.back().added += added;
      }
      limit_growth(start);
    }
    void limit_growth(size_t start) {
      grown += changes.size() - start;
      check_growth(text, grown);
    }
    void finish() {
      if (!modified) {
        return;
      }
      if (text.tracked()) {
        apply_changes(text, changes);
      } else {
        editor.finish();
      }
    }

    Text& text;
    TextEditor editor;
    std::vector<TextChange> changes;
    size_t grown = 0;
    bool modified = false;
  };

  void take(std::string_view grapheme, Edit& edit) const {
    if (grapheme.size() == 1 &&
        !ascii_[static_cast<unsigned char>(grapheme[0])]) {
      edit.keep(grapheme);
      return;
    }
    if (grapheme.size() <= max_grapheme) {
      CharMap::Match match = map_.find_shortest(grapheme);
      if (match.length != 0) {
        edit.replace(grapheme, match.replacement);
        return;
      }
    }
    while (!grapheme.empty()) {
      size_t size = utf8::length(static_cast<unsigned char>(grapheme[0]));
      std::string_view character = grapheme.substr(0, size);
      CharMap::Match match = map_.find_shortest(character);
      if (match.length != 0) {
        edit.replace(character, match.replacement);
      } else {
        edit.keep(character);
      }
      grapheme.remove_prefix(size);
    }
  }

  /// `c`, or one that utf8proc takes for what the official library takes `c`
  /// for, which knows a later Unicode.
  static utf8proc_int32_t known_to_utf8proc(char32_t c) {
    uint32_t attributes = unicode::attributes()[c];
    if ((attributes & unicode::young_mark) != 0) {
      return 0x301;
    }
    if ((attributes & unicode::young_prepend) != 0) {
      return 0x600;
    }
    return (attributes & unicode::no_prepend) != 0
               ? 'a'
               : static_cast<utf8proc_int32_t>(c);
  }

  static size_t grapheme_end(std::string_view text, size_t begin) {
    auto ascii = [&text](size_t at) {
      return static_cast<unsigned char>(text[at]) < 0x80;
    };
    if (begin + 1 == text.size() ||
        (ascii(begin) && ascii(begin + 1) && text[begin] != '\r')) {
      return begin + 1;
    }
    const char* end = text.data() + text.size();
    const char* p = text.data() + begin;
    utf8proc_int32_t left = known_to_utf8proc(utf8::next(p));
    utf8proc_int32_t state = 0;
    while (p != end) {
      const char* next = p;
      utf8proc_int32_t right = known_to_utf8proc(utf8::next(next));
      if (utf8proc_grapheme_break_stateful(left, right, &state)) {
        break;
      }
      left = right;
      p = next;
    }
    return static_cast<size_t>(p - text.data());
  }

  CharMap map_;
  std::array<bool, 128> ascii_{};  // has an entry
};

}  // namespace

std::unique_ptr<Normalizer> make_precompiled(const Json& json) {
  Json field = json.at("precompiled_charsmap");
  std::optional<std::string> blob =
      decode_base64(field.as_string(), StrayBits::refused);
  if (!blob) {
    field.reject("expected Base64");
  }
  return std::make_unique<Precompiled>(CharMap(*blob, json.document_name()));
}

}  // namespace mlxcel::tokenizer
