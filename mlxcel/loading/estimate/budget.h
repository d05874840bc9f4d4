#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mlxcel {

/// What the environment and the system say of memory.
struct MemoryFacts {
  std::string limit;       // MLXCEL_MEMORY_LIMIT as it is written
  uint64_t available = 0;  // MemAvailable of /proc/meminfo, 0: unknown
  uint64_t total = 0;      // MemTotal, 0: unknown
  std::optional<uint64_t> cgroup_room;  // left under the tightest cgroup limit
};

/// Those of this process.
MemoryFacts memory_facts();

/// How many bytes a model may take, and who says so.
struct Budget {
  uint64_t bytes = 0;  // 0: unknown
  std::string source;
};

/// MLXCEL_MEMORY_LIMIT (bytes, or with K, M or G for powers of 1024; 0 counts
/// as unset), else the memory that is available, else all there is; the latter
/// two at most what the control groups still grant. cli.md 5.
/// Throws Error(usage) for a limit that is no size.
Budget memory_budget(const MemoryFacts& facts);

/// MLXCEL_HEADROOM_FACTOR: what weights and state are multiplied by for the
/// allocator's losses. 1.2 by default; 1 and less switch it off (1.0); what is
/// no positive number is a warning and the default. cli.md 5.
/// Throws Error(usage) if MLXCEL_ACTIVATION_MULT is set, which has no meaning
/// here: activations are computed, not estimated by a factor.
double headroom_factor();

/// A size: "4096", "512M", "1.5G". Empty if it is none.
std::optional<uint64_t> parse_size(std::string_view text);

/// "1.50 GiB", "12.3 MiB".
std::string format_size(uint64_t bytes);

}  // namespace mlxcel
