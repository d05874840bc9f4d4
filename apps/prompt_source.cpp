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

// A file or a pipe ends with a newline that nobody means.
std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

}  // namespace

std::string checked_text(std::string text, const std::string& name) {
  auto refuse = [&](const std::string& why) {
    fail(ErrorCode::invalid_input, fmt::format("[prompt] {}: {}", name, why));
  };
  if (text.empty()) {
    refuse("it is empty");
  }
  if (auto at = find_invalid_utf8(text)) {
    refuse(fmt::format("not valid UTF-8 at byte {}", *at));
  }
  if (size_t at = text.find('\0'); at != std::string::npos) {
    refuse(fmt::format("a NUL byte at byte {}", at));
  }
  return text;
}

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
  if (!system.empty()) {
    checked_text(system, "--system");
  }
  if (text) {
    return checked_text(*text, "--prompt");
  }
  if (!file.empty()) {
    return checked_text(
        without_last_newline(read_file(file, kPromptLimit)), file
    );
  }
  if (from_pipe && !os::is_terminal(kStandardInput)) {
    constexpr const char* kName = "standard input";
    return checked_text(
        without_last_newline(
            os::read_stream(kStandardInput, kPromptLimit, kName)
        ),
        kName
    );
  }
  return std::nullopt;
}

}  // namespace mlxcel::apps
