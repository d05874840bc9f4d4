#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/options.h"
#include "apps/output.h"
#include "apps/text_input.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/tokenizer/tokenizer.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardOutput = 1;
constexpr size_t kBuffer = 1 << 16;

struct DetokenizeOptions {
  ModelReference model;
  TextInput input;
  bool lines = false;
  bool skip_special = false;
};

std::vector<int32_t> ids_of_json(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list.elements()) {
    ids.push_back(static_cast<int32_t>(id.as_int(0, INT32_MAX)));
  }
  return ids;
}

// "[1, 2]", "1,2" or "1 2".
std::vector<int32_t> parse_ids(
    const std::string& text, const std::string& name
) {
  size_t start = text.find_first_not_of(" \t\r\n");
  if (start == text.npos) {
    return {};
  }
  if (text[start] == '[') {
    return ids_of_json(Json::parse(text, name));
  }
  std::vector<int32_t> ids;
  constexpr const char* kBetween = ", \t\r\n";
  for (size_t at = start; at != text.npos;) {
    size_t end = text.find_first_of(kBetween, at);
    std::string word = text.substr(at, end - at);
    auto id = parse_int(word);
    if (!id || *id < 0 || *id > INT32_MAX) {
      fail(
          ErrorCode::invalid_input,
          fmt::format("[detokenize] {}: {} is no id", name, quote(word))
      );
    }
    ids.push_back(static_cast<int32_t>(*id));
    at = text.find_first_not_of(kBetween, end);
  }
  return ids;
}

void run_lines(const Tokenizer& tokenizer, const DetokenizeOptions& options) {
  std::string out;
  options.input.each_line([&](std::string_view line, size_t number) {
    Json list = Json::parse(
        line, fmt::format("{}, line {}", options.input.name(), number)
    );
    std::string text =
        tokenizer.decode(ids_of_json(list), options.skip_special);
    out += nlohmann::json(text).dump();
    out += '\n';
    if (out.size() >= kBuffer) {
      write_output(out);
      out.clear();
    }
  });
  write_output(out);
}

void run(const DetokenizeOptions& options) {
  auto tokenizer = Tokenizer::load(options.model.directory());
  if (options.lines) {
    run_lines(*tokenizer, options);
    return;
  }
  std::vector<int32_t> ids =
      parse_ids(options.input.read(), options.input.name());
  std::string text = tokenizer->decode(ids, options.skip_special);
  write_output(os::is_terminal(kStandardOutput) ? text + "\n" : text);
}

}  // namespace

void add_detokenize(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("detokenize", "Show the text of tokens");
  command->footer(
      "Examples:\n"
      "  mlxcel detokenize -m MODEL 19556,28,905\n"
      "  mlxcel tokenize -m MODEL --ids Hello | mlxcel detokenize -m MODEL\n"
      "  mlxcel detokenize -m MODEL --jsonl < ids.jsonl > texts.jsonl\n"
      "A terminal gets a newline after the text; nothing else does."
  );
  auto options = std::make_shared<DetokenizeOptions>();
  options->model.add_to(*command, "-m,--model");
  options->input.add_to(*command, "IDS");
  command->add_flag(
      "--jsonl",
      options->lines,
      "Each line of the input is a JSON list of ids, each of the output its "
      "text as a JSON string"
  );
  command->add_flag(
      "--skip-special", options->skip_special, "Leave special tokens out"
  );
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
