#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/format.h"
#include "mlxcel/chat/methods.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

// A result keeps the markup of the string that it comes from.
Value like(const Value& self, std::string text) {
  return Value::of(std::move(text), self.text().markup);
}

Value like(const Value& self, std::string_view text) {
  return Value::of(text, self.text().markup);
}

Value list_like(const Value& self, const std::vector<std::string_view>& parts) {
  check_item_count(parts.size());
  std::vector<Value> items;
  items.reserve(parts.size());
  for (std::string_view part : parts) {
    items.push_back(like(self, part));
  }
  return Value::list(std::move(items));
}

// Methods without arguments that map the whole string.
template <std::string (*map)(std::string_view)>
Value mapped(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("method", given);
  return like(self, map(self.view()));
}

// Methods that ask something of every character of a non-empty string.
template <bool (*test)(char32_t)>
Value every(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("method", given);
  std::string_view text = self.view();
  for (size_t i = 0; i < text.size();) {
    if (!test(next_code_point(text, i))) {
      return Value::of(false);
    }
  }
  return Value::of(!text.empty());
}

template <Side side>
Value stripped(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("strip", given, {""});
  std::optional<std::string_view> chars;
  if (arguments.has_value(0)) {
    chars = arguments.text(0);
  }
  return like(self, strip(self.view(), side, chars));
}

template <bool from_right>
Value split_method(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("split", given, {"sep", "maxsplit"});
  std::optional<std::string_view> separator;
  if (arguments.has_value(0)) {
    separator = arguments.text(0);
    if (separator->empty()) {
      fault("split: the separator is empty");
    }
  }
  int64_t limit = arguments.integer(1, -1);
  return list_like(
      self,
      from_right ? split_right(self.view(), separator, limit)
                 : split(self.view(), separator, limit)
  );
}

Value splitlines(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("splitlines", given, {"keepends"});
  return list_like(self, split_lines(self.view(), arguments.truth(0, false)));
}

Value join(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("join", given, {""}, 1);
  bool markup = self.text().markup;
  std::string out;
  bool first = true;
  Cursor cursor(arguments[0]);
  for (Value item; cursor.next(item);) {
    if (!item.is_string()) {
      fault(
          fmt::format("join: an item is no string, but a '{}'", type_name(item))
      );
    }
    out += first ? std::string_view() : self.view();
    first = false;
    if (markup && !item.text().markup) {
      out += escape_html(item.view());
    } else {
      out += item.view();
    }
    check_text_size(out.size());
  }
  return like(self, std::move(out));
}

Value replace_method(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("replace", given, {"", "", ""}, 2);
  std::string by(arguments.text(1));
  if (self.text().markup && !arguments[1].text().markup) {
    by = escape_html(by);
  }
  return like(
      self,
      replace(self.view(), arguments.text(0), by, arguments.integer(2, -1))
  );
}

/// The part of a string that optional start and end positions select.
struct Window {
  std::string_view text;
  int64_t start;  // in code points
  bool valid;     // false if the start lies behind the end
};

Window select(const Value& self, const Parameters& arguments) {
  auto length = static_cast<int64_t>(self.text().length());
  auto position = [&](size_t index, int64_t fallback) {
    if (!arguments.has_value(index)) {
      return fallback;
    }
    int64_t value = arguments.integer(index, fallback);
    return value < 0 ? std::max<int64_t>(value + length, 0) : value;
  };
  int64_t start = position(1, 0);
  int64_t end = std::min(position(2, length), length);
  if (start > end) {
    return {{}, start, false};
  }
  std::string_view text = self.view();
  size_t from = byte_offset(text, static_cast<size_t>(start));
  size_t to = byte_offset(text, static_cast<size_t>(end));
  return {text.substr(from, to - from), start, true};
}

template <bool from_right, bool must_exist>
Value find_method_of(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments(must_exist ? "index" : "find", given, {"", "", ""}, 1);
  Window window = select(self, arguments);
  std::string_view needle = arguments.text(0);
  count_work(window.text.size());
  size_t found = !window.valid ? std::string_view::npos
                 : from_right  ? find_last_text(window.text, needle)
                               : find_text(window.text, needle);
  if (found != std::string_view::npos) {
    return Value::of(
        window.start +
        static_cast<int64_t>(count_code_points(window.text.substr(0, found)))
    );
  }
  if (must_exist) {
    fault("index: the text is not in the string");
  }
  return Value::of(int64_t{-1});
}

