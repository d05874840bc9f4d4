#include "apps/model_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace mlxcel::apps {

namespace {

constexpr size_t kNameColumns = 40;
constexpr int64_t kMinute = 60;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;
constexpr int64_t kWeek = 7 * kDay;
constexpr int64_t kMonth = 30 * kDay;
constexpr int64_t kYear = 365 * kDay;

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

std::string ago(int64_t count, const char* unit) {
  return fmt::format("{} {}{} ago", count, unit, count == 1 ? "" : "s");
}

}  // namespace

std::string size_words(uint64_t bytes) {
  constexpr double kKibi = 1024;
  double size = static_cast<double>(bytes);
  if (size >= kKibi * kKibi * kKibi) {
    return fmt::format("{:.2f} GiB", size / (kKibi * kKibi * kKibi));
  }
  if (size >= kKibi * kKibi) {
    return fmt::format("{:.1f} MiB", size / (kKibi * kKibi));
  }
  if (size >= kKibi) {
    return fmt::format("{:.1f} KiB", size / kKibi);
  }
  return fmt::format("{} B", bytes);
}

std::string age_words(std::optional<int64_t> then, int64_t now) {
  if (!then) {
    return "-";
  }
  int64_t age = now - *then;
  if (age < kMinute) {
    return "just now";
  }
  if (age < kHour) {
    return fmt::format("{} min ago", age / kMinute);
  }
  if (age < kDay) {
    return ago(age / kHour, "hour");
  }
  if (age < kWeek) {
    return ago(age / kDay, "day");
  }
  if (age < 4 * kWeek) {
    return ago(age / kWeek, "week");
  }
  if (age < kYear) {
    return ago(std::max<int64_t>(age / kMonth, 1), "month");
  }
  return ago(age / kYear, "year");
}

size_t columns(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), begins_character)
  );
}

std::string shortened(const std::string& text) {
  if (columns(text) <= kNameColumns) {
    return text;
  }
  std::string out;
  size_t characters = 0;
  for (char c : text) {
    characters += begins_character(c) ? 1 : 0;
    if (characters == kNameColumns) {
      break;
    }
    out += c;
  }
  return out + "…";
}

}  // namespace mlxcel::apps
