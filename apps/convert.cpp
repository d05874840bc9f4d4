#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "mlxcel/weights/convert/convert.h"

namespace mlxcel::apps {

void add_convert(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "convert", "Make a model directory of a GGUF file"
  );
  command->footer(
      "Example:\n  mlxcel convert model.Q4_1.gguf model/\n"
      "Q4_0, Q4_1 and Q8_0 keep every value; other types go to the nearest "
      "affine\nwidth, and the error is reported."
  );
  struct Options {
    std::string input;
    std::string output;
    convert::ConvertOptions convert;
  };
  auto options = std::make_shared<Options>();
  command->add_option("input", options->input, "GGUF file")
      ->required()
      ->type_name("FILE");
  command->add_option("output", options->output, "Directory to write")
      ->required()
      ->type_name("OUT_DIR");
  command->add_flag(
      "--dense", options->convert.dense, "Write unquantised weights"
  );
  command->add_flag(
      "--force", options->convert.force, "Replace an existing directory"
  );
  command->add_flag(
      "--tokenizer-only",
      options->convert.tokenizer_only,
      "Write only the tokenizer's files"
  );
  command->callback([options] {
    convert::ConvertReport report = convert::convert_gguf(
        options->input, options->output, options->convert
    );
    fmt::print("{}\n", report.describe());
  });
}

}  // namespace mlxcel::apps
