#include "apps/prompt_source.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/utf8.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardInput = 0;
constexpr size_t kPromptLimit = 256 << 20;

std::string checked(std::string text, const std::string& name) {
  if (auto at = find_invalid_utf8(text)) {
    fail(
        ErrorCode::invalid_input,
        fmt::format("[prompt] {}: not valid UTF-8 at byte {}", name, *at)
    );
  }
  return text;
}

// A file or a pipe ends with a newline that nobody means.
std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

}  // namespace

void PromptSource::add_to(CLI::App& command) {
  CLI::Option* argument = command.add_option(
      "-p,--prompt", text, "Prompt; without it and --file, standard input"
  );
  command.add_option("-f,--file", file, "Read the prompt from a file")
      ->type_name("FILE")
      ->excludes(argument);
  command.add_option("--system", system, "System message");
}

std::optional<std::string> PromptSource::read(bool from_pipe) const {
  checked(system, "--system");
  if (text) {
    return checked(*text, "--prompt");
  }
  if (!file.empty()) {
    return without_last_newline(checked(read_file(file, kPromptLimit), file));
  }
  if (from_pipe && !os::is_terminal(kStandardInput)) {
    return without_last_newline(checked(
        os::read_stream(kStandardInput, kPromptLimit, "standard input"),
        "standard input"
    ));
  }
  return std::nullopt;
}

}  // namespace mlxcel::apps
