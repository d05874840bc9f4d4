#include "mlxcel/tokenizer/normalize/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

struct Form {
  uint32_t safe;  // attribute of characters that can be passed over
  bool compose;
  int options;  // of utf8proc_decompose_char
};

Form form_of(NormalForm form) {
  switch (form) {
    case NormalForm::nfc:
      return {unicode::nfc_safe, true, UTF8PROC_DECOMPOSE};
    case NormalForm::nfd:
      return {unicode::nfd_safe, false, UTF8PROC_DECOMPOSE};
    case NormalForm::nfkc:
      return {unicode::nfkc_safe, true, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
    default:
      return {unicode::nfkd_safe, false, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
  }
}

int combining_class(char32_t c) {
  if ((unicode::attributes()[c] & unicode::class_zero) != 0) {
    return 0;
  }
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))
      ->combining_class;
}

/// A character of the result and the byte of the run that it comes from.
struct Part {
  char32_t c;
  int combining_class;
  size_t source;
  ptrdiff_t added;  // TextChange
};

void decompose(char32_t c, size_t source, int options, std::vector<Part>& out) {
  if ((unicode::attributes()[c] & unicode::keep) != 0) {
    out.push_back({c, 0, source, 0});
    return;
  }
  std::array<utf8proc_int32_t, 32> parts{};
  int boundary = 0;
  utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c),
      parts.data(),
      parts.size(),
      static_cast<utf8proc_option_t>(options),
      &boundary
  );
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    auto part = static_cast<char32_t>(parts[static_cast<size_t>(i)]);
    out.push_back({part, combining_class(part), source, i > 0 ? 1 : 0});
  }
}

/// Canonical ordering: stable by combining class between starters.
void order(std::vector<Part>& parts) {
  auto starts = [](const Part& part) { return part.combining_class == 0; };
  auto begin = parts.begin();
  while (begin != parts.end()) {
    begin = std::find_if_not(begin, parts.end(), starts);
    auto end = std::find_if(begin, parts.end(), starts);
    std::stable_sort(begin, end, [](const Part& a, const Part& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

/// The character that two compose to, or 0. None younger than the tables.
char32_t composite(char32_t first, char32_t second) {
  uint32_t young = unicode::keep | unicode::class_zero;
  const unicode::AttributeTable& table = unicode::attributes();
  if (((table[first] | table[second]) & young) != 0) {
    return 0;
  }
  std::array<utf8proc_int32_t, 2> pair{
      static_cast<int32_t>(first), static_cast<int32_t>(second)};
  utf8proc_ssize_t count = utf8proc_normalize_utf32(
      pair.data(),
      pair.size(),
      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE)
  );
  return count == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

/// The Unicode Standard 3.11, D117: each character composes with the last
/// starter unless one of the same or a higher class stands between.
void compose(std::vector<Part>& parts) {
  size_t done = 0;
  size_t starter = parts.size();  // none yet
  for (size_t i = 0; i < parts.size(); ++i) {
    Part part = parts[i];
    bool has_starter = starter < done;
    bool adjacent = has_starter && starter + 1 == done;
    bool blocked = !adjacent && has_starter &&
                   parts[done - 1].combining_class >= part.combining_class;
    char32_t both =
        has_starter && !blocked ? composite(parts[starter].c, part.c) : 0;
    if (both != 0) {
      parts[starter].c = both;
      parts[starter].added += part.added - 1;
      continue;
    }
    if (part.combining_class == 0) {
      starter = done;
    }
    parts[done++] = part;
  }
  parts.resize(done);
}

std::vector<Part> normalize_run(std::string_view run, const Form& form) {
  std::vector<Part> parts;
  const char* p = run.data();
  while (p != run.data() + run.size()) {
    auto source = static_cast<size_t>(p - run.data());
    decompose(utf8::next(p), source, form.options, parts);
  }
  order(parts);
  if (form.compose) {
    compose(parts);
  }
  return parts;
}

struct Run {
  size_t begin;
  size_t end;
};

/// The next run of characters that are not safe, with the safe character
/// before it, which may compose with them. Empty at the end of the text.
Run next_run(std::string_view text, size_t from, uint32_t safe) {
  const unicode::AttributeTable& table = unicode::attributes();
  const char* p = text.data() + from;
  const char* end = text.data() + text.size();
  auto take_safe = [&] {
    if (static_cast<unsigned char>(*p) < 0x80) {
      ++p;
      return true;
    }
    return (table[utf8::next(p)] & safe) != 0;
  };
  size_t previous = from;
  while (p != end) {
    auto at = static_cast<size_t>(p - text.data());
    if (take_safe()) {
      previous = at;
      continue;
    }
    size_t run_end = text.size();
    while (p != end) {
      at = static_cast<size_t>(p - text.data());
      if (take_safe()) {
        run_end = at;
        break;
      }
    }
    return {previous, run_end};
  }
  return {text.size(), text.size()};
}

/// With origins as the official library counts them: by place, also where
/// characters have changed places.
void normalize_tracked(Text& text, const Form& form) {
  std::string_view view = text.view();
  std::vector<TextChange> changes;
  size_t done = 0;
  auto keep = [&](size_t end) {
    const char* p = view.data() + done;
    while (p != view.data() + end) {
      changes.push_back({utf8::next(p), 0});
    }
  };
  while (done < view.size()) {
    Run run = next_run(view, done, form.safe);
    keep(run.begin);
    std::string_view old = view.substr(run.begin, run.end - run.begin);
    for (const Part& part : normalize_run(old, form)) {
      changes.push_back({part.c, part.added});
    }
    done = run.end;
  }
  apply_changes(text, changes);
}

}  // namespace

void normalize(Text& text, NormalForm kind) {
  Form form = form_of(kind);
  std::string_view view = text.view();
  Run run = next_run(view, 0, form.safe);
  if (run.begin == view.size()) {
    return;
  }
  if (text.tracked()) {
    normalize_tracked(text, form);
    return;
  }
  TextEditor editor(text);
  std::string character;
  while (run.begin < view.size()) {
    editor.keep(run.begin - editor.position());
    std::string_view old = view.substr(run.begin, run.end - run.begin);
    for (const Part& part : normalize_run(old, form)) {
      character.clear();
      utf8::append(character, part.c);
      editor.insert_from(part.source, character);
    }
    editor.skip(old.size());
    run = next_run(view, run.end, form.safe);
  }
  editor.finish();
}

}  // namespace mlxcel::tokenizer
