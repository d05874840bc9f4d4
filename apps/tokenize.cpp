#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/options.h"
#include "apps/output.h"
#include "apps/text_input.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/tokenizer.h"

namespace mlxcel::apps {

namespace {

constexpr size_t kBuffer = 1 << 16;

struct TokenizeOptions {
  ModelReference model;
  TextInput input;
  bool ids = false;
  bool json = false;
  bool lines = false;
  bool no_special = false;
  bool plain = false;

  EncodeOptions encoding() const {
    EncodeOptions options;
    options.add_special = !no_special;
    options.find = plain ? FindAdded::none : FindAdded::all;
    return options;
  }
};

/// Collects output and writes it in large pieces.
struct Buffer {
  std::string text;

  void flush_if_full() {
    if (text.size() >= kBuffer) {
      flush();
    }
  }
  void flush() {
    write_output(text);
    text.clear();
  }
};

void append_ids(std::string& out, const std::vector<int32_t>& ids) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ", ", ids[i]);
  }
  out += ']';
}

// A vocabulary may hold bytes that are no text.
std::string quoted_piece(const std::string& piece) {
  using Dump = nlohmann::json::error_handler_t;
  return nlohmann::json(piece).dump(-1, ' ', false, Dump::replace);
}

void print_table(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Buffer out;
  for (int32_t id : ids) {
    fmt::format_to(
        std::back_inserter(out.text),
        "{:>8}  {}\n",
        id,
        quoted_piece(tokenizer.id_to_token(id))
    );
    out.flush_if_full();
  }
  out.flush();
}

void print_json(
    const Tokenizer& tokenizer,
    const std::string& text,
    const EncodeOptions& options
) {
  Encoding encoding = tokenizer.encode_with_offsets(text, options);
  std::vector<ByteRange> spans = character_offsets(text, encoding.offsets);
  Buffer out;
  out.text = "{\"ids\": ";
  append_ids(out.text, encoding.ids);
  out.text += ", \"pieces\": [";
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    out.text += i == 0 ? "" : ", ";
    out.text += quoted_piece(tokenizer.id_to_token(encoding.ids[i]));
    out.flush_if_full();
  }
  out.text += "], \"offsets\": [";
  for (size_t i = 0; i < spans.size(); ++i) {
    fmt::format_to(
        std::back_inserter(out.text),
        "{}[{}, {}]",
        i == 0 ? "" : ", ",
        spans[i].begin,
        spans[i].end
    );
    out.flush_if_full();
  }
  out.text += "]}\n";
  out.flush();
}

void run_lines(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  Buffer out;
  options.input.each_line([&](std::string_view line, size_t number) {
    Json text = Json::parse(
        line, fmt::format("{}, line {}", options.input.name(), number)
    );
    append_ids(
        out.text, tokenizer.encode(text.as_string(), options.encoding())
    );
    out.text += '\n';
    out.flush_if_full();
  });
  out.flush();
}

void run(const TokenizeOptions& options) {
  if (options.ids + options.json + options.lines > 1) {
    fail(
        ErrorCode::usage,
        "[command line] --ids, --json and --jsonl exclude each other"
    );
  }
  auto tokenizer = Tokenizer::load(options.model.directory());
  if (options.lines) {
    run_lines(*tokenizer, options);
    return;
  }
  std::string text = options.input.read();
  if (options.json) {
    print_json(*tokenizer, text, options.encoding());
    return;
  }
  std::vector<int32_t> ids = tokenizer->encode(text, options.encoding());
  if (options.ids) {
    std::string out;
    append_ids(out, ids);
    write_output(out + "\n");
  } else {
    print_table(*tokenizer, ids);
  }
}

}  // namespace

void add_tokenize(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("tokenize", "Show the tokens of a text");
  command->footer(
      "Examples:\n"
      "  mlxcel tokenize -m MODEL \"Hello, world\"\n"
      "  mlxcel tokenize -m MODEL --ids --file prompt.txt\n"
      "  mlxcel tokenize -m MODEL --jsonl < texts.jsonl > ids.jsonl\n"
      "Special tokens are added as the model's own tokenizer does, and found "
      "in the text.\nA text is taken as it is, newline at its end included."
  );
  auto options = std::make_shared<TokenizeOptions>();
  options->model.add_to(*command, "-m,--model");
  options->input.add_to(*command, "TEXT");
  command->add_flag("--ids", options->ids, "The ids alone, as one JSON list");
  command->add_flag(
      "--json", options->json, "Ids, pieces and character offsets as JSON"
  );
  command->add_flag(
      "--jsonl",
      options->lines,
      "Each line of the input is a JSON string, each of the output its ids"
  );
  command->add_flag(
      "--no-special", options->no_special, "Add no special tokens"
  );
  command->add_flag(
      "--plain", options->plain, "Take added tokens in the text for text"
  );
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
