#include "mlxcel/chat/pretty.h"

#include <algorithm>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

constexpr int64_t kWidth = 80;

int64_t width_of(std::string_view text) {
  count_work(text.size());
  return static_cast<int64_t>(count_code_points(text));
}

// By key; keys without an order go by their types.
std::vector<std::pair<Value, Value>> sorted_entries(const Dict& dict) {
  auto entries = dict.entries();
  std::stable_sort(
      entries.begin(),
      entries.end(),
      [](const auto& a, const auto& b) {
        bool strings = a.first.is_string() && b.first.is_string();
        bool numbers = a.first.is_number() && b.first.is_number();
        if (strings || numbers) {
          return compare(a.first, b.first) < 0;
        }
        return std::string_view(type_name(a.first)) < type_name(b.first);
      }
  );
  return entries;
}

// repr() with sorted dicts.
void append_sorted(std::string& out, const Value& value) {
  count_work(0);
  if (value.is(Kind::dict)) {
    out += '{';
    const char* separator = "";
    for (const auto& [key, item] : sorted_entries(value.dict())) {
      out += separator;
      append_sorted(out, key);
      out += ": ";
      append_sorted(out, item);
      separator = ", ";
    }
    out += '}';
  } else if (value.is(Kind::list) || (value.is(Kind::tuple) && !value.sequence().group)) {
    bool list = value.is(Kind::list);
    out += list ? '[' : '(';
    const char* separator = "";
    for (const Value& item : value.items()) {
      out += separator;
      append_sorted(out, item);
      separator = ", ";
    }
    out += list ? "]" : value.items().size() == 1 ? ",)" : ")";
  } else {
    append_repr(out, value);
  }
  check_text_size(out.size());
}

class Printer {
 public:
  // `indent`: columns before the value; `allowance`: columns behind it.
  void write(const Value& value, int64_t indent, int64_t allowance, int level) {
    std::string line;
    append_sorted(line, value);
    bool fits = width_of(line) <= kWidth - indent - allowance;
    if (!fits && value.is(Kind::dict)) {
      write_dict(value.dict(), indent, allowance, level);
    } else if (!fits && value.is(Kind::list)) {
      write_items(value, '[', "]", indent, allowance, level);
    } else if (!fits && value.is(Kind::tuple) && !value.sequence().group) {
      const char* end = value.items().size() == 1 ? ",)" : ")";
      write_items(value, '(', end, indent, allowance, level);
    } else if (!fits && value.is_string() && !value.text().markup) {
      write_text(value.view(), indent, allowance, level);
    } else {
      out_ += line;
    }
    check_text_size(out_.size());
  }
  std::string take() {
    return std::move(out_);
  }

 private:
  void new_line(int64_t indent) {
    out_ += '\n';
    out_.append(static_cast<size_t>(indent), ' ');
  }

  void write_dict(
      const Dict& dict, int64_t indent, int64_t allowance, int level
  ) {
    out_ += '{';
    auto entries = sorted_entries(dict);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) {
        out_ += ',';
        new_line(indent + 1);
      }
      std::string key;
      append_sorted(key, entries[i].first);
      out_ += key + ": ";
      bool last = i + 1 == entries.size();
      write(
          entries[i].second,
          indent + 1 + width_of(key) + 2,
          last ? allowance + 1 : 1,
          level + 1
      );
    }
    out_ += '}';
  }

  void write_items(
      const Value& value,
      char begin,
      std::string_view end,
      int64_t indent,
      int64_t allowance,
      int level
  ) {
    out_ += begin;
    const std::vector<Value>& items = value.items();
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        out_ += ',';
        new_line(indent + 1);
      }
      bool last = i + 1 == items.size();
      auto behind = allowance + static_cast<int64_t>(end.size());
      write(items[i], indent + 1, last ? behind : 1, level + 1);
    }
    out_ += end;
  }

  // A long text becomes several literals, cut at line ends and spaces.
  void write_text(
      std::string_view text, int64_t indent, int64_t allowance, int level
  ) {
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    std::vector<std::string> pieces;
    std::vector<std::string_view> lines = split_lines(text, true);
    for (size_t i = 0; i < lines.size(); ++i) {
      bool last = i + 1 == lines.size();
      std::string whole = quote_python(lines[i]);
      if (width_of(whole) <= kWidth - indent - (last ? allowance : 0)) {
        pieces.push_back(std::move(whole));
      } else {
        cut_line(lines[i], kWidth - indent, last ? allowance : 0, pieces);
      }
    }
    if (pieces.size() <= 1) {
      out_ += quote_python(lines.empty() ? std::string_view() : lines.back());
      return;
    }
    out_ += level == 1 ? "(" : "";
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) {
        new_line(indent);
      }
      out_ += pieces[i];
    }
    out_ += level == 1 ? ")" : "";
  }

  static void cut_line(
      std::string_view line,
      int64_t width,
      int64_t allowance,
      std::vector<std::string>& pieces
  ) {
    size_t begin = 0;  // of the piece being made
    size_t end = 0;
    while (end < line.size()) {
      size_t next = word_end(line, end);
      int64_t room = width - (next == line.size() ? allowance : 0);
      std::string candidate = quote_python(line.substr(begin, next - begin));
      if (width_of(candidate) > room && begin < end) {
        pieces.push_back(quote_python(line.substr(begin, end - begin)));
        begin = end;
      }
      end = next;
    }
    if (begin < end) {
      pieces.push_back(quote_python(line.substr(begin, end - begin)));
    }
  }

  // Behind a word and the space that follows.
  static size_t word_end(std::string_view line, size_t at) {
    bool space = false;
    while (at < line.size()) {
      size_t next = at;
      bool here = is_space(next_code_point(line, next));
      if (space && !here) {
        break;
      }
      space = here;
      at = next;
    }
    return at;
  }

  std::string out_;
};

}  // namespace

std::string format_pretty(const Value& value) {
  Printer printer;
  printer.write(value, 0, 0, 1);
  return printer.take();
}

}  // namespace mlxcel::chat
