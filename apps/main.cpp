#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/output.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/fault_guard.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

constexpr const char* kExamples = R"(Examples:
  mlxcel download Qwen3-0.6B-4bit              fetch a model into the store
  mlxcel convert SmolLM2.Q4_1.gguf SmolLM2     make a model directory of a GGUF
  mlxcel run SmolLM2                           chat with it
  mlxcel run SmolLM2 -p "Why is the sky blue?" one question, one answer
  echo "Hello" | mlxcel generate -m SmolLM2    the prompt from a pipe
  mlxcel score -m SmolLM2 --text "To be, or not to be"
  mlxcel inspect SmolLM2                       what it is and what it costs
  mlxcel arch                                  what can be opened
  mlxcel list                                  what was downloaded

MODEL is a directory, OWNER/NAME of a repository, or NAME alone, which gets the
default organisation (MLXCEL_DEFAULT_ORG, else mlx-community). A repository is
looked for in ./models/NAME, the Hugging Face cache and the model store, and
downloaded into the store if it is in none.

`mlxcel COMMAND --help` shows a command's options.)";

LogLevel log_level() {
  const char* name = os::environment("MLXCEL_LOG");
  std::string level = name == nullptr ? "" : name;
  if (level == "trace") {
    return LogLevel::trace;
  }
  if (level == "debug") {
    return LogLevel::debug;
  }
  if (level == "info" || os::environment("MLXCEL_PROFILE_TTFT") != nullptr) {
    return LogLevel::info;
  }
  if (level == "error") {
    return LogLevel::error;
  }
  if (level == "off") {
    return LogLevel::off;
  }
  return LogLevel::warning;
}

int report(const char* message, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", message);
  return status;
}

int run(int argc, char** argv) {
  CLI::App program(
      "Opens published model checkpoints and runs them.", "mlxcel"
  );
  program.footer(kExamples);
  program.set_version_flag("--version", version_text());
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  add_run(program);
  add_generate(program);
  add_download(program);
  add_convert(program);
  add_arch(program);
  add_inspect(program);
  add_list(program);
  add_rm(program);
  add_score(program);
  add_template(program);
  add_bench(program);
  add_synth(program);
  add_tokenize(program);
  add_detokenize(program);
  add_completion(program);
  auto named = [&](CLI::App* command) { return command->check_name(argv[1]); };
  if (argc > 1 && argv[1][0] != '-' && program.get_subcommands(named).empty()) {
    fail(
        ErrorCode::usage,
        "[command line] " + quote(argv[1]) +
            " is no command; `mlxcel --help` lists them"
    );
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int status = program.exit(error);
    if (status != 0) {
      return kUsage;
    }
  }
  flush_output();
  return 0;
}

}  // namespace
}  // namespace mlxcel::apps

int main(int argc, char** argv) {
  using namespace mlxcel;
  log_to_stderr(apps::log_level());
  try {
    FaultGuard::install();
    apps::install_interrupt_handler();
    return apps::run(argc, argv);
  } catch (const Error& error) {
    return apps::report(
        error.what(),
        error.code() == ErrorCode::usage ? apps::kUsage : apps::kFailure
    );
  } catch (const std::bad_alloc&) {
    return apps::report("[memory] out of memory", apps::kFailure);
  } catch (const std::exception& error) {
    return apps::report(error.what(), apps::kFailure);
  }
}
