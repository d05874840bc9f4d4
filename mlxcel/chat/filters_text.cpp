#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/filter_functions.h"
#include "mlxcel/chat/format.h"
#include "mlxcel/chat/interpreter.h"
#include "mlxcel/chat/methods.h"
#include "mlxcel/chat/pretty.h"
#include "mlxcel/chat/text.h"
#include "mlxcel/chat/text_layout.h"

namespace mlxcel::chat {

namespace {

Value like(const Value& text, std::string result) {
  return Value::of(std::move(result), text.text().markup);
}

void require_text(const char* filter, const Value& input) {
  if (input.is(Kind::undefined)) {
    fault(input.absence());
  }
  if (!input.is_string()) {
    fault(fmt::format("{}: needs a string, got '{}'", filter, type_name(input))
    );
  }
}

// Filters without arguments that map the input's text.
template <std::string (*map)(std::string_view)>
Value mapped(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("filter", given);
  Value text = as_text(input);
  return like(text, map(text.view()));
}

Value filter_string(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("string", given);
  return as_text(input);
}

Value filter_trim(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("trim", given, {"chars"});
  std::optional<std::string_view> chars;
  if (arguments.has_value(0)) {
    chars = arguments.text(0);
  }
  Value text = as_text(input);
  std::string_view stripped = strip(text.view(), Side::both, chars);
  return stripped.size() == text.view().size()
             ? text
             : like(text, std::string(stripped));
}

Value filter_replace(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("replace", given, {"old", "new", "count"}, 2);
  int64_t count = arguments.has_value(2) ? arguments.integer(2, -1) : -1;
  return Value::of(replace(
      to_string(input), to_string(arguments[0]), to_string(arguments[1]), count
  ));
}

// A word starts behind blanks, `-` and opening brackets.
std::string title_words(std::string_view text) {
  constexpr std::string_view kBreaks = "-({[<";
  std::string out;
  size_t rest = 0;
  bool inside = false;
  auto flush = [&](size_t end) {
    out += to_lower(text.substr(rest, end - rest));
    rest = end;
  };
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    char32_t c = next_code_point(text, i);
    bool breaks = is_space(c) || (c < 0x80 && kBreaks.find(static_cast<char>(c)
                                              ) != std::string_view::npos);
    if (breaks) {
      flush(begin);
      inside = false;
    } else if (!inside) {
      flush(begin);
      out += to_upper(text.substr(begin, i - begin));
      rest = i;
      inside = true;
    }
  }
  flush(text.size());
  return out;
}

Value filter_center(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  Parameters arguments("center", given, {"width"});
  Arguments width;
  width.positional.push_back(
      arguments.has(0) ? arguments[0] : Value::of(int64_t{80})
  );
  return find_string_method("center")->call(interpreter, as_text(input), width);
}

Value filter_indent(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("indent", given, {"width", "first", "blank"});
  require_text("indent", input);
  std::string indent;
  if (arguments.has(0) && arguments[0].is_string()) {
    indent = arguments.text(0);
  } else {
    int64_t width = std::max<int64_t>(arguments.integer(0, 4), 0);
    check_text_size(static_cast<uint64_t>(width));
    indent.assign(static_cast<size_t>(width), ' ');
  }
  bool blank = arguments.truth(2, false);
  // With a line end added, as splitting drops the last one.
  std::string text = std::string(input.view()) + '\n';
  std::string out = arguments.truth(1, false) ? indent : "";
  bool first = true;
  for (std::string_view line : split_lines(text, false)) {
    if (!first) {
      out += '\n';
      out += blank || !line.empty() ? indent : "";
    }
    first = false;
    out += line;
    check_text_size(out.size());
  }
  return like(input, std::move(out));
}

Value filter_truncate(
    Interpreter&, const Value& input, const Arguments& given
) {
  constexpr int64_t kLeeway = 5;
  Parameters arguments(
      "truncate", given, {"length", "killwords", "end", "leeway"}
  );
  int64_t length = arguments.integer(0, 255);
  std::string_view end = arguments.text(2, "...");
  int64_t leeway =
      arguments.has_value(3) ? arguments.integer(3, kLeeway) : kLeeway;
  auto end_length = static_cast<int64_t>(count_code_points(end));
  if (length < end_length || leeway < 0) {
    fault(
        "truncate: the length is below that of the end, or the leeway is "
        "negative"
    );
  }
  int64_t have = length_of(input);
  if (have <= length || have - length <= leeway) {
    return input;
  }
  require_text("truncate", input);
  std::string_view text = input.view();
  text = text.substr(
      0, byte_offset(text, static_cast<size_t>(length - end_length))
  );
  if (!arguments.truth(1, false)) {
    text = text.substr(0, text.rfind(' '));
  }
  return like(input, std::string(text) + std::string(end));
}

Value filter_wordcount(
    Interpreter&, const Value& input, const Arguments& given
) {
  Parameters::none("wordcount", given);
  Value value = as_text(input);
  std::string_view text = value.view();
  int64_t count = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    bool word = is_word(next_code_point(text, i));
    count += word && !inside;
    inside = word;
  }
  return Value::of(count);
}

