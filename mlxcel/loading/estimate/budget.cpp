#include "mlxcel/loading/estimate/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

namespace mlxcel {

namespace {

constexpr const char* kLimit = "MLXCEL_MEMORY_LIMIT";
constexpr const char* kFactor = "MLXCEL_HEADROOM_FACTOR";
constexpr const char* kMultiplier = "MLXCEL_ACTIVATION_MULT";
constexpr double kDefaultFactor = 1.2;

std::string variable(const char* name) {
  const char* value = os::environment(name);
  return value == nullptr ? "" : value;
}

}  // namespace

MemoryFacts memory_facts() {
  return {
      variable(kLimit),
      os::available_memory(),
      os::total_memory(),
      os::cgroup_memory_room(),
  };
}

std::optional<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  double unit = 1;
  if (!text.empty()) {
    char last = static_cast<char>(text.back() & ~0x20);
    size_t at = kUnits.find(last);
    if (at != std::string_view::npos) {
      unit = static_cast<double>(uint64_t{1} << (10 * (at + 1)));
      text.remove_suffix(1);
    }
  }
  bool plain = !text.empty() &&
               text.find_first_not_of("0123456789.") == std::string_view::npos;
  auto value = plain ? parse_double(text) : std::nullopt;
  constexpr double kMost = static_cast<double>(uint64_t{1} << 60);
  if (!value || !(*value >= 0) || *value * unit > kMost) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(*value * unit);
}

std::string format_size(uint64_t bytes) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  if (bytes >= kGiB) {
    return fmt::format(
        "{:.2f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB)
    );
  }
  return fmt::format(
      "{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMiB)
  );
}

Budget memory_budget(const MemoryFacts& facts) {
  if (!facts.limit.empty()) {
    auto limit = parse_size(facts.limit);
    if (!limit) {
      fail(
          ErrorCode::usage,
          fmt::format(
              "{}: expected bytes, or a number with K, M or G, got {}",
              kLimit,
              quote(facts.limit)
          )
      );
    }
    if (*limit > 0) {
      return {*limit, kLimit};
    }
  }
  Budget budget{facts.available, "MemAvailable"};
  if (budget.bytes == 0) {
    budget = {facts.total, "MemTotal"};
  }
  if (facts.cgroup_room &&
      (budget.bytes == 0 || *facts.cgroup_room < budget.bytes)) {
    // A group that has nothing left is known to have nothing.
    budget = {
        std::max<uint64_t>(*facts.cgroup_room, 1),
        "limit of the control group"};
  }
  if (budget.bytes == 0) {
    budget.source = "unknown";
  }
  return budget;
}

double headroom_factor() {
  if (!variable(kMultiplier).empty()) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "{}: not supported: activations are computed from the steps that "
            "the engine runs, not estimated by a factor; unset it",
            kMultiplier
        )
    );
  }
  std::string text = variable(kFactor);
  if (text.empty()) {
    return kDefaultFactor;
  }
  auto value = parse_double(text);
  if (!value || !std::isfinite(*value) || *value <= 0) {
    log_warning(fmt::format(
        "{}: expected a positive number, got {}; using {}",
        kFactor,
        quote(text),
        kDefaultFactor
    ));
    return kDefaultFactor;
  }
  return std::max(1.0, *value);
}

}  // namespace mlxcel
