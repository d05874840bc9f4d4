#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "apps/inspect_report.h"
#include "apps/options.h"
#include "apps/output.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/lines.h"
#include "mlxcel/engine/engine.h"
#include "mlxcel/loading/load_model.h"
#include "mlxcel/tokenizer/tokenizer.h"

namespace mlxcel::apps {

namespace {

constexpr int64_t kDefaultTokens = 8192;
constexpr uint64_t kTextLimit = uint64_t{1} << 30;

struct InspectOptions {
  ModelOptions model;
  int64_t tokens = kDefaultTokens;
  int64_t batch = 1;
  std::string quant = "default";
  std::string kv_mode = "fp16";
  std::string tokenize;
  bool whole = false;
  bool json = false;
  bool recommend = false;
};

void append_ids(std::string& out, const std::vector<int32_t>& ids) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", ids[i]);
  }
  out += "]\n";
}

// A report for programs asks nobody and says nothing beside itself.
std::string directory_of(const InspectOptions& options) {
  if (!options.json) {
    return model_directory(options.model.model.directory());
  }
  hub::ResolveRequest wanted = options.model.model.request();
  wanted.offline = true;
  return model_directory(hub::resolve(wanted, nullptr).directory);
}

// Ids of the text alone: no special token is added or found in it.
void tokenize(const InspectOptions& options) {
  auto tokenizer = Tokenizer::load(directory_of(options));
  EncodeOptions encoding;
  encoding.add_special = false;
  encoding.find = FindAdded::none;
  std::string text = read_file(options.tokenize, kTextLimit);
  std::string out;
  if (options.whole) {
    append_ids(out, tokenizer->encode(text, encoding));
  } else {
    LineReader lines(text);
    for (std::string_view line; lines.next(line);) {
      append_ids(out, tokenizer->encode(std::string(line), encoding));
    }
  }
  write_output(out);
}

void check_kv_mode(const InspectOptions& options) {
  if (options.kv_mode != "fp16" && options.kv_mode != "f16") {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[inspect] --kv-cache-mode {}: this build keeps keys and values as "
            "fp16 (float32 with --exact) and nothing else",
            quote(options.kv_mode)
        )
    );
  }
}

// A file that is none of a model directory's own.
void refuse_foreign(const std::string& path) {
  if (directory_exists(path)) {
    return;
  }
  std::string what = describe_foreign_file(path);
  if (!what.empty()) {
    fail(ErrorCode::unsupported, "[inspect] " + what);
  }
}

void run(const InspectOptions& options) {
  options.model.model.require();
  check_kv_mode(options);
  if (options.whole && options.tokenize.empty()) {
    fail(
        ErrorCode::usage,
        "[command line] --tokenize-whole needs --tokenize FILE"
    );
  }
  refuse_foreign(options.model.model.text);
  if (!options.tokenize.empty()) {
    tokenize(options);
    return;
  }
  InspectInputs inputs;
  inputs.memory.context = options.tokens;
  inputs.memory.batch = options.batch;
  inputs.memory.chunk = prefill_chunk();
  inputs.memory.backend = options.model.load_options().backend;
  inputs.quant = options.quant;
  inputs.kv_mode = options.model.exact ? "f32" : "fp16";
  Budget budget = memory_budget(memory_facts());
  Inspection inspection = inspect_directory(
      directory_of(options),
      inputs.memory,
      options.recommend ? &budget : nullptr
  );
  write_output(
      options.json ? inspect_json(inspection, inputs, budget)
                   : inspect_text(inspection, inputs, budget)
  );
}

}  // namespace

void add_inspect(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "inspect", "Tell what a checkpoint is and what it would cost to run"
  );
  command->footer(
      "Examples:\n"
      "  mlxcel inspect MODEL\n"
      "  mlxcel inspect -m MODEL -n 32768 --batch 4 --json\n"
      "  mlxcel inspect -m MODEL --tokenize lines.txt\n"
      "Reads config.json and the headers of the shards, never a tensor. Exit "
      "status 0 even if\nthe model does not fit."
  );
  auto options = std::make_shared<InspectOptions>();
  options->model.add_to(*command);
  command
      ->add_option(
          "-n,--max-tokens", options->tokens, "Context to estimate, in tokens"
      )
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--batch", options->batch, "Sequences at a time")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  command
      ->add_option(
          "--quant", options->quant, "A label for the report; changes no figure"
      )
      ->check(CLI::IsMember({"default", "fp16", "int8", "int4"}));
  command->add_option(
      "--kv-cache-mode", options->kv_mode, "fp16, the only one in this build"
  );
  command->add_flag(
      "--recommend-quant",
      options->recommend,
      "Tell which quantisations of the model would fit"
  );
  command->add_flag("--json", options->json, "One JSON object");
  command
      ->add_option(
          "--tokenize",
          options->tokenize,
          "Print the ids of each line of a file instead, one JSON list a line"
      )
      ->type_name("FILE");
  command->add_flag(
      "--tokenize-whole", options->whole, "The ids of the whole file at once"
  );
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
