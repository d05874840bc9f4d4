#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlxcel {

/// A read-only place in a parsed JSON document that knows its own name, so
/// that every error says which field of which file is wrong. Keys keep the
/// order of the text. Cheap to copy; keeps the document alive.
class Json {
 public:
  /// Parses text. Refuses duplicate keys, more than `depth` levels, invalid
  /// UTF-8 and trailing content. `name` is the file or request in messages.
  /// Throws Error(invalid_input) with the position and the reason.
  static Json parse(std::string_view text, std::string name, int depth = 128);
  static Json parse_file(const std::string& path, uint64_t limit);
  /// A document made in memory.
  static Json from(nlohmann::ordered_json value, std::string name);

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_bool() const;
  /// Integer or floating.
  bool is_number() const;
  bool is_integer() const;

  /// True if the object has the key with a value other than null.
  bool has(std::string_view key) const;
  /// The member, or empty if it is absent or null (null is absent).
  std::optional<Json> find(std::string_view key) const;
  /// The member. Throws Error(invalid_input) naming it if absent or null.
  Json at(std::string_view key) const;
  /// Members of an object in order, nulls included. Throws otherwise.
  std::vector<std::pair<std::string, Json>> items() const;
  /// Elements of an array. Throws if it is no array.
  std::vector<Json> elements() const;
  size_t size() const;

  /// Typed reading; each throws Error(invalid_input) naming the field, what
  /// was expected and what is there. A whole float and a numeric string count
  /// as integers ("64", 64.0).
  int64_t as_int(int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;
  double as_double() const;
  bool as_bool() const;
  const std::string& as_string() const;

  /// Typed member or the default if it is absent or null.
  int64_t int_or(
      std::string_view key,
      int64_t fallback,
      int64_t min = INT64_MIN,
      int64_t max = INT64_MAX
  ) const;
  double double_or(std::string_view key, double fallback) const;
  bool bool_or(std::string_view key, bool fallback) const;
  std::string string_or(std::string_view key, std::string fallback) const;

  /// "rope_scaling.factor": the path inside the document.
  const std::string& path() const {
    return path_;
  }
  const std::string& document_name() const;
  /// The value as compact JSON text, cut for messages.
  std::string preview() const;
  /// The underlying value, for those who transform whole documents.
  const nlohmann::ordered_json& raw() const {
    return *value_;
  }

  /// Throws Error(invalid_input): `[name] path: message`.
  [[noreturn]] void reject(const std::string& message) const;

 private:
  struct Document;
  Json(
      std::shared_ptr<const Document> document,
      const nlohmann::ordered_json* value,
      std::string path
  );
  Json child(const nlohmann::ordered_json& value, std::string path) const;

  std::shared_ptr<const Document> document_;
  const nlohmann::ordered_json* value_;
  std::string path_;
};

}  // namespace mlxcel
