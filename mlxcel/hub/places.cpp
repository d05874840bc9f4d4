#include "mlxcel/hub/places.h"

#include "mlxcel/core/os.h"

namespace mlxcel::hub {

std::string variable(const char* name) {
  const char* value = os::environment(name);
  std::string text = value == nullptr ? "" : value;
  return text.find_first_not_of(" \t\r\n") == std::string::npos ? "" : text;
}

std::optional<std::string> home_folder() {
  std::string home = variable("HOME");
  while (home.size() > 1 && home.back() == '/') {
    home.pop_back();
  }
  if (home.empty()) {
    return std::nullopt;
  }
  return home;
}

std::optional<std::string> folder_variable(const char* name) {
  std::string path = variable(name);
  if (path.empty()) {
    return std::nullopt;
  }
  auto home = home_folder();
  if (home && (path == "~" || path.starts_with("~/"))) {
    path = *home + path.substr(1);
  }
  return path;
}

std::string contract_home(const std::string& path) {
  auto home = home_folder();
  if (!home || *home == "/" || !path.starts_with(*home)) {
    return path;
  }
  std::string rest = path.substr(home->size());
  return rest.empty() || rest[0] == '/' ? "~" + rest : path;
}

}  // namespace mlxcel::hub