Value count_method(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("count", given, {"", "", ""}, 1);
  Window window = select(self, arguments);
  count_work(window.text.size());
  return Value::of(
      window.valid
          ? static_cast<int64_t>(count_text(window.text, arguments.text(0)))
          : int64_t{0}
  );
}

template <bool at_end>
Value affix_test(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments(
      at_end ? "endswith" : "startswith", given, {"", "", ""}, 1
  );
  Window window = select(self, arguments);
  auto matches = [&](std::string_view affix) {
    return window.valid && (at_end ? window.text.ends_with(affix)
                                   : window.text.starts_with(affix));
  };
  if (!arguments[0].is(Kind::tuple)) {
    return Value::of(matches(arguments.text(0)));
  }
  for (const Value& item : arguments[0].items()) {
    if (!item.is_string()) {
      fault(fmt::format(
          "{}: a part of the tuple is no string",
          at_end ? "endswith" : "startswith"
      ));
    }
    if (matches(item.view())) {
      return Value::of(true);
    }
  }
  return Value::of(false);
}

template <bool at_end>
Value remove_affix(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("removeprefix", given, {""}, 1);
  std::string_view text = self.view();
  std::string_view affix = arguments.text(0);
  if (at_end && text.ends_with(affix)) {
    text.remove_suffix(affix.size());
  } else if (!at_end && text.starts_with(affix)) {
    text.remove_prefix(affix.size());
  }
  return like(self, text);
}

template <bool from_right>
Value partition(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("partition", given, {""}, 1);
  std::string_view text = self.view();
  std::string_view separator = arguments.text(0);
  if (separator.empty()) {
    fault("partition: the separator is empty");
  }
  size_t at =
      from_right ? find_last_text(text, separator) : find_text(text, separator);
  std::string_view parts[3] = {text, {}, {}};
  if (at != std::string_view::npos) {
    parts[0] = text.substr(0, at);
    parts[1] = separator;
    parts[2] = text.substr(at + separator.size());
  } else if (from_right) {
    std::swap(parts[0], parts[2]);
  }
  return Value::tuple(
      {like(self, parts[0]), like(self, parts[1]), like(self, parts[2])}
  );
}

// `left` characters of the fill before the text, `right` behind it.
Value padded(
    const Value& self, std::string_view fill, int64_t left, int64_t right
) {
  auto total = static_cast<uint64_t>(left) + static_cast<uint64_t>(right);
  check_text_size(total);
  check_text_size(self.view().size() + total * fill.size());
  std::string out;
  for (int64_t i = 0; i < left; ++i) {
    out += fill;
  }
  out += self.view();
  for (int64_t i = 0; i < right; ++i) {
    out += fill;
  }
  return like(self, std::move(out));
}

template <Side text_side>
Value justify(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("justify", given, {"", ""}, 1);
  std::string_view fill = arguments.text(1, " ");
  if (count_code_points(fill) != 1) {
    fault("justify: the fill must be one character");
  }
  int64_t width = arguments.integer(0, 0);
  auto length = static_cast<int64_t>(self.text().length());
  int64_t missing = width > length ? width - length : 0;
  int64_t left = text_side == Side::left ? 0
                 : text_side == Side::right
                     ? missing
                     : missing / 2 + (missing & width & 1);
  return padded(self, fill, left, missing - left);
}

Value zfill(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("zfill", given, {""}, 1);
  int64_t width = arguments.integer(0, 0);
  auto length = static_cast<int64_t>(self.text().length());
  int64_t missing = width > length ? width - length : 0;
  std::string_view text = self.view();
  bool sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  check_text_size(static_cast<uint64_t>(missing));
  std::string out(text.substr(0, sign));
  out.append(static_cast<size_t>(missing), '0');
  out += text.substr(sign);
  return like(self, std::move(out));
}

Value expandtabs(Interpreter&, const Value& self, const Arguments& given) {
  Parameters arguments("expandtabs", given, {"tabsize"});
  int64_t size = arguments.integer(0, 8);
  std::string_view text = self.view();
  std::string out;
  int64_t column = 0;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = next_code_point(text, i);
    if (c != '\t') {
      out += text.substr(begin, i - begin);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    } else if (size > 0) {
      int64_t count = size - column % size;
      check_text_size(out.size() + static_cast<uint64_t>(count));
      out.append(static_cast<size_t>(count), ' ');
      column += count;
    }
  }
  return like(self, std::move(out));
}

// Whether all cased characters have the case, and there is one.
template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Value case_test(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("method", given);
  std::string_view text = self.view();
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    char32_t c = next_code_point(text, i);
    if (other(c) || is_title(c)) {
      return Value::of(false);
    }
    found = found || wanted(c);
  }
  return Value::of(found);
}

