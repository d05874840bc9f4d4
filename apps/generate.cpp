#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/chat_session.h"
#include "apps/command.h"
#include "apps/output.h"
#include "apps/prompt_source.h"
#include "apps/repl.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardOutput = 1;
// What `run` takes without a model.
constexpr const char* kDefaultModel = "mlx-community/gemma-4-e2b-it-4bit";

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  PromptSource prompt;
  Preflight preflight;
  bool no_chat_template = false;
  bool profile = false;
};

void print_profile(FILE* to, const GenerateResult& result) {
  fmt::print(
      to,
      "phase      tokens   seconds     tok/s\n"
      "prefill  {:8} {:9.3f} {:9.2f}\n"
      "decode   {:8} {:9.3f} {:9.2f}\n",
      result.prompt_tokens,
      result.prompt_seconds,
      result.prompt_speed(),
      result.tokens.empty() ? 0 : result.tokens.size() - 1,
      result.decode_seconds,
      result.decode_speed()
  );
}

std::vector<ChatMessage> first_turn(
    const Options& options, const std::optional<std::string>& prompt
) {
  if (!prompt) {
    return {};
  }
  std::vector<ChatMessage> conversation = opening(options.prompt.system);
  conversation.push_back({"user", *prompt});
  return conversation;
}

// On a terminal everything goes to standard output; otherwise that carries the
// reply alone, and the rest goes to standard error.
void answer(
    ChatSession& session,
    const Options& options,
    const std::vector<ChatMessage>& conversation
) {
  FILE* status = os::is_terminal(kStandardOutput) ? stdout : stderr;
  fmt::print(status, "{}\n", describe_load(session));
  if (options.sampling.max_tokens < 0) {
    fmt::print(status, "at most {} tokens in all\n", session.params().context);
  }
  std::fflush(status);
  GenerateResult result = session.reply(conversation, &write_output);
  write_output("\n");
  if (options.profile) {
    print_profile(status, result);
  } else {
    fmt::print(status, "{}\n", describe_speed(result));
  }
}

void run(const Options& options, bool from_pipe) {
  options.model.model.require();
  std::optional<std::string> prompt = options.prompt.read(from_pipe);
  std::string directory = options.model.model.directory();
  std::vector<ChatMessage> first = first_turn(options, prompt);
  ChatSession session(
      directory,
      options.model,
      options.sampling,
      !options.no_chat_template,
      options.preflight,
      first
  );
  if (session.estimate()) {
    fmt::print(stderr, "{}\n", compare_with_resident(*session.estimate()));
  }
  if (prompt) {
    answer(session, options, first);
  } else {
    chat_loop(session, options.prompt.system);
  }
}

std::shared_ptr<Options> add_options(CLI::App& command) {
  auto options = std::make_shared<Options>();
  options->model.add_to(command);
  options->prompt.add_to(command);
  options->sampling.add_to(command);
  options->preflight.add_to(command);
  command.add_flag(
      "--no-chat-template", options->no_chat_template, "Feed the text as it is"
  );
  command.add_flag(
      "--profile", options->profile, "A table of prefill and decode times"
  );
  return options;
}

}  // namespace

void add_generate(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "generate", "Answer one prompt (from an argument, a file or a pipe)"
  );
  command->alias("gen");
  command->footer(
      "Examples:\n"
      "  mlxcel generate -m MODEL -p \"Once upon a time\" -n 100\n"
      "  mlxcel generate -m MODEL -f question.txt --temp 0.7 --seed 1\n"
      "  echo \"Hello\" | mlxcel generate -m MODEL > reply.txt\n"
      "Without a prompt, on a terminal, it chats."
  );
  auto options = add_options(*command);
  command->callback([options] { run(*options, true); });
}

void add_run(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("run", "Chat with a model, or ask it once");
  command->footer(
      "Examples:\n"
      "  mlxcel run MODEL\n"
      "  mlxcel run mlx-community/Qwen3-0.6B-4bit\n"
      "  mlxcel run MODEL -p \"What is the capital of France?\"\n"
      "  mlxcel run MODEL --system \"Answer in French.\" --temp 0.7\n"
      "MODEL is a directory, OWNER/NAME, or NAME of the default organisation "
      "(see\n`mlxcel --help`); without it " +
      std::string(kDefaultModel) + "."
  );
  auto options = add_options(*command);
  command->callback([options] {
    ModelReference& reference = options->model.model;
    if (reference.text.empty()) {
      reference.text = kDefaultModel;
      fmt::print(stderr, "No model given: {}\n", kDefaultModel);
    }
    run(*options, false);
  });
}

}  // namespace mlxcel::apps
