#include "mlxcel/tokenizer/files/part_recipes.h"

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

PostProcessor put_around(
    std::optional<int32_t> before, std::optional<int32_t> behind
) {
  using Object = nlohmann::ordered_json;
  Object single = Object::array();
  Object tokens = Object::object();
  auto add = [&](const char* name, std::optional<int32_t> id) {
    if (id) {
      single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
      tokens[name] = {{"ids", {*id}}};
    }
  };
  add("before", before);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add("behind", behind);
  Object json = {
      {"type", "TemplateProcessing"},
      {"single", single},
      {"special_tokens", tokens}};
  return PostProcessor(Json::from(std::move(json), "tokenizer"));
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
