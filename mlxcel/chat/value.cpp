#include "mlxcel/chat/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/text.h"
#include "mlxcel/core/utf8.h"

namespace mlxcel::chat {

namespace {

constexpr int kMaxDepth = 400;
// Dicts up to this size are searched entry by entry.
constexpr size_t kSmallDict = 8;
constexpr size_t kUnknownLength = SIZE_MAX;

int checked_depth(int depth) {
  if (depth > kMaxDepth) {
    limit_fault(fmt::format("values nested deeper than {}", kMaxDepth));
  }
  return depth;
}

// Why a value is undefined: a message, or what lacks which member.
struct Absence final : Object {
  std::string hint;
  const char* owner = nullptr;
  Value name;
};

bool equals_text(const Value& key, std::string_view text) {
  return key.is_string() && key.view() == text;
}

}  // namespace

int depth_around(const std::vector<Value>& items) {
  int depth = 0;
  for (const Value& item : items) {
    depth = std::max(depth, item.depth());
  }
  return checked_depth(depth + 1);
}

void Counted::count(size_t bytes) {
  if (Budget* budget = Budget::active()) {
    budget->allocate(bytes);
    bytes_ = bytes;
  }
}

Counted::~Counted() {
  Budget* budget = bytes_ > 0 ? Budget::active() : nullptr;
  if (budget) {
    budget->release(bytes_);
  }
}

Text::Text(std::string text, bool is_markup)
    : bytes(std::move(text)), markup(is_markup), length_(kUnknownLength) {
  check_text_size(bytes.size());
  count(sizeof(Text) + bytes.size());
}

size_t Text::length() const {
  size_t known = length_.load(std::memory_order_relaxed);
  if (known == kUnknownLength) {
    known = count_code_points(bytes);
    length_.store(known, std::memory_order_relaxed);
  }
  return known;
}

Sequence::Sequence(std::vector<Value> values, bool is_group)
    : items(std::move(values)), group(is_group) {
  check_item_count(items.size());
  depth = depth_around(items);
  count(sizeof(Sequence) + items.capacity() * sizeof(Value));
}

Dict::Dict(std::vector<std::pair<Value, Value>> entries)
    : entries_(std::move(entries)) {
  check_item_count(entries_.size());
  for (const auto& [key, value] : entries_) {
    check_hashable(key);
    depth = std::max({depth, key.depth(), value.depth()});
  }
  depth = checked_depth(depth + 1);
  remove_duplicates();
  count(sizeof(Dict) + entries_.capacity() * 2 * sizeof(Value));
}

// The last value of a key wins and takes the place of the first.
void Dict::remove_duplicates() {
  size_t kept = 0;
  bool small = entries_.size() <= kSmallDict;
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t place = kept;
    if (small) {
      for (size_t k = 0; k < kept && place == kept; ++k) {
        if (equal(entries_[k].first, entries_[i].first)) {
          place = k;
        }
      }
    } else {
      place = index_.try_emplace(entries_[i].first, kept).first->second;
    }
    if (place < kept) {
      entries_[place].second = std::move(entries_[i].second);
    } else if (kept++ != i) {
      entries_[place] = std::move(entries_[i]);
    }
  }
  entries_.resize(kept);
}

