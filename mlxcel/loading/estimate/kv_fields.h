#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/core/json.h"
#include "mlxcel/loading/estimate/kv_rules.h"

namespace mlxcel::kv {

/// Thrown where a config does not tell enough.
struct Unknown {
  std::string why;
};

[[noreturn]] void unknown(std::string why);

/// Far above any published model.
inline constexpr int64_t kMostWidth = 1 << 24;

/// The fields of a text model's config that say what its layers keep, under
/// the names that families give them. Readers throw Unknown.
class KvFields {
 public:
  KvFields(const Rule& rule, const Json& config)
      : rule_(rule), config_(config) {}

 protected:
  /// The first of the names (separated by spaces) that is there.
  std::optional<int64_t> optional_field(std::string_view names) const;
  /// The same, and it must be there and more than 0.
  int64_t field(std::string_view names) const;
  /// Sets layers_.
  void read_layers();

  int64_t heads() const;
  int64_t kv_heads() const;
  int64_t head_dim() const;
  /// Keys and values of one token in one layer.
  int64_t standard_values() const;
  /// The compressed latent of one token in one layer.
  int64_t latent_values() const;
  /// 0 if there is none.
  int64_t window() const;
  /// One word per layer; empty if the config lists none.
  std::vector<std::string> layer_types() const;
  /// Window of a layer of this type; empty if it keeps nothing per token.
  std::optional<int64_t> window_of(const std::string& type) const;

  const Rule& rule_;
  const Json& config_;
  int64_t layers_ = 0;
};

}  // namespace mlxcel::kv
