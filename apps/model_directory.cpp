#include "apps/model_directory.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"

namespace mlxcel::apps {

void add_model_directory(CLI::App& command, std::string& model) {
  command
      .add_option(
          "-m,--model",
          model,
          "Directory with the files that are needed, or a file inside one"
      )
      ->required()
      ->type_name("MODEL");
}

std::string model_directory(const std::string& model) {
  if (directory_exists(model)) {
    return model;
  }
  if (!file_exists(model)) {
    fail(
        ErrorCode::not_found,
        fmt::format("[command line] {}: no such directory", model)
    );
  }
  return parent_path(model);
}

}  // namespace mlxcel::apps
