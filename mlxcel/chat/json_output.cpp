#include "mlxcel/chat/json_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/number.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, int depth);
  std::string take() {
    return std::move(out_);
  }

 private:
  void write_string(std::string_view text);
  void write_escape(char32_t c);
  void write_list(const std::vector<Value>& items, int depth);
  void write_dict(const Dict& dict, int depth);
  void new_line(int depth);
  static std::string key_text(const Value& key);

  const JsonStyle& style_;
  std::string out_;
};

std::string number_text(const Value& value) {
  if (value.is(Kind::integer)) {
    return std::to_string(value.integer());
  }
  double real = value.real();
  if (std::isnan(real)) {
    return "NaN";
  }
  if (std::isinf(real)) {
    return real > 0 ? "Infinity" : "-Infinity";
  }
  return format_real(real);
}

void JsonWriter::write_escape(char32_t c) {
  switch (c) {
    case '"':
      out_ += "\\\"";
      return;
    case '\\':
      out_ += "\\\\";
      return;
    case '\n':
      out_ += "\\n";
      return;
    case '\r':
      out_ += "\\r";
      return;
    case '\t':
      out_ += "\\t";
      return;
    case '\b':
      out_ += "\\b";
      return;
    case '\f':
      out_ += "\\f";
      return;
    default:
      break;
  }
  if (c < 0x10000) {
    out_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    uint32_t rest = static_cast<uint32_t>(c) - 0x10000;
    out_ += fmt::format(
        "\\u{:04x}\\u{:04x}", 0xd800 | rest >> 10, 0xdc00 | (rest & 0x3ff)
    );
  }
}

void JsonWriter::write_string(std::string_view text) {
  out_ += '"';
  size_t plain = 0;
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    bool escaped = byte < 0x20 || byte == '"' || byte == '\\' ||
                   (style_.ascii && byte >= 0x7f);
    if (!escaped) {
      ++i;
      continue;
    }
    out_ += text.substr(plain, i - plain);
    write_escape(next_code_point(text, i));
    plain = i;
  }
  out_ += text.substr(plain);
  out_ += '"';
  check_text_size(out_.size());
}

void JsonWriter::new_line(int depth) {
  if (style_.indent) {
    check_text_size(
        out_.size() + style_.indent->size() * static_cast<size_t>(depth)
    );
    out_ += '\n';
    for (int i = 0; i < depth; ++i) {
      out_ += *style_.indent;
    }
  }
}

void JsonWriter::write_list(const std::vector<Value>& items, int depth) {
  if (items.empty()) {
    out_ += "[]";
    return;
  }
  out_ += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    out_ += i > 0 ? style_.item_separator : "";
    new_line(depth + 1);
    write(items[i], depth + 1);
  }
  new_line(depth);
  out_ += ']';
}

std::string JsonWriter::key_text(const Value& key) {
  switch (key.kind()) {
    case Kind::string:
      return std::string(key.view());
    case Kind::boolean:
      return key.boolean() ? "true" : "false";
    case Kind::none:
      return "null";
    case Kind::integer:
    case Kind::real:
      return number_text(key);
    default:
      fault(fmt::format(
          "tojson: a key of type '{}' cannot be written", type_name(key)
      ));
  }
}

void JsonWriter::write_dict(const Dict& dict, int depth) {
  if (dict.entries().empty()) {
    out_ += "{}";
    return;
  }
  std::vector<const std::pair<Value, Value>*> entries;
  entries.reserve(dict.entries().size());
  for (const auto& entry : dict.entries()) {
    entries.push_back(&entry);
  }
  if (style_.sort_keys) {
    std::stable_sort(
        entries.begin(),
        entries.end(),
        [](const auto* a, const auto* b) {
          return compare(a->first, b->first) < 0;
        }
    );
  }
  out_ += '{';
  for (size_t i = 0; i < entries.size(); ++i) {
    out_ += i > 0 ? style_.item_separator : "";
    new_line(depth + 1);
    write_string(key_text(entries[i]->first));
    out_ += style_.key_separator;
    write(entries[i]->second, depth + 1);
  }
  new_line(depth);
  out_ += '}';
}

void JsonWriter::write(const Value& value, int depth) {
  count_work(0);
  switch (value.kind()) {
    case Kind::none:
      out_ += "null";
      return;
    case Kind::boolean:
      out_ += value.boolean() ? "true" : "false";
      return;
    case Kind::integer:
    case Kind::real:
      out_ += number_text(value);
      return;
    case Kind::string:
      write_string(value.view());
      return;
    case Kind::list:
    case Kind::tuple:
      write_list(value.items(), depth);
      return;
    case Kind::dict:
      write_dict(value.dict(), depth);
      return;
    default:
      fault(fmt::format(
          "tojson: a value of type '{}' cannot be written", type_name(value)
      ));
  }
}

}  // namespace

std::string json_indent(int64_t width) {
  width = std::max<int64_t>(width, 0);
  check_text_size(static_cast<uint64_t>(width));
  return std::string(static_cast<size_t>(width), ' ');
}

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace mlxcel::chat
