#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace mlxcel::hub {

/// A variable of the environment with another value (null: unset) as long as
/// the object lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) {
      before_ = before;
    }
    set(value);
  }
  Variable(const char* name, const std::string& value)
      : Variable(name, value.c_str()) {}
  ~Variable() {
    set(before_ ? before_->c_str() : nullptr);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    value == nullptr ? unsetenv(name_) : setenv(name_, value, 1);
  }

  const char* name_;
  std::optional<std::string> before_;
};

/// None of the variables that say where models lie, HOME in a folder.
struct OwnHome {
  explicit OwnHome(const std::string& home) : home_variable("HOME", home) {}

  Variable home_variable;
  Variable models{"MLXCEL_MODELS_DIR", nullptr};
  Variable cache{"MLXCEL_CACHE_DIR", nullptr};
  Variable organisation{"MLXCEL_DEFAULT_ORG", nullptr};
  Variable hub_cache{"HF_HUB_CACHE", nullptr};
  Variable hub_home{"HF_HOME", nullptr};
  Variable offline{"MLXCEL_OFFLINE", nullptr};
  Variable server_offline{"LLAMA_ARG_OFFLINE", nullptr};
};

}  // namespace mlxcel::hub
