#include "mlxcel/core/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"

namespace mlxcel {

using Value = nlohmann::ordered_json;

struct Json::Document {
  Value root;
  std::string name;
};

namespace {

// Builds the document while it checks what nlohmann's own DOM parser lets
// pass: duplicate keys and depth.
class Builder : public nlohmann::json_sax<Value> {
 public:
  Builder(Value& root, std::string name, int depth)
      : root_(root), name_(std::move(name)), depth_(depth) {}

  bool null() override {
    return put(Value(nullptr));
  }
  bool boolean(bool value) override {
    return put(Value(value));
  }
  bool number_integer(number_integer_t value) override {
    return put(Value(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return put(Value(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (!std::isfinite(value)) {
      reject(fmt::format("number {} is out of range", text));
    }
    return put(Value(value));
  }
  bool string(string_t& value) override {
    return put(Value(std::move(value)));
  }
  bool binary(binary_t&) override {
    return false;
  }
  bool start_object(size_t) override {
    return open(Value::object());
  }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) {
      reject(fmt::format("duplicate key {}", quote(name)));
    }
    key_ = std::move(name);
    return true;
  }
  bool end_object() override {
    return close();
  }
  bool start_array(size_t) override {
    return open(Value::array());
  }
  bool end_array() override {
    return close();
  }
  bool parse_error(
      size_t position,
      const std::string&,
      const nlohmann::detail::exception& error
  ) override {
    std::string reason = error.what();
    size_t cut = reason.find("; last read");
    size_t start = reason.find("syntax error");
    reject(fmt::format(
        "not valid JSON at byte {}: {}",
        position,
        reason.substr(
            start == std::string::npos ? 0 : start,
            cut == std::string::npos
                ? cut
                : cut - (start == std::string::npos ? 0 : start)
        )
    ));
  }

 private:
  [[noreturn]] void reject(const std::string& message) const {
    fail(
        ErrorCode::invalid_input, fmt::format("[json] {}: {}", name_, message)
    );
  }

  Value* insert(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Value& parent = *open_.back();
    if (parent.is_array()) {
      auto& array = parent.get_ref<Value::array_t&>();
      array.push_back(std::move(value));
      return &array.back();
    }
    // ordered_map searches linearly on operator[]; the keys are known unique.
    auto& object = parent.get_ref<Value::object_t&>();
    using Base = Value::object_t::Container;
    static_cast<Base&>(object).emplace_back(std::move(key_), std::move(value));
    return &static_cast<Base&>(object).back().second;
  }

  bool put(Value value) {
    insert(std::move(value));
    return true;
  }

  bool open(Value value) {
    if (static_cast<int>(open_.size()) >= depth_) {
      reject(fmt::format("nested deeper than {} levels", depth_));
    }
    open_.push_back(insert(std::move(value)));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  Value& root_;
  std::string name_;
  int depth_;
  std::string key_;
  std::vector<Value*> open_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

Json Json::parse(std::string_view text, std::string name, int depth) {
  auto document = std::make_shared<Document>();
  document->name = std::move(name);
  Builder builder(document->root, document->name, depth);
  Value::sax_parse(text.begin(), text.end(), &builder);
  const Value* root = &document->root;
  return Json(std::move(document), root, "");
}

Json Json::parse_file(const std::string& path, uint64_t limit) {
  return parse(read_file(path, limit), path);
}

Json Json::from(nlohmann::ordered_json value, std::string name) {
  auto document = std::make_shared<Document>();
  document->root = std::move(value);
  document->name = std::move(name);
  const Value* root = &document->root;
  return Json(std::move(document), root, "");
}

Json::Json(
    std::shared_ptr<const Document> document,
    const nlohmann::ordered_json* value,
    std::string path
)
    : document_(std::move(document)), value_(value), path_(std::move(path)) {}

Json Json::child(const nlohmann::ordered_json& value, std::string path) const {
  return Json(document_, &value, std::move(path));
}

bool Json::is_null() const {
  return value_->is_null();
}
bool Json::is_object() const {
  return value_->is_object();
}
bool Json::is_array() const {
  return value_->is_array();
}
bool Json::is_string() const {
  return value_->is_string();
}
bool Json::is_bool() const {
  return value_->is_boolean();
}
bool Json::is_number() const {
  return value_->is_number();
}
bool Json::is_integer() const {
  return value_->is_number_integer();
}

bool Json::has(std::string_view key) const {
  return find(key).has_value();
}

std::optional<Json> Json::find(std::string_view key) const {
  if (!value_->is_object()) {
    return std::nullopt;
  }
  std::string name(key);
  auto found = value_->find(name);
  if (found == value_->end() || found->is_null()) {
    return std::nullopt;
  }
  return child(*found, path_.empty() ? name : path_ + "." + name);
}

Json Json::at(std::string_view key) const {
  if (auto found = find(key)) {
    return *found;
  }
  std::string name(key);
  child(*value_, path_.empty() ? name : path_ + "." + name)
      .reject("required, but missing");
}

std::vector<std::pair<std::string, Json>> Json::items() const {
  if (!value_->is_object()) {
    reject(fmt::format("expected an object, got {}", preview()));
  }
  std::vector<std::pair<std::string, Json>> all;
  for (const auto& [key, value] : value_->items()) {
    all.emplace_back(
        key, child(value, path_.empty() ? key : path_ + "." + key)
    );
  }
  return all;
}

std::vector<Json> Json::elements() const {
  if (!value_->is_array()) {
    reject(fmt::format("expected a list, got {}", preview()));
  }
  std::vector<Json> all;
  for (size_t i = 0; i < value_->size(); ++i) {
    all.push_back(child((*value_)[i], fmt::format("{}[{}]", path_, i)));
  }
  return all;
}

size_t Json::size() const {
  return value_->is_object() || value_->is_array() ? value_->size() : 0;
}

int64_t Json::as_int(int64_t min, int64_t max) const {
  std::optional<int64_t> number;
  if (value_->is_number_unsigned()) {
    uint64_t wide = value_->get<uint64_t>();
    if (wide <= INT64_MAX) {
      number = static_cast<int64_t>(wide);
    }
  } else if (value_->is_number_integer()) {
    number = value_->get<int64_t>();
  } else if (value_->is_number_float()) {
    double real = value_->get<double>();
    if (std::floor(real) == real && std::fabs(real) < 9e15) {
      number = static_cast<int64_t>(real);
    }
  } else if (value_->is_string()) {
    number = parse_int(value_->get_ref<const std::string&>());
  }
  if (!number) {
    reject(fmt::format("expected an integer, got {}", preview()));
  }
  if (*number < min || *number > max) {
    if (min == 1 && *number < 1) {
      reject(fmt::format("expected a positive integer, got {}", *number));
    }
    reject(fmt::format(
        "expected an integer from {} to {}, got {}", min, max, *number
    ));
  }
  return *number;
}

double Json::as_double() const {
  if (value_->is_number()) {
    return value_->get<double>();
  }
  if (value_->is_string()) {
    if (auto number = parse_double(value_->get_ref<const std::string&>());
        number && std::isfinite(*number)) {
      return *number;
    }
  }
  reject(fmt::format("expected a number, got {}", preview()));
}

bool Json::as_bool() const {
  if (!value_->is_boolean()) {
    reject(fmt::format("expected true or false, got {}", preview()));
  }
  return value_->get<bool>();
}

const std::string& Json::as_string() const {
  if (!value_->is_string()) {
    reject(fmt::format("expected a string, got {}", preview()));
  }
  return value_->get_ref<const std::string&>();
}

int64_t Json::int_or(
    std::string_view key, int64_t fallback, int64_t min, int64_t max
) const {
  auto found = find(key);
  return found ? found->as_int(min, max) : fallback;
}

double Json::double_or(std::string_view key, double fallback) const {
  auto found = find(key);
  return found ? found->as_double() : fallback;
}

bool Json::bool_or(std::string_view key, bool fallback) const {
  auto found = find(key);
  return found ? found->as_bool() : fallback;
}

std::string Json::string_or(std::string_view key, std::string fallback) const {
  if (auto found = find(key)) {
    return found->as_string();
  }
  return fallback;
}

const std::string& Json::document_name() const {
  return document_->name;
}

std::string Json::preview() const {
  if (value_->is_object() || value_->is_array()) {
    return value_->is_object() ? "an object" : "a list";
  }
  std::string text =
      value_->dump(-1, ' ', true, Value::error_handler_t::replace);
  return text.size() > 80 ? text.substr(0, 80) + "..." : text;
}

void Json::reject(const std::string& message) const {
  fail(
      ErrorCode::invalid_input,
      fmt::format(
          "[{}] {}: {} (in {})",
          base_name(document_->name),
          path_.empty() ? "document" : path_,
          message,
          document_->name
      )
  );
}

}  // namespace mlxcel
