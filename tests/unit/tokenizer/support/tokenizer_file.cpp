#include "tests/unit/tokenizer/support/tokenizer_file.h"

#include <nlohmann/json.hpp>

#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::test {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string TokenizerFile::text() const {
  return R"({"version":"1.0","truncation":null,"padding":null)"
         ",\"added_tokens\":" + added_tokens +
         ",\"normalizer\":" + normalizer +
         ",\"pre_tokenizer\":" + pre_tokenizer +
         ",\"post_processor\":" + post_processor +
         ",\"decoder\":" + decoder + ",\"model\":" + model + "}";
}

std::shared_ptr<const Tokenizer> TokenizerFile::load() const {
  TemporaryDirectory directory;
  return Tokenizer::from_json(directory.write("tokenizer.json", text()));
}

std::string bpe_model(
    const std::vector<std::string>& tokens,
    const std::vector<std::string>& merges,
    const std::string& options
) {
  std::string text = R"({"type":"BPE",)";
  text += options + (options.empty() ? "" : ",") + "\"vocab\":{";
  for (size_t i = 0; i < tokens.size(); ++i) {
    text += (i == 0 ? "" : ",") + quoted(tokens[i]) + ":" + std::to_string(i);
  }
  text += "},\"merges\":[";
  for (size_t i = 0; i < merges.size(); ++i) {
    text += (i == 0 ? "" : ",") + quoted(merges[i]);
  }
  return text + "]}";
}

std::string added_token(
    const std::string& content, const std::string& options
) {
  return R"({"special":true,"normalized":false,"content":)" +
         quoted(content) + (options.empty() ? "" : ",") + options + "}";
}

}  // namespace mlxcel::test
