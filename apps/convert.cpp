#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "apps/convert_flags.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/weights/convert/gguf/convert_gguf.h"

namespace mlxcel::apps {

namespace {

struct ConvertFlags {
  std::string input;
  std::string output;
  convert::ConvertOptions gguf;
  CheckpointFlags checkpoint;
};

[[noreturn]] void refuse(const std::string& flag, const char* what) {
  fail(ErrorCode::usage, fmt::format("[convert] {}: {}", flag, what));
}

void run(const ConvertFlags& flags) {
  if (directory_exists(flags.input)) {
    if (flags.gguf.dense || flags.gguf.tokenizer_only) {
      refuse(
          flags.gguf.dense ? "--dense" : "--tokenizer-only",
          "is for GGUF files; a directory has --dequantize"
      );
    }
    convert_directory(
        flags.input, flags.output, flags.checkpoint, flags.gguf.force
    );
    return;
  }
  if (std::string flag = flags.checkpoint.given(); !flag.empty()) {
    refuse(flag, "is for checkpoint directories, not for GGUF files");
  }
  convert::ConvertReport report =
      convert::convert_gguf(flags.input, flags.output, flags.gguf);
  fmt::print("{}\n", report.describe());
}

}  // namespace

void add_convert(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "convert", "Quantise or dequantise a model, or make one of a GGUF file"
  );
  command->footer(
      "Examples:\n"
      "  mlxcel convert MODEL_DIR model-4bit/ -q\n"
      "  mlxcel convert MODEL_DIR model-mix/ --q-bits 4 --q-layer 'lm_head=8'\n"
      "  mlxcel convert model-4bit/ model-dense/ --dequantize\n"
      "  mlxcel convert model.Q4_1.gguf model/\n"
      "Of GGUF files Q4_0, Q4_1 and Q8_0 keep every value; other types go to "
      "the nearest\naffine width, and the error is reported."
  );
  auto flags = std::make_shared<ConvertFlags>();
  command
      ->add_option("input", flags->input, "Checkpoint directory or GGUF file")
      ->required()
      ->type_name("DIR|FILE");
  command->add_option("output", flags->output, "Directory to write")
      ->required()
      ->type_name("OUT_DIR");
  command->add_flag(
      "--force", flags->gguf.force, "Replace an existing directory"
  );
  flags->checkpoint.add_to(*command);
  command->add_flag("--dense", flags->gguf.dense, "Write unquantised weights")
      ->group("GGUF files");
  command
      ->add_flag(
          "--tokenizer-only",
          flags->gguf.tokenizer_only,
          "Write only the tokenizer's files"
      )
      ->group("GGUF files");
  command->callback([flags] { run(*flags); });
}

}  // namespace mlxcel::apps
