#include "mlxcel/tokenizer/normalize/character_normalizers.h"

#include "mlxcel/tokenizer/normalize/normal_form.h"
#include "mlxcel/tokenizer/split/byte_level.h"
#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

enum class Fate { kept, dropped, swapped };

/// `Decide` tells a character's fate and writes what it is swapped for.
template <typename Decide>
class EachCharacter : public Normalizer {
 public:
  explicit EachCharacter(Decide decide) : decide_(decide) {}

  void apply(Text& text) const override {
    std::string_view view = text.view();
    TextEditor editor(text);
    std::string replacement;
    const char* end = view.data() + view.size();
    for (const char* p = view.data(); p != end;) {
      const char* begin = p;
      char32_t c = utf8::next(p);
      auto size = static_cast<size_t>(p - begin);
      replacement.clear();
      switch (decide_(c, std::string_view(begin, size), replacement)) {
        case Fate::kept:
          editor.keep(size);
          break;
        case Fate::dropped:
          editor.skip(size);
          break;
        case Fate::swapped:
          editor.swap(size, replacement);
          break;
      }
    }
    editor.finish();
  }

 private:
  Decide decide_;
};

template <typename Decide>
std::unique_ptr<Normalizer> each_character(Decide decide) {
  return std::make_unique<EachCharacter<Decide>>(decide);
}

std::unique_ptr<Normalizer> make_removal(uint32_t attribute) {
  return each_character(
      [attribute](char32_t c, std::string_view, std::string&) {
        bool dropped = (unicode::attributes()[c] & attribute) != 0;
        return dropped ? Fate::dropped : Fate::kept;
      }
  );
}

/// Leaves out NUL, U+FFFD and control characters; spaces become plain.
std::unique_ptr<Normalizer> make_bert_clean_up() {
  return each_character([](char32_t c, std::string_view, std::string& other) {
    uint32_t attributes = unicode::attributes()[c];
    if ((attributes & unicode::bert_removed) != 0) {
      return Fate::dropped;
    }
    if ((attributes & unicode::space) == 0) {
      return Fate::kept;
    }
    other = " ";
    return Fate::swapped;
  });
}

/// The ranges of the official library, which has a gap at U+2B820.
bool is_cjk(char32_t c) {
  return c >= 0x3400 &&
         (c <= 0x4dbf || (c >= 0x4e00 && c <= 0x9fff) ||
          (c >= 0xf900 && c <= 0xfaff) || (c >= 0x20000 && c <= 0x2a6df) ||
          (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
          (c >= 0x2f800 && c <= 0x2fa1f));
}

std::unique_ptr<Normalizer> make_cjk_spaces() {
  return each_character(
      [](char32_t c, std::string_view character, std::string& other) {
        if (!is_cjk(c)) {
          return Fate::kept;
        }
        other = " ";
        other.append(character).append(" ");
        return Fate::swapped;
      }
  );
}

class Nfd : public Normalizer {
 public:
  void apply(Text& text) const override {
    normalize(text, NormalForm::nfd);
  }
};

class Bert : public Normalizer {
 public:
  explicit Bert(const Json& json) {
    bool lowercase = json.at("lowercase").as_bool();
    if (json.at("clean_text").as_bool()) {
      steps_.push_back(make_bert_clean_up());
    }
    if (json.at("handle_chinese_chars").as_bool()) {
      steps_.push_back(make_cjk_spaces());
    }
    if (json.bool_or("strip_accents", lowercase)) {
      steps_.push_back(std::make_unique<Nfd>());
      steps_.push_back(make_removal(unicode::bert_accent));
    }
    if (lowercase) {
      steps_.push_back(make_lowercase());
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

std::unique_ptr<Normalizer> make_lowercase() {
  return each_character([](char32_t c, std::string_view, std::string& lower) {
    char32_t changed = unicode::to_lower(c);
    if (changed == c) {
      return Fate::kept;
    }
    utf8::append(lower, changed);
    if (c == 0x130) {
      utf8::append(lower, 0x307);
    }
    return Fate::swapped;
  });
}

std::unique_ptr<Normalizer> make_strip_accents() {
  return make_removal(unicode::combining);
}

std::unique_ptr<Normalizer> make_nmt() {
  return each_character([](char32_t c, std::string_view, std::string& other) {
    if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) ||
        c == 0x7f || c == 0x8f || c == 0x9f) {
      return Fate::dropped;
    }
    bool space = c == '\t' || c == '\n' || c == '\f' || c == '\r' ||
                 c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 ||
                 c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
    other = " ";
    return space ? Fate::swapped : Fate::kept;
  });
}

std::unique_ptr<Normalizer> make_byte_spelling() {
  return each_character(
      [](char32_t, std::string_view character, std::string& spelling) {
        append_byte_level(spelling, character);
        return Fate::swapped;
      }
  );
}

std::unique_ptr<Normalizer> make_bert_normalizer(const Json& json) {
  return std::make_unique<Bert>(json);
}

}  // namespace mlxcel::tokenizer
