#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/npy.h"
#include "apps/options.h"
#include "apps/prompt_source.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/engine/score.h"

namespace mlxcel::apps {

namespace {

constexpr uint64_t kTextLimit = 1 << 30;

struct ScoreOptions {
  ModelOptions model;
  std::string text;
  std::string file;
  std::vector<int32_t> tokens;
  std::vector<int64_t> chunks;
  std::string logits;
  int64_t top = 0;
  int64_t context = 0;
  bool json = false;
};

std::vector<int32_t> tokens_to_score(
    const ScoreOptions& options, const Checkpoint& checkpoint
) {
  if (!options.tokens.empty()) {
    return options.tokens;
  }
  std::string text =
      options.file.empty()
          ? checked_text(options.text, "--text")
          : checked_text(read_file(options.file, kTextLimit), options.file);
  return checkpoint.tokenizer->encode(text, {});
}

// A token's text for people: JSON's escapes, bytes that are no text replaced.
std::string show(const Checkpoint& checkpoint, int32_t id) {
  if (!checkpoint.tokenizer) {
    return "";
  }
  std::string text = checkpoint.tokenizer->decode({&id, 1}, false);
  using Dump = nlohmann::json::error_handler_t;
  return nlohmann::json(text).dump(-1, ' ', false, Dump::replace);
}

void print_text(
    const Checkpoint& checkpoint, int32_t first, const ScoreResult& result
) {
  fmt::print("{:>8} {:>12}  {}\n", "token", "log p", "text");
  fmt::print("{:>8} {:>12}  {}\n", first, "-", show(checkpoint, first));
  for (const TokenScore& score : result.scores) {
    fmt::print(
        "{:>8} {:>12.6f}  {}\n",
        score.token,
        score.log_probability,
        show(checkpoint, score.token)
    );
  }
  for (size_t i = 0; i < result.alternatives.size(); ++i) {
    fmt::print("after position {}:", i);
    for (const TokenScore& best : result.alternatives[i]) {
      fmt::print(" {}:{:.6f}", best.token, best.log_probability);
    }
    fmt::print("\n");
  }
  fmt::print(
      "perplexity {:.6f} over {} tokens ({:.1f} tokens/s)\n",
      result.perplexity(),
      result.scores.size(),
      static_cast<double>(result.scores.size() + 1) / result.seconds
  );
}

void print_json(const std::vector<int32_t>& tokens, const ScoreResult& result) {
  nlohmann::ordered_json out;
  out["tokens"] = tokens;
  out["logprobs"] = nlohmann::ordered_json::array();
  for (const TokenScore& score : result.scores) {
    out["logprobs"].push_back(score.log_probability);
  }
  if (!result.alternatives.empty()) {
    out["top"] = nlohmann::ordered_json::array();
    for (const auto& position : result.alternatives) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const TokenScore& best : position) {
        list.push_back(
            {{"token", best.token}, {"logprob", best.log_probability}}
        );
      }
      out["top"].push_back(std::move(list));
    }
  }
  out["perplexity"] = result.perplexity();
  out["vocabulary"] = result.vocabulary;
  out["seconds"] = result.seconds;
  fmt::print("{}\n", out.dump());
}

void run(const ScoreOptions& options) {
  int sources = (options.text.empty() ? 0 : 1) +
                (options.file.empty() ? 0 : 1) +
                (options.tokens.empty() ? 0 : 1);
  if (sources != 1) {
    fail(
        ErrorCode::usage,
        "[score] give exactly one of --text, --tokens and --file, not empty"
    );
  }
  std::string directory = options.model.model.directory();
  LoadOptions load = options.model.load_options();
  load.tokenizer = options.tokens.empty();
  Checkpoint checkpoint = load_model(directory, load);
  std::vector<int32_t> tokens = tokens_to_score(options, checkpoint);
  int64_t context = resolve_context(checkpoint, options.context);
  if (static_cast<int64_t>(tokens.size()) > context) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[score] {} tokens, the context holds {}", tokens.size(), context
        )
    );
  }
  Engine engine(*checkpoint.model.model, static_cast<int64_t>(tokens.size()));
  ScoreParams params;
  params.chunks = options.chunks;
  params.keep_logits = !options.logits.empty();
  params.top = options.top;
  ScoreResult result = score(engine, tokens, params);
  if (params.keep_logits) {
    write_npy(
        options.logits,
        result.logits,
        static_cast<int64_t>(tokens.size()),
        result.vocabulary
    );
  }
  options.json ? print_json(tokens, result)
               : print_text(checkpoint, tokens.front(), result);
}

}  // namespace

void add_score(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "score", "Log-probabilities and perplexity of a text or of tokens"
  );
  command->footer(
      "Examples:\n"
      "  mlxcel score -m MODEL --text \"To be, or not to be\"\n"
      "  mlxcel score -m MODEL --tokens 1,2,3 --chunks 2,1 --logits out.npy\n"
      "Exact arithmetic is the default here; --no-exact turns it off."
  );
  auto options = std::make_shared<ScoreOptions>();
  options->model.exact = true;
  options->model.add_to(*command);
  command->add_option("--text", options->text, "Text to score");
  command->add_option("--file", options->file, "File with the text to score");
  command
      ->add_option(
          "--tokens",
          options->tokens,
          "Ids as they are: nothing is added and no tokenizer is needed"
      )
      ->delimiter(',');
  command
      ->add_option(
          "--chunks",
          options->chunks,
          "Pieces in which tokens are fed, e.g. 24,1,1; the last repeats"
      )
      ->delimiter(',');
  command
      ->add_option("--top-k", options->top, "Most probable tokens per position")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
  command->add_option(
      "--logits", options->logits, "Write float32 logits [T, V] as .npy"
  );
  command->add_option("-c,--ctx-size", options->context, "Context in tokens");
  command->add_flag("--json", options->json, "One JSON object");
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
