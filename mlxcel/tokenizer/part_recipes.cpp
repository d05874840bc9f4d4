#include "mlxcel/tokenizer/part_recipes.h"

#include <nlohmann/json.hpp>

namespace mlxcel::tokenizer {

namespace {

Json parse(const std::string& json) {
  return Json::parse(json, "tokenizer");
}

}  // namespace

std::unique_ptr<Normalizer> normalizer_from(const std::string& json) {
  return make_normalizer(parse(json));
}

PreTokenizer pre_tokenizer_from(const std::string& json) {
  return PreTokenizer(parse(json), true);
}

Decoder decoder_from(const std::string& json) {
  return Decoder(parse(json));
}

PreTokenizer byte_level_pre_tokenizer(
    const std::string& pattern, bool add_prefix_space
) {
  nlohmann::ordered_json split = {
      {"type", "Split"},
      {"pattern", {{"Regex", pattern}}},
      {"behavior", "Isolated"},
      {"invert", false}};
  nlohmann::ordered_json bytes = {
      {"type", "ByteLevel"},
      {"add_prefix_space", add_prefix_space},
      {"use_regex", false}};
  nlohmann::ordered_json steps = nlohmann::ordered_json::array({split, bytes});
  nlohmann::ordered_json json = {
      {"type", "Sequence"}, {"pretokenizers", steps}};
  return PreTokenizer(Json::from(std::move(json), "tokenizer"), true);
}

}  // namespace mlxcel::tokenizer
