#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/filter_functions.h"
#include "mlxcel/chat/interpreter.h"
#include "mlxcel/chat/operators.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

constexpr const char* kGenerator = "generator";

Value ignore_case(const Value& value) {
  return value.is_string() ? Value::of(to_lower(value.view())) : value;
}

Value filter_length(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("length", given);
  return Value::of(length_of(input));
}

Value filter_list(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("list", given);
  return Value::list(to_items(input));
}

Value filter_first(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("first", given);
  Cursor cursor(input);
  Value item;
  return cursor.next(item)
             ? item
             : Value::undefined("there is no first item: the list is empty");
}

// What reversed() takes: all that can be walked but what is walked only once.
std::vector<Value> reversed_items(const char* filter, const Value& input) {
  if (input.is(Kind::iterator)) {
    fault(fmt::format(
        "{}: '{}' cannot be walked backwards", filter, type_name(input)
    ));
  }
  std::vector<Value> items = to_items(input);
  std::reverse(items.begin(), items.end());
  return items;
}

Value filter_last(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("last", given);
  if (input.is_string() || input.is(Kind::list) || input.is(Kind::tuple)) {
    Value item = item_at(input, -1);
    if (!item.is(Kind::missing)) {
      return item;
    }
  }
  std::vector<Value> items = reversed_items("last", input);
  return items.empty()
             ? Value::undefined("there is no last item: the list is empty")
             : items[0];
}

Value filter_reverse(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("reverse", given);
  if (input.is_string()) {
    return slice(input, Value::none(), Value::none(), Value::of(int64_t{-1}));
  }
  if (input.is(Kind::iterator)) {
    std::vector<Value> items = to_items(input);
    std::reverse(items.begin(), items.end());
    return Value::list(std::move(items));
  }
  return Value::iterator("reversed", reversed_items("reverse", input));
}

Value filter_join(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  Parameters arguments("join", given, {"d", "attribute"});
  std::string separator = arguments.has(0) ? to_string(arguments[0]) : "";
  AttributePath path(arguments[1]);
  std::string out;
  bool first = true;
  Cursor cursor(input);
  for (Value item; cursor.next(item);) {
    out += first ? "" : separator;
    first = false;
    append_string(out, path.get(interpreter, item));
    check_text_size(out.size());
  }
  return Value::of(std::move(out));
}

Value filter_items(Interpreter&, const Value& input, const Arguments& given) {
  Parameters::none("items", given);
  std::vector<Value> items;
  std::exception_ptr failure;
  if (input.is(Kind::dict)) {
    for (const auto& [key, value] : input.dict().entries()) {
      items.push_back(Value::tuple({key, value}));
    }
  } else if (!input.is(Kind::undefined)) {
    // Jinja finds out when the result is walked.
    failure = std::make_exception_ptr(Fault(
        Fault::Kind::error,
        fmt::format("items: needs a dict, got '{}'", type_name(input))
    ));
  }
  return Value::iterator(kGenerator, std::move(items), failure);
}

/// Items with the key that they are sorted by.
struct Keyed {
  Value key;
  Value item;
};

int compare_keys(const Keyed& a, const Keyed& b) {
  count_work(0);
  return compare(a.key, b.key);
}

void sort_keyed(std::vector<Keyed>& all, bool descending) {
  std::stable_sort(
      all.begin(),
      all.end(),
      [descending](const Keyed& a, const Keyed& b) {
        return descending ? compare_keys(b, a) < 0 : compare_keys(a, b) < 0;
      }
  );
}

Value filter_sort(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  Parameters arguments(
      "sort", given, {"reverse", "case_sensitive", "attribute"}
  );
  bool case_sensitive = arguments.truth(1, false);
  std::vector<AttributePath> paths;
  if (arguments.has(2) && arguments[2].is_string()) {
    for (std::string_view part : split(arguments.text(2), ",", -1)) {
      paths.emplace_back(Value::of(part));
    }
  } else {
    paths.emplace_back(arguments[2]);
  }
  std::vector<Keyed> all;
  for (const Value& item : to_items(input)) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths) {
      Value key = path.get(interpreter, item);
      keys.push_back(case_sensitive ? key : ignore_case(key));
    }
    // A list even of one: parts that are equal need no order.
    all.push_back({Value::list(std::move(keys)), item});
  }
  sort_keyed(all, arguments.truth(0, false));
  std::vector<Value> items;
  items.reserve(all.size());
  for (Keyed& keyed : all) {
    items.push_back(std::move(keyed.item));
  }
  return Value::list(std::move(items));
}

Value filter_dictsort(
    Interpreter&, const Value& input, const Arguments& given
) {
  Parameters arguments("dictsort", given, {"case_sensitive", "by", "reverse"});
  std::string_view by = arguments.text(1, "key");
  if (by != "key" && by != "value") {
    fault("dictsort: argument 'by' must be key or value");
  }
  if (!input.is(Kind::dict)) {
    fault(
        input.is(Kind::undefined)
            ? input.absence()
            : fmt::format("dictsort: needs a dict, got '{}'", type_name(input))
    );
  }
  std::vector<Keyed> all;
  for (const auto& [key, value] : input.dict().entries()) {
    const Value& sorted = by == "key" ? key : value;
    all.push_back(
        {arguments.truth(0, false) ? sorted : ignore_case(sorted),
         Value::tuple({key, value})}
    );
  }
  sort_keyed(all, arguments.truth(2, false));
  std::vector<Value> items;
  items.reserve(all.size());
  for (Keyed& keyed : all) {
    items.push_back(std::move(keyed.item));
  }
  return Value::list(std::move(items));
}