Value istitle(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("istitle", given);
  std::string_view text = self.view();
  bool inside = false;
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    char32_t c = next_code_point(text, i);
    bool capital = is_upper(c) || is_title(c);
    if (capital == inside && (capital || is_lower(c))) {
      return Value::of(false);
    }
    inside = capital || is_lower(c);
    found = found || inside;
  }
  return Value::of(found);
}

Value isidentifier(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("isidentifier", given);
  std::string_view text = self.view();
  for (size_t i = 0; i < text.size();) {
    bool first = i == 0;
    char32_t c = next_code_point(text, i);
    if (!is_word(c) || (first && c != '_' && !is_alpha(c))) {
      return Value::of(false);
    }
  }
  return Value::of(!text.empty());
}

Value isascii(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("isascii", given);
  return Value::of(self.text().is_ascii());
}

Value isprintable(Interpreter&, const Value& self, const Arguments& given) {
  Parameters::none("isprintable", given);
  std::string_view text = self.view();
  for (size_t i = 0; i < text.size();) {
    if (!is_printable(next_code_point(text, i))) {
      return Value::of(false);
    }
  }
  return Value::of(true);
}

Value format_method(
    Interpreter& interpreter, const Value& self, const Arguments& given
) {
  bool markup = self.text().markup;
  return like(self, format_braces(interpreter, self.view(), given, markup));
}

Value format_map(
    Interpreter& interpreter, const Value& self, const Arguments& given
) {
  Parameters arguments("format_map", given, {""}, 1);
  if (!arguments[0].is(Kind::dict)) {
    fault("format_map: needs a dict");
  }
  Arguments named;
  for (const auto& [key, value] : arguments[0].dict().entries()) {
    if (key.is_string()) {
      named.named.emplace_back(std::string(key.view()), value);
    }
  }
  return format_method(interpreter, self, named);
}

Value not_supported(Interpreter&, const Value&, const Arguments&) {
  fault("encode, maketrans and translate are not supported");
}

constexpr std::array<MethodEntry, 47> kStringMethods = {{
    {"strip", {stripped<Side::both>}},
    {"lstrip", {stripped<Side::left>}},
    {"rstrip", {stripped<Side::right>}},
    {"split", {split_method<false>}},
    {"rsplit", {split_method<true>}},
    {"splitlines", {splitlines}},
    {"startswith", {affix_test<false>}},
    {"endswith", {affix_test<true>}},
    {"replace", {replace_method}},
    {"join", {join}},
    {"upper", {mapped<to_upper>}},
    {"lower", {mapped<to_lower>}},
    {"title", {mapped<to_title>}},
    {"capitalize", {mapped<to_capitalized>}},
    {"casefold", {mapped<to_folded>}},
    {"swapcase", {mapped<swap_case>}},
    {"find", {find_method_of<false, false>}},
    {"rfind", {find_method_of<true, false>}},
    {"index", {find_method_of<false, true>}},
    {"rindex", {find_method_of<true, true>}},
    {"count", {count_method}},
    {"format", {format_method}},
    {"format_map", {format_map}},
    {"removeprefix", {remove_affix<false>}},
    {"removesuffix", {remove_affix<true>}},
    {"partition", {partition<false>}},
    {"rpartition", {partition<true>}},
    {"ljust", {justify<Side::left>}},
    {"rjust", {justify<Side::right>}},
    {"center", {justify<Side::both>}},
    {"zfill", {zfill}},
    {"expandtabs", {expandtabs}},
    {"isalnum", {every<is_alnum>}},
    {"isalpha", {every<is_alpha>}},
    {"isdecimal", {every<is_decimal>}},
    {"isdigit", {every<is_digit>}},
    {"isnumeric", {every<is_numeric>}},
    {"isspace", {every<is_space>}},
    {"islower", {case_test<is_lower, is_upper>}},
    {"isupper", {case_test<is_upper, is_lower>}},
    {"istitle", {istitle}},
    {"isidentifier", {isidentifier}},
    {"isascii", {isascii}},
    {"isprintable", {isprintable}},
    {"encode", {not_supported}},
    {"maketrans", {not_supported}},
    {"translate", {not_supported}},
}};

}  // namespace

const MethodInfo* find_string_method(std::string_view name) {
  for (const MethodEntry& entry : kStringMethods) {
    if (entry.name == name) {
      return &entry.info;
    }
  }
  return nullptr;
}

}  // namespace mlxcel::chat
