#include "apps/text_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/lines.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardInput = 0;
constexpr size_t kTextLimit = size_t{1} << 30;

}  // namespace

void TextInput::add_to(CLI::App& command, const std::string& word) {
  CLI::Option* text = command.add_option(
      word, argument, "`-`, or without it and --file: standard input"
  );
  command.add_option("-f,--file", file, "Read it from a file, as it is")
      ->type_name("FILE")
      ->excludes(text);
}

std::string TextInput::name() const {
  if (!file.empty()) {
    return file;
  }
  return argument && *argument != "-" ? "the argument" : "standard input";
}

std::string TextInput::read() const {
  if (!file.empty()) {
    return read_file(file, kTextLimit);
  }
  if (argument && *argument != "-") {
    return *argument;
  }
  if (!argument && os::is_terminal(kStandardInput)) {
    fail(
        ErrorCode::usage,
        "[command line] give a text, --file or `-` for standard input"
    );
  }
  return os::read_stream(kStandardInput, kTextLimit, name());
}

void TextInput::each_line(
    const std::function<void(std::string_view, size_t)>& use
) const {
  if (argument && *argument != "-") {
    fail(
        ErrorCode::usage,
        "[command line] --jsonl reads --file or standard input, no argument"
    );
  }
  std::string all = read();
  LineReader lines(all);
  for (std::string_view line; lines.next(line);) {
    use(line, lines.number());
  }
}

}  // namespace mlxcel::apps