template <bool largest>
Value extreme(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  Parameters arguments(
      largest ? "max" : "min", given, {"case_sensitive", "attribute"}
  );
  bool case_sensitive = arguments.truth(0, false);
  AttributePath path(arguments[1]);
  Value best;
  Value best_key;
  Cursor cursor(input);
  for (Value item; cursor.next(item);) {
    Value key = path.get(interpreter, item);
    key = case_sensitive ? key : ignore_case(key);
    bool better =
        best.is(Kind::missing) || (largest ? compare(key, best_key, ">") > 0
                                           : compare(key, best_key, "<") < 0);
    if (better) {
      best = item;
      best_key = key;
    }
  }
  return best.is(Kind::missing)
             ? Value::undefined("there is no such item: the list is empty")
             : best;
}

Value filter_sum(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  Parameters arguments("sum", given, {"attribute", "start"});
  AttributePath path(arguments[0]);
  Value total = arguments.has(1) ? arguments[1] : Value::of(int64_t{0});
  if (total.is_string()) {
    fault("sum: strings cannot be summed; use join");
  }
  Cursor cursor(input);
  for (Value item; cursor.next(item);) {
    total = apply_arithmetic(Operator::add, total, path.get(interpreter, item));
  }
  return total;
}

Value filter_unique(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  Parameters arguments("unique", given, {"case_sensitive", "attribute"});
  bool case_sensitive = arguments.truth(0, false);
  AttributePath path(arguments[1]);
  std::set<Value, KeyLess> seen;
  std::vector<Value> items;
  Cursor cursor(input);
  for (Value item; cursor.next(item);) {
    Value key = path.get(interpreter, item);
    check_hashable(key);
    if (seen.insert(case_sensitive ? key : ignore_case(key)).second) {
      items.push_back(item);
    }
  }
  return Value::iterator(kGenerator, std::move(items));
}

Value filter_batch(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("batch", given, {"linecount", "fill_with"}, 1);
  int64_t size = arguments.integer(0, 0);
  std::vector<Value> batches;
  std::vector<Value> batch;
  for (const Value& item : to_items(input)) {
    if (static_cast<int64_t>(batch.size()) == size) {
      batches.push_back(Value::list(std::exchange(batch, {})));
    }
    batch.push_back(item);
  }
  if (!batch.empty()) {
    if (arguments.has_value(1) && static_cast<int64_t>(batch.size()) < size) {
      check_item_count(static_cast<uint64_t>(size));
      batch.resize(static_cast<size_t>(size), arguments[1]);
    }
    batches.push_back(Value::list(std::move(batch)));
  }
  return Value::iterator(kGenerator, std::move(batches));
}

Value filter_slice(Interpreter&, const Value& input, const Arguments& given) {
  Parameters arguments("slice", given, {"slices", "fill_with"}, 1);
  int64_t slices = arguments.integer(0, 0);
  if (slices == 0) {
    fault("slice: argument 'slices' must not be 0");
  }
  std::vector<Value> items = to_items(input);
  check_item_count(static_cast<uint64_t>(std::max<int64_t>(slices, 0)));
  auto length = static_cast<int64_t>(items.size());
  std::vector<Value> all;
  auto from = items.begin();
  for (int64_t i = 0; i < slices; ++i) {
    bool longer = i < length % slices;
    auto to = from + length / slices + longer;
    std::vector<Value> part(from, to);
    if (arguments.has_value(1) && !longer) {
      part.push_back(arguments[1]);
    }
    all.push_back(Value::list(std::move(part)));
    from = to;
  }
  return Value::iterator(kGenerator, std::move(all));
}

Value filter_groupby(
    Interpreter& interpreter, const Value& input, const Arguments& given
) {
  Parameters arguments(
      "groupby", given, {"attribute", "default", "case_sensitive"}, 1
  );
  bool case_sensitive = arguments.truth(2, false);
  AttributePath path(arguments[0]);
  std::vector<Keyed> all;
  for (const Value& item : to_items(input)) {
    Value key = path.get(interpreter, item, arguments[1]);
    all.push_back({case_sensitive ? key : ignore_case(key), item});
  }
  sort_keyed(all, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    std::vector<Value> members;
    while (end < all.size() && equal(all[end].key, all[begin].key)) {
      members.push_back(all[end++].item);
    }
    // The key as the first member spells it.
    Value key = path.get(interpreter, all[begin].item, arguments[1]);
    groups.push_back(Value::tuple({key, Value::list(std::move(members))}, true)
    );
    begin = std::max(end, begin + 1);
  }
  return Value::list(std::move(groups));
}

}  // namespace

void add_list_filters(FilterTable& table) {
  table["length"] = table["count"] = {filter_length};
  table["list"] = {filter_list};
  table["first"] = {filter_first};
  table["last"] = {filter_last};
  table["reverse"] = {filter_reverse};
  table["join"] = {filter_join};
  table["items"] = {filter_items};
  table["sort"] = {filter_sort};
  table["dictsort"] = {filter_dictsort};
  table["min"] = {extreme<false>};
  table["max"] = {extreme<true>};
  table["sum"] = {filter_sum};
  table["unique"] = {filter_unique};
  table["batch"] = {filter_batch};
  table["slice"] = {filter_slice};
  table["groupby"] = {filter_groupby};
}

}  // namespace mlxcel::chat
