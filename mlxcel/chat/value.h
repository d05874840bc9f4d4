#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlxcel::chat {

class Value;
class Interpreter;
struct Arguments;

enum class Kind : uint8_t {
  missing,    // a variable that was never set; never seen by a template
  undefined,  // what reading such a variable or attribute gives
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  dict,
  range,
  view,      // dict.keys(), dict.values(), dict.items()
  iterator,  // what can be walked once: map(), select(), reversed ...
  space,     // namespace()
  loop,      // the loop variable
  callable,  // functions, macros, bound methods
};

/// Base of what values share. All but namespaces, iterators and loops are
/// immutable.
struct Object {
  virtual ~Object() = default;

  /// Levels of values inside each other, this one included; 0 for what holds
  /// none. Bounded, so that walking and destroying a value can recurse.
  int depth = 0;
};

/// Reports its memory to the active Budget while it lives.
class Counted : public Object {
 public:
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() override;

 protected:
  Counted() = default;
  void count(size_t bytes);

 private:
  size_t bytes_ = 0;
};

struct Text final : Counted {
  Text(std::string text, bool is_markup);
  /// In code points.
  size_t length() const;
  bool is_ascii() const {
    return length() == bytes.size();
  }

  const std::string bytes;
  /// Result of `escape` or `safe`: what is added to it is escaped first.
  const bool markup;

 private:
  mutable std::atomic<size_t> length_;
};

struct Sequence final : Counted {
  explicit Sequence(std::vector<Value> values, bool is_group = false);

  const std::vector<Value> items;
  /// A tuple of groupby, with attributes `grouper` and `list`.
  const bool group;
};

/// Orders any two hashable values: equal ones compare equal (1, 1.0, True).
struct KeyLess {
  bool operator()(const Value& a, const Value& b) const;
};

/// Keeps the order of insertion.
class Dict final : public Counted {
 public:
  /// Throws Fault if a key is not hashable.
  explicit Dict(std::vector<std::pair<Value, Value>> entries);

  const std::vector<std::pair<Value, Value>>& entries() const {
    return entries_;
  }
  /// The value, or null.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

 private:
  void remove_duplicates();

  std::vector<std::pair<Value, Value>> entries_;
  std::map<Value, size_t, KeyLess> index_;  // of dicts with many entries
};

struct Range final : Object {
  int64_t start;
  int64_t stop;
  int64_t step;

  Range(int64_t from, int64_t to, int64_t by)
      : start(from), stop(to), step(by) {}
  /// Number of items.
  int64_t size() const;
};

struct View final : Counted {
  View(const char* type_name, std::vector<Value> values);

  const char* type;  // "dict_items"
  const std::vector<Value> items;
};

struct Iterator final : Counted {
  /// `failure`, if any, is thrown when the items are used up.
  Iterator(
      const char* type_name,
      std::vector<Value> values,
      std::exception_ptr failure = nullptr
  );
  /// Moves to the next item; false at the end.
  bool next(Value& item);

  const char* type;  // "generator"
  std::vector<Value> items;
  size_t position = 0;
  std::exception_ptr error;
};

struct Callable : Object {
  /// As it prints: "<Macro 'f'>".
  virtual std::string describe() const = 0;
  /// An attribute, or a missing value.
  virtual Value attribute(std::string_view name) const;
  virtual Value call(Interpreter& interpreter, Arguments& arguments) = 0;
};

struct Space;

