#pragma once

#include <cstddef>
#include <cstdint>

namespace mlxcel::test {

/// While one lives, allocations by operator new of at least `size` bytes on any
/// thread fail after the first `allowed`: the next one alone, or all.
class FailingNew {
 public:
  enum class Which { next, all };
  FailingNew(int64_t allowed, Which which, size_t size);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;

  /// Whether one has failed.
  static bool failed();
};

}  // namespace mlxcel::test
