#include "mlxcel/chat/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/chat/fault.h"

namespace mlxcel::chat {

namespace {

constexpr uint64_t kCheckInterval = 4096;
constexpr uint64_t kMaxItems = uint64_t{1} << 22;

thread_local Budget* active_budget = nullptr;

}  // namespace

Budget::Budget(const TemplateLimits& limits)
    : limits_(limits),
      next_check_(std::min(limits.steps, kCheckInterval)),
      deadline_(
          std::chrono::steady_clock::now() +
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(
              std::chrono::duration<double>(limits.seconds)
          )
      ),
      outer_(active_budget) {
  active_budget = this;
}

Budget::~Budget() {
  active_budget = outer_;
}

Budget* Budget::active() {
  return active_budget;
}

void Budget::check() {
  if (steps_ >= limits_.steps) {
    limit_fault(fmt::format("more than {} steps", limits_.steps));
  }
  if (std::chrono::steady_clock::now() > deadline_) {
    limit_fault(fmt::format("more than {} seconds", limits_.seconds));
  }
  next_check_ = std::min(limits_.steps, steps_ + kCheckInterval);
}

void Budget::allocate(size_t bytes) {
  step(bytes);
  if (bytes > limits_.memory - std::min(memory_, limits_.memory)) {
    limit_fault(fmt::format("more than {} bytes of memory", limits_.memory));
  }
  memory_ += bytes;
}

void check_text_size(uint64_t bytes) {
  Budget* budget = Budget::active();
  if (budget && bytes > budget->limits().text) {
    limit_fault(
        fmt::format("a string of more than {} bytes", budget->limits().text)
    );
  }
}

void check_item_count(uint64_t items) {
  if (items > kMaxItems) {
    limit_fault(fmt::format("a list of more than {} items", kMaxItems));
  }
}

}  // namespace mlxcel::chat
