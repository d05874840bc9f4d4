#include "mlxcel/tokenizer/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "mlxcel/tokenizer/unicode.h"
#include "mlxcel/tokenizer/utf8.h"

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
      return {
          unicode::nfkc_safe, true, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
    default:
      return {
          unicode::nfkd_safe, false, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
  }
}

int combining_class(char32_t c) {
  if ((unicode::attributes()[c] & unicode::class_zero) != 0) {
    return 0;
  }
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))
      ->combining_class;
}

void decompose(char32_t c, int options, std::vector<int32_t>& out) {
  if ((unicode::attributes()[c] & unicode::keep) != 0) {
    out.push_back(static_cast<int32_t>(c));
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
  out.insert(out.end(), parts.data(), parts.data() + count);
}

/// Canonical ordering: stable by combining class between starters.
void order(std::vector<int32_t>& codes) {
  auto cls = [](int32_t c) {
    return combining_class(static_cast<char32_t>(c));
  };
  auto begin = codes.begin();
  while (begin != codes.end()) {
    begin = std::find_if(begin, codes.end(), [&](int32_t c) {
      return cls(c) != 0;
    });
    auto end = std::find_if(begin, codes.end(), [&](int32_t c) {
      return cls(c) == 0;
    });
    std::stable_sort(begin, end, [&](int32_t a, int32_t b) {
      return cls(a) < cls(b);
    });
    begin = end;
  }
}

/// Composes in place. Characters that the tables do not compose stand
/// between what utf8proc composes.
void compose(std::vector<int32_t>& codes) {
  std::vector<int32_t> out;
  std::vector<int32_t> part;
  auto flush = [&] {
    utf8proc_ssize_t count = utf8proc_normalize_utf32(
        part.data(), static_cast<utf8proc_ssize_t>(part.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE)
    );
    out.insert(out.end(), part.begin(), part.begin() + count);
    part.clear();
  };
  for (int32_t c : codes) {
    if ((unicode::attributes()[static_cast<char32_t>(c)] &
         (unicode::keep | unicode::class_zero)) != 0) {
      flush();
      out.push_back(c);
    } else {
      part.push_back(c);
    }
  }
  flush();
  codes = std::move(out);
}

std::string normalize_run(std::string_view run, const Form& form) {
  std::vector<int32_t> codes;
  const char* p = run.data();
  while (p != run.data() + run.size()) {
    decompose(utf8::next(p), form.options, codes);
  }
  order(codes);
  if (form.compose) {
    compose(codes);
  }
  std::string out;
  for (int32_t c : codes) {
    utf8::append(out, static_cast<char32_t>(c));
  }
  return out;
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

/// Bytes of the whole characters that both begin with.
size_t common_prefix(std::string_view a, std::string_view b) {
  size_t done = 0;
  while (done < a.size()) {
    size_t size = utf8::length(static_cast<unsigned char>(a[done]));
    if (b.substr(std::min(done, b.size()), size) != a.substr(done, size)) {
      break;
    }
    done += size;
  }
  return done;
}

}  // namespace

void normalize(Text& text, NormalForm kind) {
  Form form = form_of(kind);
  std::string_view view = text.view();
  Run run = next_run(view, 0, form.safe);
  if (run.begin == view.size()) {
    return;
  }
  TextEditor editor(text);
  while (run.begin < view.size()) {
    std::string_view old = view.substr(run.begin, run.end - run.begin);
    std::string changed = normalize_run(old, form);
    size_t same = common_prefix(old, changed);
    editor.keep(run.begin + same - editor.position());
    if (same < old.size()) {
      editor.swap(old.size() - same, std::string_view(changed).substr(same));
    }
    run = next_run(view, run.end, form.safe);
  }
  editor.finish();
}

}  // namespace mlxcel::tokenizer
