#include "mlxcel/engine/stop_strings.h"

#include <algorithm>
#include <utility>

#include "mlxcel/core/error.h"

namespace mlxcel {

namespace {

constexpr size_t kMaxStops = 256;

// Length of the longest suffix of `text` that is a proper prefix of `stop`.
size_t pending(const std::string& text, const std::string& stop) {
  size_t longest = std::min(text.size(), stop.size() - 1);
  for (size_t length = longest; length > 0; --length) {
    if (text.compare(text.size() - length, length, stop, 0, length) == 0) {
      return length;
    }
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops)
    : stops_(std::move(stops)) {
  if (stops_.size() > kMaxStops) {
    fail(
        ErrorCode::usage,
        "[sampling] stop: at most " + std::to_string(kMaxStops) +
            " stop strings are allowed"
    );
  }
  for (const std::string& stop : stops_) {
    if (stop.empty()) {
      fail(ErrorCode::usage, "[sampling] stop: an empty stop string");
    }
  }
}

std::string StopStrings::push(const std::string& text) {
  if (stopped_) {
    return "";
  }
  held_ += text;
  size_t match = std::string::npos;
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    match = std::min(match, held_.find(stop));
    keep = std::max(keep, pending(held_, stop));
  }
  std::string out;
  if (match != std::string::npos) {
    stopped_ = true;
    out = held_.substr(0, match);
    held_.clear();
  } else {
    out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
  }
  return out;
}

std::string StopStrings::flush() {
  return std::exchange(held_, "");
}

}  // namespace mlxcel
