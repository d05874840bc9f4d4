// Typed reading of the metadata of a GGUF file.

#include <fmt/format.h>

#include <cmath>

#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/convert/gguf/gguf.h"

namespace mlxcel::convert {

namespace {

const char* type_name(GgufType type) {
  static constexpr const char* names[] = {
      "uint8",
      "int8",
      "uint16",
      "int16",
      "uint32",
      "int32",
      "float32",
      "boolean",
      "a string",
      "an array",
      "uint64",
      "int64",
      "float64",
  };
  return names[static_cast<uint32_t>(type)];
}

bool is_integer(GgufType type) {
  return type != GgufType::float32 && type != GgufType::float64 &&
         type != GgufType::boolean && type != GgufType::string &&
         type != GgufType::array;
}

}  // namespace

const GgufValue* GgufFile::find(std::string_view key) const {
  auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::optional<int64_t> GgufFile::find_int(
    std::string_view key, int64_t min, int64_t max
) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!is_integer(value->type)) {
    reject(
        std::string(key),
        fmt::format("expected an integer, got {}", type_name(value->type))
    );
  }
  int64_t number = 0;
  switch (value->type) {
    case GgufType::uint8:
      number = load_le<uint8_t>(value->data);
      break;
    case GgufType::int8: {
      int8_t small = load_le<int8_t>(value->data);
      number = small;
      break;
    }
    case GgufType::uint16:
      number = load_le<uint16_t>(value->data);
      break;
    case GgufType::int16:
      number = load_le<int16_t>(value->data);
      break;
    case GgufType::uint32:
      number = load_le<uint32_t>(value->data);
      break;
    case GgufType::int32:
      number = load_le<int32_t>(value->data);
      break;
    default:  // 64 bits; an unsigned one above the range turns negative
      number = load_le<int64_t>(value->data);
      if (number < 0 && value->type == GgufType::uint64) {
        number = INT64_MAX;
      }
  }
  if (number < min || number > max) {
    reject(
        std::string(key),
        fmt::format("expected {} to {}, got {}", min, max, number)
    );
  }
  return number;
}

std::optional<double> GgufFile::find_number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (is_integer(value->type)) {
    return static_cast<double>(*find_int(key, INT64_MIN, INT64_MAX));
  }
  double number = 0;
  if (value->type == GgufType::float32) {
    number = load_le<float>(value->data);
  } else if (value->type == GgufType::float64) {
    number = load_le<double>(value->data);
  } else {
    reject(
        std::string(key),
        fmt::format("expected a number, got {}", type_name(value->type))
    );
  }
  if (!std::isfinite(number)) {
    reject(std::string(key), fmt::format("{} is not finite", number));
  }
  return number;
}

std::optional<bool> GgufFile::find_bool(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (value->type != GgufType::boolean) {
    reject(
        std::string(key),
        fmt::format("expected a boolean, got {}", type_name(value->type))
    );
  }
  return load_le<uint8_t>(value->data) != 0;
}

std::optional<std::string> GgufFile::find_string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (value->type != GgufType::string) {
    reject(
        std::string(key),
        fmt::format("expected a string, got {}", type_name(value->type))
    );
  }
  return std::string(value->strings[0]);
}

const GgufValue& GgufFile::array_of(
    std::string_view key, const GgufValue& value, GgufType element
) const {
  if (value.type != GgufType::array || value.element != element) {
    reject(
        std::string(key),
        fmt::format(
            "expected an array of {}, got {}{}",
            type_name(element),
            value.type == GgufType::array ? "an array of " : "",
            type_name(value.element)
        )
    );
  }
  return value;
}

std::span<const std::string_view> GgufFile::strings(std::string_view key
) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return {};
  }
  return array_of(key, *value, GgufType::string).strings;
}

std::vector<int32_t> GgufFile::ints(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return {};
  }
  array_of(key, *value, GgufType::int32);
  std::vector<int32_t> numbers(value->count);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = load_le<int32_t>(value->data + i * sizeof(int32_t));
  }
  return numbers;
}

std::vector<float> GgufFile::floats(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return {};
  }
  array_of(key, *value, GgufType::float32);
  std::vector<float> numbers(value->count);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = load_le<float>(value->data + i * sizeof(float));
  }
  return numbers;
}

std::string_view GgufFile::bytes(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return {};
  }
  array_of(key, *value, GgufType::uint8);
  return {reinterpret_cast<const char*>(value->data), value->count};
}

int64_t GgufFile::need_int(std::string_view key, int64_t min, int64_t max)
    const {
  auto value = find_int(key, min, max);
  if (!value) {
    reject(std::string(key), "missing");
  }
  return *value;
}

double GgufFile::need_number(std::string_view key) const {
  auto value = find_number(key);
  if (!value) {
    reject(std::string(key), "missing");
  }
  return *value;
}

std::string GgufFile::need_string(std::string_view key) const {
  auto value = find_string(key);
  if (!value) {
    reject(std::string(key), "missing");
  }
  return *value;
}

}  // namespace mlxcel::convert
