#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "mlxcel/core/error.h"

namespace mlxcel::apps {

namespace {

std::vector<const CLI::App*> commands(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::string option_words(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_snames()) {
      words += " -" + name;
    }
    for (const std::string& name : option->get_lnames()) {
      words += " --" + name;
    }
  }
  return words.empty() ? words : words.substr(1);
}

// What can be the name of a model of the store.
bool takes_model(const CLI::App& command) {
  return command.get_name() == "rm" ||
         command.get_option_no_throw("--model") != nullptr;
}

std::string command_words(const CLI::App& program) {
  std::string words;
  for (const CLI::App* command : commands(program)) {
    words += (words.empty() ? "" : " ") + command->get_name();
  }
  return words;
}

void print_bash(const CLI::App& program) {
  fmt::print(
      "_mlxcel() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} options= models=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      command_words(program)
  );
  for (const CLI::App* command : commands(program)) {
    std::string names = command->get_name();
    for (const std::string& alias : command->get_aliases()) {
      names += "|" + alias;
    }
    fmt::print(
        "    {}) options=\"{}\"{} ;;\n",
        names,
        option_words(*command),
        takes_model(*command) ? " models=1" : ""
    );
  }
  fmt::print(
      "  esac\n"
      "  case $word in\n"
      "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "      [ -z \"$models\" ] || COMPREPLY+=($(compgen -W \\\n"
      "        \"$(mlxcel list --quiet 2>/dev/null)\" -- \"$word\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _mlxcel mlxcel\n"
  );
}

void print_zsh(const CLI::App& program) {
  fmt::print("#compdef mlxcel\nautoload -U bashcompinit && bashcompinit\n");
  print_bash(program);
}

// Single quotes end a fish string.
std::string fish_text(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += c == '\'' ? std::string("\\'") : std::string(1, c);
  }
  return out;
}

void print_fish(const CLI::App& program) {
  for (const CLI::App* command : commands(program)) {
    fmt::print(
        "complete -c mlxcel -n __fish_use_subcommand -a {} -d '{}'\n",
        command->get_name(),
        fish_text(command->get_description())
    );
    if (takes_model(*command)) {
      fmt::print(
          "complete -c mlxcel -n '__fish_seen_subcommand_from {}' -a "
          "'(mlxcel list --quiet 2>/dev/null)'\n",
          command->get_name()
      );
    }
    for (const CLI::Option* option : command->get_options()) {
      std::string names;
      for (const std::string& name : option->get_snames()) {
        names += " -s " + name;
      }
      for (const std::string& name : option->get_lnames()) {
        names += " -l " + name;
      }
      if (!names.empty()) {
        fmt::print(
            "complete -c mlxcel -n '__fish_seen_subcommand_from {}'{} -d "
            "'{}'\n",
            command->get_name(),
            names,
            fish_text(option->get_description())
        );
      }
    }
  }
}

}  // namespace

void add_completion(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "completion", "Print the completion script of a shell"
  );
  command->footer(
      "Examples:\n"
      "  mlxcel completion bash > "
      "/etc/bash_completion.d/mlxcel\n"
      "  mlxcel completion fish > ~/.config/fish/completions/mlxcel.fish"
  );
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &program] {
    if (*shell == "bash") {
      print_bash(program);
    } else if (*shell == "zsh") {
      print_zsh(program);
    } else {
      print_fish(program);
    }
  });
}

}  // namespace mlxcel::apps