Value filter_format(Interpreter&, const Value& input, const Arguments& given) {
  if (!given.positional.empty() && !given.named.empty()) {
    fault("format: takes positional or named arguments, not both");
  }
  Value text = as_text(input);
  Value values = Value::tuple(given.positional);
  if (!given.named.empty()) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [name, value] : given.named) {
      entries.emplace_back(Value::of(name), value);
    }
    values = Value::dict(std::move(entries));
  }
  return like(text, format_printf(text.view(), values, text.text().markup));
}

Value filter_escape(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("escape", given);
  if (input.is_string() && input.text().markup) {
    return input;
  }
  return Value::of(escape_html(to_string(input)), true);
}

Value filter_forceescape(
    Interpreter&, const Value& input, const Arguments& given
) {
  Parameters::none("forceescape", given);
  return Value::of(escape_html(to_string(input)), true);
}

Value filter_safe(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("safe", given);
  return Value::of(to_string(input), true);
}

std::string quote_url(std::string_view text, bool in_query) {
  std::string out;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
                 c == '~' || (c == '/' && !in_query);
    if (plain) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value filter_urlencode(
    Interpreter&, const Value& input, const Arguments& given
) {
  Parameters::none("urlencode", given);
  if (input.is_string() || !is_iterable(input)) {
    return Value::of(quote_url(to_string(input), false));
  }
  std::vector<Value> pairs;
  if (input.is(Kind::dict)) {
    for (const auto& [key, value] : input.dict().entries()) {
      pairs.push_back(Value::tuple({key, value}));
    }
  } else {
    pairs = to_items(input);
  }
  std::string out;
  for (const Value& pair : pairs) {
    std::vector<Value> parts = to_items(pair);
    if (parts.size() != 2) {
      fault("urlencode: expected pairs");
    }
    out += out.empty() ? "" : "&";
    out += quote_url(to_string(parts[0]), true) + "=" +
           quote_url(to_string(parts[1]), true);
  }
  return Value::of(std::move(out));
}

std::string escape_value(const Value& value) {
  std::string text = to_string(value);
  return value.is_string() && value.text().markup ? text : escape_html(text);
}

Value filter_xmlattr(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("xmlattr", given, {"autospace"});
  if (!input.is(Kind::dict)) {
    fault("xmlattr: needs a dict");
  }
  std::string out;
  for (const auto& [key, value] : input.dict().entries()) {
    if (value.is(Kind::none) || value.is(Kind::undefined)) {
      continue;
    }
    if (!key.is_string() ||
        key.view().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      fault("xmlattr: a key is no attribute name");
    }
    out += out.empty() ? "" : " ";
    out += escape_value(key) + "=\"" + escape_value(value) + "\"";
  }
  if (arguments.truth(0, true) && !out.empty()) {
    out.insert(0, 1, ' ');
  }
  return Value::of(std::move(out));
}

Value filter_wordwrap(
    Interpreter&, const Value& input, const Arguments& given
) {
  Parameters arguments(
      "wordwrap",
      given,
      {"width", "break_long_words", "wrapstring", "break_on_hyphens"}
  );
  require_text("wordwrap", input);
  int64_t width = arguments.integer(0, 79);
  bool break_long = arguments.truth(1, true);
  std::string_view between =
      arguments.has_value(2) ? arguments.text(2) : std::string_view("\n");
  bool break_hyphens = arguments.truth(3, true);
  std::string out;
  bool first = true;
  for (std::string_view line : split_lines(input.view(), false)) {
    out += first ? std::string_view() : between;
    first = false;
    if (line.empty()) {
      continue;
    }
    if (width <= 0) {
      fault("wordwrap: the width must be positive");
    }
    bool first_part = true;
    for (const std::string& part : wrap_line(
             line, static_cast<size_t>(width), break_long, break_hyphens
         )) {
      out += first_part ? std::string_view() : between;
      first_part = false;
      out += part;
      check_text_size(out.size());
    }
  }
  return Value::of(std::move(out));
}

Value filter_striptags(
    Interpreter&, const Value& input, const Arguments& given
) {
  Parameters::none("striptags", given);
  return Value::of(strip_tags(to_string(input)));
}

Value filter_pprint(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("pprint", given);
  return Value::of(format_pretty(input));
}

}  // namespace

void add_text_filters(FilterTable& table) {
  table["upper"] = {mapped<to_upper>};
  table["lower"] = {mapped<to_lower>};
  table["capitalize"] = {mapped<to_capitalized>};
  table["title"] = {mapped<title_words>};
  table["string"] = {filter_string};
  table["trim"] = {filter_trim};
  table["replace"] = {filter_replace};
  table["center"] = {filter_center};
  table["indent"] = {filter_indent};
  table["truncate"] = {filter_truncate};
  table["wordcount"] = {filter_wordcount};
  table["format"] = {filter_format};
  table["escape"] = table["e"] = {filter_escape};
  table["forceescape"] = {filter_forceescape};
  table["safe"] = {filter_safe};
  table["urlencode"] = {filter_urlencode};
  table["wordwrap"] = {filter_wordwrap};
  table["striptags"] = {filter_striptags};
  table["pprint"] = {filter_pprint};
  table["xmlattr"] = {filter_xmlattr};
}

}  // namespace mlxcel::chat
