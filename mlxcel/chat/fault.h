#pragma once

#include <exception>
#include <string>

namespace mlxcel::chat {

/// Why a template stopped, before it is known where: the parser and the
/// interpreter turn it into a TemplateError with line and column.
class Fault : public std::exception {
 public:
  enum class Kind {
    error,     // the template is wrong, or wrong for this conversation
    rejected,  // the template called raise_exception
    limit,     // a limit of TemplateLimits
  };

  Fault(Kind kind, std::string message)
      : kind_(kind), message_(std::move(message)) {}

  Kind kind() const {
    return kind_;
  }
  const std::string& message() const {
    return message_;
  }
  const char* what() const noexcept override {
    return message_.c_str();
  }

 private:
  Kind kind_;
  std::string message_;
};

[[noreturn]] inline void fault(std::string message) {
  throw Fault(Fault::Kind::error, std::move(message));
}
[[noreturn]] inline void limit_fault(std::string message) {
  throw Fault(Fault::Kind::limit, std::move(message));
}

}  // namespace mlxcel::chat
