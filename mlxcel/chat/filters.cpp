#include "mlxcel/chat/filters.h"

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/filter_functions.h"
#include "mlxcel/chat/interpreter.h"
#include "mlxcel/chat/json_output.h"
#include "mlxcel/chat/number.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

Value filter_default(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("default", given, {"default_value", "boolean"});
  bool replaced =
      input.is(Kind::undefined) || (arguments.truth(1, false) && !truth(input));
  if (!replaced) {
    return input;
  }
  return arguments.has(0) ? arguments[0] : Value::of("");
}

Value filter_attr(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  Parameters arguments("attr", given, {"name"}, 1);
  if (input.is(Kind::undefined)) {
    fault(input.absence());
  }
  arguments.text(0);
  Value found = interpreter.find_attribute(input, arguments[0]);
  return found.is(Kind::missing) ? Value::undefined_member(input, arguments[0])
                                 : found;
}

// As transformers defines it: json.dumps without HTML escapes.
Value filter_tojson(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments(
      "tojson", given, {"ensure_ascii", "indent", "separators", "sort_keys"}
  );
  JsonStyle style;
  style.ascii = arguments.truth(0, false);
  style.sort_keys = arguments.truth(3, false);
  if (arguments.has_value(1)) {
    style.item_separator = ",";
    style.indent = arguments[1].is_string()
                       ? std::string(arguments.text(1))
                       : json_indent(arguments.integer(1, 0));
  }
  if (arguments.has_value(2)) {
    std::vector<Value> separators = to_items(arguments[2]);
    if (separators.size() != 2 || !separators[0].is_string() ||
        !separators[1].is_string()) {
      fault("tojson: argument 'separators' must be two strings");
    }
    style.item_separator = separators[0].view();
    style.key_separator = separators[1].view();
  }
  return Value::of(to_json(input, style));
}

Value not_supported(Interpreter&, const Value&, const Arguments&) {
  fault("this filter of Jinja is not supported");
}

FilterTable make_table() {
  FilterTable table;
  add_text_filters(table);
  add_list_filters(table);
  add_select_filters(table);
  add_number_filters(table);
  table["default"] = table["d"] = {filter_default};
  table["attr"] = {filter_attr};
  table["tojson"] = {filter_tojson};
  // Known, so that a template may mention them where it never comes by.
  for (const char* name : {"random", "urlize"}) {
    table[name] = {not_supported};
  }
  return table;
}

}  // namespace

Value as_text(const Value& value) {
  return value.is_string() ? value : Value::of(to_string(value));
}

AttributePath::AttributePath(const Value& attribute) {
  if (attribute.is(Kind::none) || attribute.is(Kind::missing)) {
    return;
  }
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  for (std::string_view part : split(attribute.view(), ".", -1)) {
    bool number = !part.empty() && part.find_first_not_of("0123456789") ==
                                       std::string_view::npos;
    parts_.push_back(
        number ? Value::of(parse_integer(part, 10).value_or(0))
               : Value::of(part)
    );
  }
}

Value AttributePath::get(
    Interpreter& interpreter, Value item, const Value& fallback
) const {
  for (const Value& part : parts_) {
    item = interpreter.get_item(item, part);
    if (item.is(Kind::undefined) && !fallback.is(Kind::missing) &&
        !fallback.is(Kind::none)) {
      item = fallback;
    }
  }
  return item;
}

const FilterInfo* find_filter(std::string_view name) {
  static const FilterTable table = make_table();
  auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace mlxcel::chat
