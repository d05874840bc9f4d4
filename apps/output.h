#pragma once

#include <string_view>

namespace mlxcel::apps {

/// Writes to standard output at once. Throws Error(io) if nobody reads it or
/// its disk is full.
void write_output(std::string_view text);

/// Hands on what is buffered. Throws as write_output().
void flush_output();

}  // namespace mlxcel::apps
