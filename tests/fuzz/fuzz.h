#pragma once

#include <cstdlib>
#include <string_view>

#include "mlxcel/core/error.h"

// What fuzz targets share. A target is fine with an Error and with nothing
// else: any other exception, a signal or a report of a sanitizer is a finding.

namespace mlxcel::fuzz {

/// Ends the program, which libFuzzer takes for a finding.
inline void require(bool fine) {
  if (!fine) {
    std::abort();
  }
}

/// Calls `read`, which may throw an Error.
template <typename Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

inline std::string_view as_text(const unsigned char* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace mlxcel::fuzz