const Value* Dict::find(const Value& key) const {
  check_hashable(key);
  if (!index_.empty()) {
    auto found = index_.find(key);
    return found == index_.end() ? nullptr : &entries_[found->second].second;
  }
  for (const auto& [own, value] : entries_) {
    if (equal(own, key)) {
      return &value;
    }
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (!index_.empty()) {
    return find(Value::of(std::string(key)));
  }
  for (const auto& [own, value] : entries_) {
    if (equals_text(own, key)) {
      return &value;
    }
  }
  return nullptr;
}

int64_t Range::size() const {
  __int128 span = step > 0 ? static_cast<__int128>(stop) - start
                           : static_cast<__int128>(start) - stop;
  __int128 stride = step > 0 ? step : -static_cast<__int128>(step);
  if (span <= 0) {
    return 0;
  }
  __int128 count = (span + stride - 1) / stride;
  return count > INT64_MAX ? INT64_MAX : static_cast<int64_t>(count);
}

View::View(const char* type_name, std::vector<Value> values)
    : type(type_name), items(std::move(values)) {
  depth = depth_around(items);
  count(sizeof(View) + items.capacity() * sizeof(Value));
}

Iterator::Iterator(
    const char* type_name, std::vector<Value> values, std::exception_ptr failure
)
    : type(type_name), items(std::move(values)) {
  error = std::move(failure);
  check_item_count(items.size());
  depth = depth_around(items);
  count(sizeof(Iterator) + items.capacity() * sizeof(Value));
}

bool Iterator::next(Value& item) {
  if (position < items.size()) {
    item = items[position++];
    return true;
  }
  if (error) {
    std::rethrow_exception(std::exchange(error, nullptr));
  }
  return false;
}

const Value* Space::find(std::string_view name) const {
  for (const auto& [own, value] : attributes) {
    if (own == name) {
      return &value;
    }
  }
  return nullptr;
}

Value Callable::attribute(std::string_view) const {
  return Value();
}

Value Value::none() {
  return Value(Kind::none, nullptr);
}

Value Value::of(bool value) {
  Value result(Kind::boolean, nullptr);
  result.number_.integer = value;
  return result;
}

Value Value::of(int64_t value) {
  Value result(Kind::integer, nullptr);
  result.number_.integer = value;
  return result;
}

Value Value::of(double value) {
  Value result(Kind::real, nullptr);
  result.number_.real = value;
  return result;
}

Value Value::of(std::string text, bool markup) {
  return Value(Kind::string, std::make_shared<Text>(std::move(text), markup));
}

Value Value::of(std::string_view text, bool markup) {
  return of(std::string(text), markup);
}

Value Value::of(const char* text) {
  return of(std::string(text));
}

Value Value::of(std::shared_ptr<Callable> callable) {
  return Value(Kind::callable, std::move(callable));
}

Value Value::of(std::shared_ptr<Space> space) {
  return Value(Kind::space, std::move(space));
}

Value Value::loop(std::shared_ptr<Callable> loop) {
  return Value(Kind::loop, std::move(loop));
}

Value Value::list(std::vector<Value> items) {
  return Value(Kind::list, std::make_shared<Sequence>(std::move(items)));
}

Value Value::tuple(std::vector<Value> items, bool group) {
  return Value(
      Kind::tuple, std::make_shared<Sequence>(std::move(items), group)
  );
}

Value Value::dict(std::vector<std::pair<Value, Value>> entries) {
  return Value(Kind::dict, std::make_shared<Dict>(std::move(entries)));
}

Value Value::range(int64_t start, int64_t stop, int64_t step) {
  return Value(Kind::range, std::make_shared<Range>(start, stop, step));
}

Value Value::view(const char* type, std::vector<Value> items) {
  return Value(Kind::view, std::make_shared<View>(type, std::move(items)));
}

Value Value::iterator(
    const char* type, std::vector<Value> items, std::exception_ptr failure
) {
  return Value(
      Kind::iterator,
      std::make_shared<Iterator>(type, std::move(items), std::move(failure))
  );
}

Value Value::undefined(std::string hint) {
  auto absence = std::make_shared<Absence>();
  absence->hint = std::move(hint);
  return Value(Kind::undefined, std::move(absence));
}

Value Value::undefined_name(const Value& name) {
  auto absence = std::make_shared<Absence>();
  absence->name = name;
  return Value(Kind::undefined, std::move(absence));
}

Value Value::undefined_member(const Value& owner, const Value& name) {
  auto absence = std::make_shared<Absence>();
  absence->owner = type_name(owner);
  if (name.is_string()) {
    absence->name = name;
  } else {
    absence->hint = fmt::format(
        "{} object has no element {}", absence->owner, repr(name).substr(0, 80)
    );
  }
  return Value(Kind::undefined, std::move(absence));
}

std::string Value::absence() const {
  const auto& absence = static_cast<const Absence&>(*object_);
  if (!absence.hint.empty()) {
    return absence.hint;
  }
  if (!absence.owner) {
    return fmt::format("{} is undefined", quote_python(absence.name.view()));
  }
  return fmt::format(
      "'{} object' has no attribute {}",
      absence.owner,
      quote_python(absence.name.view())
  );
}

double Value::real() const {
  return kind_ == Kind::real ? number_.real
                             : static_cast<double>(number_.integer);
}

const Text& Value::text() const {
  return static_cast<const Text&>(*object_);
}

const std::vector<Value>& Value::items() const {
  return kind_ == Kind::view ? dict_view().items : sequence().items;
}

const Sequence& Value::sequence() const {
  return static_cast<const Sequence&>(*object_);
}

const Dict& Value::dict() const {
  return static_cast<const Dict&>(*object_);
}

const Range& Value::range() const {
  return static_cast<const Range&>(*object_);
}

const View& Value::dict_view() const {
  return static_cast<const View&>(*object_);
}

Iterator& Value::iterator() const {
  return static_cast<Iterator&>(*object_);
}

Space& Value::space() const {
  return static_cast<Space&>(*object_);
}

Callable& Value::callable() const {
  return static_cast<Callable&>(*object_);
}

bool Value::same_as(const Value& other) const {
  if (kind_ != other.kind_) {
    return false;
  }
  if (object_ || other.object_) {
    return object_ == other.object_ ||
           (kind_ == Kind::string && view() == other.view());
  }
  return number_.integer == other.number_.integer;
}

namespace {

Value json_value(const nlohmann::ordered_json& json, int depth) {
  checked_depth(depth);
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::null:
    case Type::discarded:
    case Type::binary:
      return Value::none();
    case Type::boolean:
      return Value::of(json.get<bool>());
    case Type::number_integer:
      return Value::of(json.get<int64_t>());
    case Type::number_unsigned: {
      uint64_t number = json.get<uint64_t>();
      if (number > static_cast<uint64_t>(INT64_MAX)) {
        fault(fmt::format("the integer {} of the input is too large", number));
      }
      return Value::of(static_cast<int64_t>(number));
    }
    case Type::number_float:
      return Value::of(json.get<double>());
    case Type::string: {
      const std::string& text = json.get_ref<const std::string&>();
      if (find_invalid_utf8(text)) {
        fault("a string of the input is not valid UTF-8");
      }
      return Value::of(text);
    }
    case Type::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) {
        items.push_back(json_value(item, depth + 1));
      }
      return Value::list(std::move(items));
    }
    case Type::object: {
      std::vector<std::pair<Value, Value>> entries;
      entries.reserve(json.size());
      for (const auto& [key, value] : json.items()) {
        entries.emplace_back(Value::of(key), json_value(value, depth + 1));
      }
      return Value::dict(std::move(entries));
    }
  }
  return Value::none();
}

}  // namespace

Value Value::from_json(const nlohmann::ordered_json& json) {
  return json_value(json, 1);
}

}  // namespace mlxcel::chat
