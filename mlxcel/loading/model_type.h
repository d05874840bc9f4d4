#pragma once

namespace mlxcel {

/// Every architecture that is registered. The registry (loading/registry.h)
/// has exactly one descriptor for each.
enum class ModelType {
  llama,
  qwen2,
  qwen3,
  gemma,
  count,  // not a type: how many there are
};

}  // namespace mlxcel
