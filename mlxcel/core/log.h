#pragma once

#include <string>

namespace mlxcel {

enum class LogLevel { trace, debug, info, warning, error, off };

/// Where the library's remarks go. The library itself prints nothing: until a
/// program calls log_to_stderr() (or sets its own sink) they are dropped.
using LogSink = void (*)(LogLevel level, const std::string& message);
void set_log_sink(LogSink sink);
/// Lines on standard error, from `level` on.
void log_to_stderr(LogLevel level);

/// While it lives, remarks of this thread are dropped: for work that is done
/// again in earnest later and would say everything twice.
class LogPause {
 public:
  LogPause();
  ~LogPause();
  LogPause(const LogPause&) = delete;
  LogPause& operator=(const LogPause&) = delete;
};

void log_debug(const std::string& message);
void log_info(const std::string& message);
/// For what the user can ignore; everything else is an Error.
void log_warning(const std::string& message);

}  // namespace mlxcel
