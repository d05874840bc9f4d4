// tokenize_probe PATH [--no-special] [--plain] [--truncate] [--pad]
//     [--skip-special] [--stream]
//
// PATH is a tokenizer.json file or a model directory. Each line of standard
// input is a JSON string to encode, an object of a `text` and perhaps a `pair`
// to encode with offsets, or a JSON list of ids to decode; the answer is one
// line of JSON. --stream decodes id by id into a list of texts, the
// last one from the flush. An error is answered as {"error": message}.

#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/tokenizer/detokenizer.h"
#include "mlxcel/tokenizer/tokenizer.h"

namespace {

using nlohmann::json;

json answer(const mlxcel::Encoding& encoding, const std::string& text) {
  json bytes = json::array();
  json characters = json::array();
  for (const auto& range : encoding.offsets) {
    bytes.push_back({range.begin, range.end});
  }
  for (const auto& range : mlxcel::character_offsets(text, encoding.offsets)) {
    characters.push_back({range.begin, range.end});
  }
  return {
      {"ids", encoding.ids},
      {"bytes", bytes},
      {"characters", characters},
      {"types", encoding.type_ids},
      {"attention", encoding.attention}};
}

json answer(
    const mlxcel::Tokenizer& tokenizer,
    const json& line,
    const std::set<std::string>& options
) {
  bool skip = options.contains("--skip-special");
  mlxcel::EncodeOptions encode;
  encode.add_special = !options.contains("--no-special");
  if (options.contains("--plain")) {
    encode.find = mlxcel::FindAdded::ordinary;
  }
  encode.truncate = options.contains("--truncate");
  encode.pad = options.contains("--pad");
  if (line.is_object()) {
    auto first = line.at("text").get<std::string>();
    if (line.contains("pair")) {
      auto second = line.at("pair").get<std::string>();
      return answer(tokenizer.encode_pair(first, second, encode), first);
    }
    return answer(tokenizer.encode_with_offsets(first, encode), first);
  }
  if (line.is_string()) {
    return tokenizer.encode(line.get<std::string>(), encode);
  }
  auto ids = line.get<std::vector<int32_t>>();
  if (!options.contains("--stream")) {
    return tokenizer.decode(ids, skip);
  }
  json texts = json::array();
  mlxcel::StreamingDetokenizer detokenizer(tokenizer, {}, skip);
  for (int32_t id : ids) {
    texts.push_back(detokenizer.push(id));
  }
  texts.push_back(detokenizer.flush());
  return texts;
}

int run(const std::string& path, const std::set<std::string>& options) {
  auto tokenizer = mlxcel::directory_exists(path)
                       ? mlxcel::Tokenizer::load(path)
                       : mlxcel::Tokenizer::from_json(path);
  std::string text;
  while (std::getline(std::cin, text)) {
    json result;
    try {
      result = answer(*tokenizer, json::parse(text), options);
    } catch (const mlxcel::Error& error) {
      result = {{"error", error.message()}};
    }
    std::cout << result.dump() << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argv[1], std::set<std::string>(argv + 2, argv + argc));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
