#include "mlxcel/core/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

namespace mlxcel {

namespace {

std::atomic<LogSink> current_sink = nullptr;
thread_local int pauses = 0;

void emit(LogLevel level, const std::string& message) {
  LogSink sink = current_sink.load(std::memory_order_acquire);
  if (sink != nullptr && pauses == 0) {
    sink(level, message);
  }
}

spdlog::logger& stderr_logger() {
  static spdlog::logger logger(
      "mlxcel", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()
  );
  return logger;
}

void to_spdlog(LogLevel level, const std::string& message) {
  stderr_logger().log(
      static_cast<spdlog::level::level_enum>(level),
      spdlog::string_view_t(message)
  );
}

}  // namespace

void set_log_sink(LogSink sink) {
  current_sink.store(sink, std::memory_order_release);
}

void log_to_stderr(LogLevel level) {
  int index = static_cast<int>(level) + (level == LogLevel::off ? 1 : 0);
  stderr_logger().set_pattern("%^%l%$: %v");
  stderr_logger().set_level(static_cast<spdlog::level::level_enum>(index));
  set_log_sink(&to_spdlog);
}

LogPause::LogPause() {
  ++pauses;
}
LogPause::~LogPause() {
  --pauses;
}

void log_debug(const std::string& message) {
  emit(LogLevel::debug, message);
}
void log_info(const std::string& message) {
  emit(LogLevel::info, message);
}
void log_warning(const std::string& message) {
  emit(LogLevel::warning, message);
}

}  // namespace mlxcel