/// Any value of the language. Cheap to copy.
class Value {
 public:
  Value() : kind_(Kind::missing) {}
  static Value none();
  static Value of(bool value);
  static Value of(int64_t value);
  static Value of(double value);
  static Value of(std::string text, bool markup = false);
  static Value of(std::string_view text, bool markup = false);
  static Value of(const char* text);
  static Value of(std::shared_ptr<Callable> callable);
  static Value of(std::shared_ptr<Space> space);
  static Value loop(std::shared_ptr<Callable> loop);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items, bool group = false);
  static Value dict(std::vector<std::pair<Value, Value>> entries);
  static Value range(int64_t start, int64_t stop, int64_t step);
  static Value view(const char* type, std::vector<Value> items);
  static Value iterator(
      const char* type,
      std::vector<Value> items,
      std::exception_ptr failure = nullptr
  );
  /// With the message that its use raises.
  static Value undefined(std::string hint);
  /// A variable that isn't set.
  static Value undefined_name(const Value& name);
  /// An element or attribute that `owner` doesn't have.
  static Value undefined_member(const Value& owner, const Value& name);
  /// A document; throws Fault for integers beyond 64 bits.
  static Value from_json(const nlohmann::ordered_json& json);

  Kind kind() const {
    return kind_;
  }
  bool is(Kind kind) const {
    return kind_ == kind;
  }
  bool is_string() const {
    return kind_ == Kind::string;
  }
  bool is_number() const {
    return kind_ == Kind::boolean || kind_ == Kind::integer ||
           kind_ == Kind::real;
  }
  /// Integers and booleans, which count as 0 and 1.
  bool is_integral() const {
    return kind_ == Kind::boolean || kind_ == Kind::integer;
  }

  int depth() const {
    return object_ ? object_->depth : 0;
  }

  // What the kind must already have been asked for.
  bool boolean() const {
    return number_.integer != 0;
  }
  int64_t integer() const {
    return number_.integer;
  }
  /// Of any number.
  double real() const;
  const Text& text() const;
  std::string_view view() const {
    return text().bytes;
  }
  const std::vector<Value>& items() const;  // list, tuple, view
  const Sequence& sequence() const;
  const Dict& dict() const;
  const Range& range() const;
  const View& dict_view() const;
  Iterator& iterator() const;
  Space& space() const;
  Callable& callable() const;  // callable and loop
  /// The message that the use of an undefined value raises.
  std::string absence() const;

  /// Same object (`sameas`).
  bool same_as(const Value& other) const;
  /// An address that identifies the object.
  const void* identity() const {
    return object_.get();
  }

 private:
  Value(Kind kind, std::shared_ptr<Object> object)
      : kind_(kind), object_(std::move(object)) {}

  Kind kind_;
  union {
    int64_t integer;
    double real;
  } number_ = {0};
  std::shared_ptr<Object> object_;
};

/// The one thing a template can change. The interpreter holds all of them to
/// the end and empties them then, which breaks cycles and long chains.
struct Space final : Object {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* find(std::string_view name) const;
};

/// 1 + the depth of the deepest; throws Fault beyond the limit.
int depth_around(const std::vector<Value>& items);

/// Python's name of the type: "str", "NoneType", "dict" ...
const char* type_name(const Value& value);
bool truth(const Value& value);
/// `==`; never throws but for limits.
bool equal(const Value& a, const Value& b);
/// A view of keys or items, which compare as sets; not of values.
bool is_set_view(const Value& value);
/// Whether both are such views, and all of `a` are in `b`.
bool is_subset(const Value& a, const Value& b);
/// Negative, zero or positive for `<`, `==`, `>`. Throws Fault for types
/// without an order; `symbol` is the operator in its message.
int compare(const Value& a, const Value& b, const char* symbol = "<");
/// Throws Fault for lists, dicts and what holds them.
void check_hashable(const Value& value);

/// As it prints.
void append_string(std::string& out, const Value& value);
std::string to_string(const Value& value);
/// As it prints inside a list.
void append_repr(std::string& out, const Value& value, int depth = 0);
std::string repr(const Value& value);

/// Walks what a for loop can walk. Throws Fault for other values.
class Cursor {
 public:
  explicit Cursor(const Value& value);
  /// Moves to the next item; false at the end.
  bool next(Value& item);

 private:
  Value value_;
  size_t position_ = 0;
};

/// All items of what a for loop can walk.
std::vector<Value> to_items(const Value& value);
bool is_iterable(const Value& value);
/// len(); throws Fault for values without one.
int64_t length_of(const Value& value);
bool has_length(const Value& value);

}  // namespace mlxcel::chat
