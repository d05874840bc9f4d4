#include "tests/unit/tokenizer/support/tokenizer_file.h"

#include <nlohmann/json.hpp>

#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::test {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string json_list(const std::vector<std::string>& elements) {
  std::string text = "[";
  for (const std::string& element : elements) {
    text.append(text.size() > 1 ? "," : "").append(element);
  }
  return text.append("]");
}

std::string TokenizerFile::text() const {
  return R"({"version":"1.0","truncation":null,"padding":null)"
         ",\"added_tokens\":" +
         added_tokens + ",\"normalizer\":" + normalizer +
         ",\"pre_tokenizer\":" + pre_tokenizer +
         ",\"post_processor\":" + post_processor + ",\"decoder\":" + decoder +
         ",\"model\":" + model + "}";
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
  std::string text = "{";
  text.append(options).append(options.empty() ? "" : ",");
  text.append(R"("content":)").append(quoted(content));
  for (const char* flag : {"special", "normalized"}) {
    if (options.find(flag) == std::string::npos) {
      text.append(",").append(quoted(flag)).append(":");
      text.append(flag[0] == 's' ? "true" : "false");
    }
  }
  return text.append("}");
}

}  // namespace mlxcel::test
