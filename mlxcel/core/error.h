#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace mlxcel {

/// What kind of thing failed; mapped once to an exit or HTTP status.
enum class ErrorCode {
  usage,          // the caller's words are off (exit 2, HTTP 400)
  invalid_input,  // a file or a request breaks its format
  not_found,      // a file, a tensor or a name is missing
  unsupported,    // well formed, but not implemented here
  io,             // the operating system refused
  out_of_memory,  // a request that does not fit
  cancelled,      // the user or the client went away
  internal,       // a fault of this program
};

/// Every failure of the library. The message starts with the thing at fault,
/// e.g. `[config] hidden_size: expected a positive integer, got -3 (in F)`.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  ErrorCode code() const noexcept {
    return code_;
  }
  const std::string& message() const noexcept {
    return message_;
  }
  const char* what() const noexcept override {
    return message_.c_str();
  }

 private:
  ErrorCode code_;
  std::string message_;
};

/// Throws Error(code, message).
[[noreturn]] void fail(ErrorCode code, std::string message);

/// `text` in double quotes, control and invalid bytes escaped, cut after
/// `limit` bytes: how untrusted text appears in a message.
std::string quote(std::string_view text, size_t limit = 80);

}  // namespace mlxcel
