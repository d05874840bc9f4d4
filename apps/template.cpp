#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/options.h"
#include "apps/output.h"
#include "mlxcel/chat/conversation.h"
#include "mlxcel/chat/template.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardInput = 0;
constexpr uint64_t kInputLimit = uint64_t{256} << 20;

struct TemplateOptions {
  ModelReference model;
  std::string messages;
  std::string tools;
  std::string documents;
  std::string source;
  std::string name;
  std::vector<std::string> kwargs;
  bool no_generation_prompt = false;
  bool continue_final_message = false;
  std::string thinking;
};

Json read_json(const std::string& file) {
  if (file != "-") {
    return Json::parse_file(file, kInputLimit);
  }
  constexpr const char* kName = "standard input";
  return Json::parse(
      os::read_stream(kStandardInput, kInputLimit, kName), kName
  );
}

// What a file of messages, tools or documents must be.
Json read_objects(const std::string& file, const char* field) {
  Json list = read_json(file);
  auto reject = [&](const std::string& where, const Json& got) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[template] {}: {}: expected {}, got {}",
            list.document_name(),
            where,
            where == field ? "a list of objects" : "an object",
            got.preview()
        )
    );
  };
  if (!list.is_array()) {
    reject(field, list);
  }
  for (const Json& item : list.elements()) {
    if (!item.is_object()) {
      reject(field + item.path(), item);
    }
  }
  return list;
}

// Several objects count as one; the last of equal names wins.
std::optional<Json> merged_kwargs(const std::vector<std::string>& texts) {
  constexpr const char* kName = "--chat-template-kwargs";
  if (texts.empty()) {
    return std::nullopt;
  }
  auto all = nlohmann::ordered_json::object();
  try {
    for (const std::string& text : texts) {
      for (const auto& [name, value] : Json::parse(text, kName).items()) {
        all[name] = value.raw();
      }
    }
  } catch (const Error& error) {
    fail(ErrorCode::usage, error.message());
  }
  return Json::from(std::move(all), kName);
}

std::optional<ChatTemplate> find_template(const TemplateOptions& options) {
  if (options.source.empty()) {
    return ChatTemplate::load(options.model.directory());
  }
  std::string directory =
      options.model.text.empty() ? "" : options.model.directory();
  return ChatTemplate::load_file(options.source, directory);
}

RenderInput render_input(const TemplateOptions& options) {
  RenderInput input(read_objects(options.messages, "messages"));
  if (input.messages.size() == 0) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[template] {}: messages: the conversation is empty",
            input.messages.document_name()
        )
    );
  }
  if (!options.tools.empty()) {
    input.tools = read_objects(options.tools, "tools");
  }
  if (!options.documents.empty()) {
    input.documents = read_objects(options.documents, "documents");
  }
  input.kwargs = merged_kwargs(options.kwargs);
  input.continue_final_message = options.continue_final_message;
  input.add_generation_prompt =
      !options.no_generation_prompt && !options.continue_final_message;
  if (!options.thinking.empty()) {
    input.enable_thinking = options.thinking == "on";
  }
  if (!options.name.empty()) {
    input.template_name = options.name;
  }
  return input;
}

void run(const TemplateOptions& options) {
  if (options.model.text.empty() && options.source.empty()) {
    fail(
        ErrorCode::usage,
        "[command line] no model: give -m MODEL or --chat-template FILE"
    );
  }
  auto found = find_template(options);
  RenderInput input = render_input(options);
  if (!found) {
    std::string text = plain_prompt(input);
    fmt::print(
        stderr,
        "note: the model has no chat template (a base model); it is given "
        "User: and Assistant: lines\n"
    );
    write_output(text);
    return;
  }
  std::string text;
  try {
    text = found->render(input);
  } catch (const TemplateError& error) {
    // The conversation is at fault, not the command line.
    fail(ErrorCode::invalid_input, error.message());
  }
  write_output(text);
}

}  // namespace

void add_template(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "template", "The prompt that a chat template makes of messages"
  );
  command->footer(
      "Examples:\n"
      "  mlxcel template -m MODEL --messages talk.json --tools tools.json\n"
      "  echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' |\n"
      "    mlxcel template -m MODEL --messages - --enable-thinking off\n"
      "Prints the prompt and nothing else, no line end either. Of MODEL only "
      "the\nfiles of the chat template are read."
  );
  auto options = std::make_shared<TemplateOptions>();
  options->model.add_to(*command, "-m,--model,model");
  auto file = [&](const char* flag, std::string& value, const char* text) {
    return command->add_option(flag, value, text)->type_name("FILE");
  };
  file(
      "--messages",
      options->messages,
      "JSON list of messages; - reads standard input"
  )
      ->required();
  file("--tools", options->tools, "JSON list of tools");
  file("--documents", options->documents, "JSON list of documents");
  file(
      "--chat-template",
      options->source,
      "Template to use instead of the model's; MODEL may be absent then"
  );
  command
      ->add_option(
          "--chat-template-name",
          options->name,
          "Which of several templates; default: tool_use with tools, else "
          "default"
      )
      ->type_name("NAME");
  command
      ->add_option(
          "--chat-template-kwargs",
          options->kwargs,
          "JSON object of further variables; may be repeated"
      )
      ->type_name("JSON")
      ->allow_extra_args(false);
  command->add_flag(
      "--no-generation-prompt",
      options->no_generation_prompt,
      "End after the last message"
  );
  command->add_flag(
      "--continue-final-message",
      options->continue_final_message,
      "End inside the last message, for the model to go on with"
  );
  command
      ->add_option(
          "--enable-thinking",
          options->thinking,
          "on or off; default: the template's own"
      )
      ->check(CLI::IsMember({"on", "off"}));
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
