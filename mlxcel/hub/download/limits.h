#pragma once

#include <cstddef>
#include <cstdint>

namespace mlxcel::hub {

/// What a hub may make a download cost.
struct DownloadLimits {
  double connect_seconds = 10;
  /// A connection that brings fewer than `stall_bytes` a second, over this
  /// long, is given up.
  double stall_seconds = 30;
  long stall_bytes = 64;
  /// A request whose answer is kept in memory may take this long.
  double answer_seconds = 120;

  /// Tries that brought no byte, one after the other.
  int tries = 6;
  /// Pause before the second try; it doubles with each, up to the longest.
  double first_pause = 0.5;
  double longest_pause = 16;
  /// A hub that asks for more patience than this is an error.
  double longest_asked_pause = 120;
  int redirects = 8;

  size_t header_bytes = 256 << 10;
  size_t metadata_bytes = 8 << 20;
  size_t listed_files = 16384;
  size_t selected_files = 8192;
  size_t name_bytes = 512;
  uint64_t extra_certificate_bytes = 1 << 20;

  /// Files fetched at the same time.
  size_t parallel = 8;
  /// Temporary files of other downloads are removed at this age.
  double stale_seconds = 3600;
};

}  // namespace mlxcel::hub
