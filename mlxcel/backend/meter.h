#pragma once

#include <cstdint>

#include "mlxcel/backend/backend.h"

namespace mlxcel::backend {

/// Bytes that a backend holds for a model.
struct MemoryUse {
  uint64_t weights = 0;   // planes that are read in place
  uint64_t prepared = 0;  // copies made at load
  uint64_t steps = 0;     // values and scratch of the steps so far
};

/// A backend that computes nothing and reads no weight, but takes the memory
/// of its twin in account: a model bound to it and run through a step tells
/// what it needs. Weights need a dtype and a shape, no bytes.
class Meter : public Backend {
 public:
  virtual MemoryUse use() const = 0;
};

}  // namespace mlxcel::backend
