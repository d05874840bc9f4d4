// Model directories from strangers, through load_model(): a tiny checkpoint
// whose config.json or weights are replaced.

#include "mlxcel/loading/load_model.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"
#include "mlxcel/engine/generate.h"
#include "mlxcel/engine/score.h"
#include "tests/hostile/tiny_model.h"

namespace mlxcel {
namespace {

namespace fs = std::filesystem;
using Value = nlohmann::ordered_json;

// Loads and runs a few tokens.
std::vector<TokenScore> load_and_score(const std::string& path) {
  Checkpoint checkpoint = load(path);
  Engine engine(*checkpoint.model.model, 8);
  std::vector<int32_t> tokens = {1, 2, 3};
  return score(engine, tokens, {}).scores;
}

// Loading fails within a second with a message that has every part, is short,
// and names the file.
void expect_refused(
    const std::string& path, const std::vector<std::string>& parts
) {
  double start = os::now();
  try {
    load(path);
    ADD_FAILURE() << "was loaded";
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal) << error.message();
    EXPECT_LT(error.message().size(), 4000u);
    for (const std::string& part : parts) {
      EXPECT_NE(error.message().find(part), std::string::npos)
          << "message: " << error.message() << "\nexpected: " << part;
    }
    EXPECT_NE(error.message().find(path), std::string::npos)
        << "does not name the file: " << error.message();
  }
  EXPECT_LT(os::now() - start, 5.0);
}

struct Bad {
  std::string name;
  std::string config;
  std::vector<std::string> message;
};

std::string name_of(const testing::TestParamInfo<Bad>& info) {
  return info.param.name;
}

class ConfigText : public testing::TestWithParam<Bad> {};

TEST_P(ConfigText, IsRefused) {
  Model model;
  model.dir().write("config.json", GetParam().config);
  // Its directory is in every message; some faults show in the weights.
  expect_refused(model.path(), GetParam().message);
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) {
    out += text;
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Syntax,
    ConfigText,
    testing::Values(
        Bad{"Empty", "", {"not valid JSON"}},
        Bad{"Spaces", " \n\t ", {"not valid JSON"}},
        Bad{"Word", "llama", {"not valid JSON at byte 1"}},
        Bad{"Cut",
            std::string(kConfig).substr(0, 100),
            {"not valid JSON at byte"}},
        Bad{"Trailing", std::string(kConfig) + "{}", {"not valid JSON"}},
        Bad{"List", "[]", {"expected an object, got a list"}},
        Bad{"Number", "3", {"expected an object, got 3"}},
        Bad{"Null", "null", {"expected an object, got null"}},
        Bad{"DuplicateKey",
            R"({"model_type": "llama", "model_type": "qwen3"})",
            {"duplicate key \"model_type\""}},
        Bad{"DeepLists", repeat("[", 100000), {"nested deeper than"}},
        Bad{"DeepObjects", repeat("{\"a\":", 100000), {"nested deeper than"}},
        Bad{"InvalidUtf8", "{\"model_type\": \"\xff\"}", {"not valid JSON"}},
        Bad{"NulByte", std::string("{\"a\0\": 1}", 9), {"not valid JSON"}},
        Bad{"HugeNumber", R"({"rope_theta": 1e999})", {"1e999"}},
        Bad{"CommaAlone", "{,}", {"not valid JSON"}},
        Bad{"TwoCommas", R"({"a": 1,, "b": 2})", {"not valid JSON"}},
        Bad{"SingleQuotes", "{'model_type': 'llama'}", {"not valid JSON"}},
        Bad{"Comment", "// hi\n{}", {"not valid JSON"}}
    ),
    name_of
);

INSTANTIATE_TEST_SUITE_P(
    ModelType,
    ConfigText,
    testing::Values(
        Bad{"Absent", patched(R"({"model_type": null})"), {"model_type"}},
        Bad{"Number", patched(R"({"model_type": 3})"), {"model_type"}},
        Bad{"List", patched(R"({"model_type": ["llama"]})"), {"model_type"}},
        Bad{"EmptyText", patched(R"({"model_type": ""})"), {"model_type \"\""}},
        Bad{"Unknown",
            patched(R"({"model_type": "Klear-9"})"),
            {"model_type \"Klear-9\"", "mlxcel arch"}},
        Bad{"ControlBytes",
            patched(R"({"model_type": "a\u0000\u001b[2J"})"),
            {R"("a\x00\x1b[2J")"}},
        Bad{"Long",
            patched(R"({"model_type": ")" + repeat("x", 100000) + "\"}"),
            {"xxx\"..."}},
        Bad{"Embedding", patched(R"({"model_type": "bert"})"), {"embedding"}},
        Bad{"EmbeddingClass",
            patched(R"({"architectures": ["LlamaBidirectionalModel"]})"),
            {"embedding"}},
        Bad{"Reranker",
            patched(R"({"architectures": ["LlamaForSequenceClassification"]})"),
            {"reranker"}},
        Bad{"Drafter",
            patched(R"({"architectures": ["LlamaForCausalLMEagle3"]})"),
            {"drafter", "LlamaForCausalLMEagle3", "draft model"}},
        Bad{"DrafterBlock",
            patched(R"({"dflash_config": {}})"),
            {"drafter", "dflash_config"}},
        Bad{"ForeignHead",
            patched(R"({"architectures": ["LlamaForTokenClassification"]})"),
            {"architectures", "LlamaForTokenClassification"}}
    ),
    name_of
);

INSTANTIATE_TEST_SUITE_P(
    Size,
    ConfigText,
    testing::Values(
        Bad{"LayersNull",
            patched(R"({"num_hidden_layers": null})"),
            {"num_hidden_layers: required, but missing"}},
        Bad{"LayersHuge",
            patched(R"({"num_hidden_layers": 1e9})"),
            {"num_hidden_layers", "1000000000"}},
        Bad{"LayersMany",
            patched(R"({"num_hidden_layers": 4000})"),
            {"tensors are missing", "model.layers.2."}},
        Bad{"LayersZero",
            patched(R"({"num_hidden_layers": 0})"),
            {"num_hidden_layers: expected a positive integer, got 0"}},
        Bad{"LayersFraction",
            patched(R"({"num_hidden_layers": 2.5})"),
            {"num_hidden_layers: expected an integer, got 2.5"}},
        Bad{"LayersBool",
            patched(R"({"num_hidden_layers": true})"),
            {"num_hidden_layers: expected an integer, got true"}},
        Bad{"LayersList",
            patched(R"({"num_hidden_layers": [2]})"),
            {"num_hidden_layers: expected an integer, got a list"}},
        Bad{"LayersWord",
            patched(R"({"num_hidden_layers": "two"})"),
            {"num_hidden_layers: expected an integer, got \"two\""}},
        Bad{"HeadsNegative",
            patched(R"({"num_attention_heads": -3})"),
            {"num_attention_heads: expected a positive integer, got -3"}},
        Bad{"HeadsZero",
            patched(R"({"num_attention_heads": 0})"),
            {"num_attention_heads"}},
        Bad{"HeadsDontDivide",
            patched(R"({"num_attention_heads": 5, "num_key_value_heads": 5})"),
            {"num_attention_heads: 5 does not divide hidden_size 64"}},
        Bad{"KvHeadsDontDivide",
            patched(R"({"num_key_value_heads": 3})"),
            {"num_key_value_heads: 3 does not divide num_attention_heads 4"}},
        Bad{"KvHeadsZero",
            patched(R"({"num_key_value_heads": 0})"),
            {"num_key_value_heads"}},
        Bad{"HeadDimOdd",
            patched(R"({"head_dim": 15})"),
            {"head_dim", "even", "15"}},
        Bad{"HeadDimZero", patched(R"({"head_dim": 0})"), {"head_dim"}},
        Bad{"HeadDimHuge",
            patched(R"({"head_dim": 1000000000})"),
            {"head_dim", "1000000000"}},
        Bad{"HeadsTimesHeadDim",
            patched(R"({"head_dim": 1048576})"),
            {"4 heads of 1048576"}},
        Bad{"HiddenHuge",
            patched(R"({"hidden_size": 1000000000000000000})"),
            {"hidden_size"}},
        Bad{"HiddenAboveInt64",
            patched(R"({"hidden_size": 18446744073709551615})"),
            {"hidden_size: expected an integer, got 18446744073709551615"}},
        Bad{"HiddenNan",
            R"({"model_type": "llama", "hidden_size": NaN})",
            {"hidden_size: expected a positive integer, got 0"}},
        Bad{"HiddenInfinite",
            R"({"model_type": "llama", "hidden_size": Infinity})",
            {"hidden_size: expected an integer"}},
        Bad{"HiddenIsNotTheWeights",
            patched(R"({"hidden_size": 128})"),
            {"model.embed_tokens.weight", "[128, 64]", "128"}},
        Bad{"FfnNegative",
            patched(R"({"intermediate_size": -96})"),
            {"intermediate_size"}},
        Bad{"FfnIsNotTheWeights",
            patched(R"({"intermediate_size": 160})"),
            {"model.layers.0.mlp", "[96, 64]", "160"}},
        Bad{"VocabularyZero", patched(R"({"vocab_size": 0})"), {"vocab_size"}},
        Bad{"VocabularyHuge",
            patched(R"({"vocab_size": 1000000000000})"),
            {"vocab_size"}},
        Bad{"VocabularyIsNotTheWeights",
            patched(R"({"vocab_size": 256})"),
            {"model.embed_tokens.weight", "[128, 64]", "256"}},
        Bad{"WindowAboveInt64",
            patched(R"({"max_position_embeddings": 1e30})"),
            {"max_position_embeddings"}},
        Bad{"WindowHuge",
            patched(R"({"max_position_embeddings": 9000000000000000000})"),
            {"max_position_embeddings"}}
    ),
    name_of
);

INSTANTIATE_TEST_SUITE_P(
    Rope,
    ConfigText,
    testing::Values(
        Bad{"Unknown",
            patched(R"({"rope_scaling": {"type": "spiral"}})"),
            {"rope_scaling", "\"spiral\""}},
        Bad{"UnknownNewKey",
            patched(R"({"rope_scaling": {"rope_type": "spiral"}})"),
            {"rope_scaling.rope_type", "\"spiral\""}},
        Bad{"UnknownParameters",
            patched(R"({"rope_parameters": {"rope_type": "spiral"}})"),
            {"rope_parameters.rope_type", "\"spiral\""}},
        Bad{"TypeIsNumber",
            patched(R"({"rope_scaling": {"rope_type": 3}})"),
            {"rope_scaling.rope_type: expected a string, got 3"}},
        Bad{"Word", patched(R"({"rope_scaling": "linear"})"), {"rope_scaling"}},
        Bad{"List", patched(R"({"rope_scaling": [1]})"), {"rope_scaling"}},
        Bad{"ParametersWord",
            patched(R"({"rope_parameters": "linear"})"),
            {"rope_parameters"}},
        Bad{"NoFactor",
            patched(R"({"rope_scaling": {"type": "linear"}})"),
            {"rope_scaling.factor: required, but missing"}},
        Bad{"FactorZero",
            patched(R"({"rope_scaling": {"type": "linear", "factor": 0}})"),
            {"rope_scaling.factor: expected a positive number, got 0"}},
        Bad{"FactorNegative",
            patched(R"({"rope_scaling": {"type": "yarn", "factor": -4}})"),
            {"rope_scaling.factor"}},
        Bad{"FactorWord",
            patched(R"({"rope_scaling": {"type": "linear", "factor": "x"}})"),
            {"rope_scaling.factor: expected a number, got \"x\""}},
        Bad{"Llama3Equal",
            patched(R"({"rope_scaling": {"type": "llama3", "factor": 8,
                        "low_freq_factor": 4, "high_freq_factor": 4}})"),
            {"rope_scaling.high_freq_factor"}},
        Bad{"ThetaZero", patched(R"({"rope_theta": 0})"), {"rope_theta"}},
        Bad{"ThetaNegative",
            patched(R"({"rope_theta": -10000})"),
            {"rope_theta"}},
        Bad{"ThetaList", patched(R"({"rope_theta": [1]})"), {"rope_theta"}},
        Bad{"Traditional",
            patched(R"({"rope_traditional": "yes"})"),
            {"rope_traditional: expected true or false"}}
    ),
    name_of
);

INSTANTIATE_TEST_SUITE_P(
    Other,
    ConfigText,
    testing::Values(
        Bad{"EpsilonNegative",
            patched(R"({"rms_norm_eps": -1e-5})"),
            {"rms_norm_eps"}},
        Bad{"EpsilonWord",
            patched(R"({"rms_norm_eps": "x"})"),
            {"rms_norm_eps"}},
        Bad{"ActivationUnknown",
            patched(R"({"hidden_act": "wiggle"})"),
            {"hidden_act", "\"wiggle\""}},
        Bad{"ActivationNumber",
            patched(R"({"hidden_act": 1})"),
            {"hidden_act"}},
        Bad{"TiedWord",
            patched(R"({"tie_word_embeddings": "yes"})"),
            {"tie_word_embeddings: expected true or false, got \"yes\""}},
        Bad{"BiasNumber",
            patched(R"({"attention_bias": 1})"),
            {"attention_bias: expected true or false, got 1"}},
        Bad{"BiasWithoutTensors",
            patched(R"({"attention_bias": true})"),
            {"tensors are missing", "self_attn.q_proj.bias"}},
        Bad{"WindowNegative",
            patched(R"({"model_type": "mistral", "sliding_window": -1})"),
            {"sliding_window: expected a positive integer, got -1"}},
        Bad{"LayerTypesCount",
            patched(R"({"layer_types": ["full_attention"]})"),
            {"layer_types: 1 entries for num_hidden_layers 2"}},
        Bad{"LayerTypesUnknown",
            patched(R"({"layer_types": ["full_attention", "x"]})"),
            {"layer_types[1]", "\"x\""}},
        Bad{"LayerTypesWord",
            patched(R"({"layer_types": "x"})"),
            {"layer_types"}},
        Bad{"TextConfigLacksAll",
            patched(R"({"text_config": {"text_config": {"text_config": {}}}})"),
            {"hidden_size: required, but missing"}},
        Bad{"EosHuge",
            patched(R"({"eos_token_id": 1e30})"),
            {"eos_token_id: expected an integer"}}
    ),
    name_of
);

INSTANTIATE_TEST_SUITE_P(
    Quantization,
    ConfigText,
    testing::Values(
        Bad{"BitsZero",
            patched(R"({"quantization": {"bits": 0, "group_size": 64}})"),
            {"quantization.bits", "0"}},
        Bad{"Bits64",
            patched(R"({"quantization": {"bits": 64, "group_size": 64}})"),
            {"quantization.bits", "64"}},
        Bad{"BitsNegative",
            patched(R"({"quantization": {"bits": -4, "group_size": 64}})"),
            {"quantization.bits", "-4"}},
        Bad{"BitsFraction",
            patched(R"({"quantization": {"bits": 4.5, "group_size": 64}})"),
            {"quantization.bits", "4.5"}},
        Bad{"GroupZero",
            patched(R"({"quantization": {"bits": 4, "group_size": 0}})"),
            {"quantization.group_size", "0"}},
        Bad{"GroupNegative",
            patched(R"({"quantization": {"bits": 4, "group_size": -64}})"),
            {"quantization.group_size", "-64"}},
        Bad{"GroupHuge",
            patched(R"({"quantization": {"bits": 4, "group_size": 1e15}})"),
            {"quantization.group_size"}},
        Bad{"ModeUnknown",
            patched(R"({"quantization": {"mode": "fractal"}})"),
            {"quantization.mode", "\"fractal\""}},
        Bad{"Word", patched(R"({"quantization": "4bit"})"), {"quantization"}},
        Bad{"OverrideBits",
            patched(R"({"quantization": {"bits": 4, "group_size": 64,
                        "model.embed_tokens": {"bits": 0}}})"),
            {"quantization.model.embed_tokens.bits", "0"}},
        Bad{"Foreign",
            patched(R"({"quantization_config": {"quant_method": "gptq"}})"),
            {"quantization_config.quant_method", "gptq"}}
    ),
    name_of
);

// What Python and people write, and what models that work have.
class ConfigAccepted : public testing::TestWithParam<Bad> {};

TEST_P(ConfigAccepted, Loads) {
  Model model;
  model.dir().write("config.json", GetParam().config);
  EXPECT_EQ(load_and_score(model.path()).size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    ConfigAccepted,
    testing::Values(
        Bad{"AsItIs", kConfig, {}},
        Bad{"ByteOrderMark", std::string("\xef\xbb\xbf") + kConfig, {}},
        Bad{"TrailingCommas",
            R"({"x": [1, 2, ], )" + std::string(kConfig).substr(1, 999),
            {}},
        Bad{"NanAndInfinity",
            R"({"a": NaN, "b": [Infinity, -Infinity], )" +
                std::string(kConfig).substr(1, 999),
            {}},
        Bad{"NumbersAsStrings",
            patched(R"({"hidden_size": "64", "rms_norm_eps": "1e-5"})"),
            {}},
        Bad{"WholeFloats", patched(R"({"hidden_size": 64.0})"), {}},
        Bad{"NoHeadDim", patched(R"({"head_dim": null})"), {}},
        Bad{"NoKvHeadsIsNull", patched(R"({"rope_scaling": null})"), {}},
        Bad{"RopeDefault",
            patched(R"({"rope_scaling": {"rope_type": "default"}})"),
            {}},
        Bad{"NoWindow", patched(R"({"max_position_embeddings": null})"), {}},
        Bad{"WindowNegative",
            patched(R"({"max_position_embeddings": -1})"),
            {}},
        Bad{"EosText", patched(R"({"eos_token_id": "</s>"})"), {}},
        Bad{"ArchitecturesWord", patched(R"({"architectures": "x"})"), {}},
        Bad{"TextConfigIsNumber", patched(R"({"text_config": 3})"), {}},
        Bad{"QuantizationNull", patched(R"({"quantization": null})"), {}}
    ),
    name_of
);

TEST(ConfigHostile, EosAsNumberListOrNull) {
  Model model;
  auto stops = [&](const std::string& patch) {
    model.dir().write("config.json", patched(patch));
    return load(model.path()).defaults.stop_ids;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(stops(R"({"eos_token_id": 7})"), Ids{7});
  EXPECT_EQ(stops(R"({"eos_token_id": [9, 7, 9]})"), (Ids{7, 9}));
  EXPECT_EQ(stops(R"({"eos_token_id": null})"), Ids{});
  EXPECT_EQ(stops(R"({"eos_token_id": []})"), Ids{});
  EXPECT_EQ(stops(R"({"eos_token_id": [3, null, "x", 2.5, [4]]})"), Ids{3});
  EXPECT_EQ(stops(R"({"eos_token_id": [-1, 4294967296]})"), Ids{});
}

TEST(ConfigHostile, NestedThreeDeepReadsTheFirstLevel) {
  Model model;
  Value nested = Value::parse(kConfig);
  nested["text_config"] = {{"text_config", {{"hidden_size", 1}}}};
  Value config = {{"model_type", "llama"}, {"text_config", nested}};
  model.dir().write("config.json", config.dump());
  EXPECT_EQ(load_and_score(model.path()).size(), 2u);
}

TEST(ConfigHostile, OtherThingsInItsPlace) {
  Model model;
  fs::path path = model.dir() / "config.json";
  fs::remove(path);
  expect_refused(model.path(), {"config.json"});
  fs::create_directory(path);
  expect_refused(model.path(), {"config.json", "not a regular file"});
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_refused(model.path(), {"config.json", "not a regular file"});
  fs::remove(path);
  fs::create_symlink("/dev/zero", path);
  expect_refused(model.path(), {"config.json", "not a regular file"});
  fs::remove(path);
  std::ofstream(path).close();
  fs::resize_file(path, uint64_t{1} << 40);
  expect_refused(model.path(), {"config.json", "bytes"});
}

TEST(ConfigHostile, NoSuchDirectory) {
  TemporaryDirectory dir;
  expect_refused(dir / "none", {"no such model directory"});
  expect_refused(dir.path(), {"config.json"});
}

// Files beside it that only give defaults are warned about at most.
TEST(ConfigHostile, BrokenGenerationConfigGivesNoDefaults) {
  Model model;
  for (std::string text :
       {std::string("{"), std::string("[]"), repeat("[", 100000)}) {
    model.dir().write("generation_config.json", text);
    EXPECT_FALSE(load(model.path()).defaults.temperature) << text.substr(0, 9);
  }
  model.dir().write(
      "generation_config.json",
      R"({"temperature": NaN, "top_p": "x", "top_k": -5, "eos_token_id": [1]})"
  );
  GenerationDefaults defaults = load(model.path()).defaults;
  EXPECT_EQ(defaults.temperature, 0.0);
  EXPECT_FALSE(defaults.top_p);
  EXPECT_FALSE(defaults.top_k);
  EXPECT_EQ(defaults.stop_ids, std::vector<int32_t>{1});
}

// --- weights ---

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(WeightsHostile, CutAnywhere) {
  Model model;
  fs::path path = model.dir() / "model.safetensors";
  uint64_t size = fs::file_size(path);
  for (uint64_t left :
       {size - 1,
        size / 2,
        uint64_t{4096},
        uint64_t{100},
        uint64_t{9},
        uint64_t{8},
        uint64_t{7},
        uint64_t{0}}) {
    fs::resize_file(path, left);
    expect_refused(model.path(), {"model.safetensors"});
  }
}

TEST(WeightsHostile, OtherThingsInTheirPlace) {
  Model model;
  fs::path path = model.dir() / "model.safetensors";
  fs::remove(path);
  expect_refused(model.path(), {"safetensors"});
  fs::create_directory(path);
  expect_refused(model.path(), {"safetensors"});
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_refused(model.path(), {"safetensors"});
  fs::remove(path);
  fs::create_symlink("/dev/zero", path);
  expect_refused(model.path(), {"safetensors"});
  fs::remove(path);
  model.dir().write("model.safetensors", repeat("\xff", 64));
  expect_refused(model.path(), {"model.safetensors"});
}

TEST(WeightsHostile, IndexThatLeavesTheDirectory) {
  Model model;
  fs::rename(
      model.dir() / "model.safetensors", model.dir() / "model-1.safetensors"
  );
  for (const char* name :
       {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "", "."}) {
    Value index = {{"weight_map", {{"model.norm.weight", name}}}};
    model.dir().write("model.safetensors.index.json", index.dump());
    expect_refused(model.path(), {"model.safetensors.index.json"});
  }
}

// Renames a tensor in the header; names of equal length keep the offsets.
void replace_in_weights(
    const Model& model, const std::string& from, const std::string& to
) {
  fs::path path = model.dir() / "model.safetensors";
  std::string bytes = slurp(path);
  size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos);
  ASSERT_EQ(from.size(), to.size());
  bytes.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(WeightsHostile, TensorsMissingOrOfAnotherKind) {
  {
    Model model;
    replace_in_weights(model, "model.norm.weight", "model.nurm.weight");
    expect_refused(model.path(), {"1 of", "missing", "model.norm.weight"});
  }
  {
    Model model;
    replace_in_weights(model, "[64,96]", "[96,64]");
    expect_refused(
        model.path(), {"model.layers.0.mlp.down_proj", "[96, 64]", "64"}
    );
  }
  {
    Model model;
    replace_in_weights(model, R"("dtype":"BF16")", R"("dtype":"I16" )");
    expect_refused(model.path(), {"I16"});
  }
}

TEST(WeightsHostile, QuantisedPlanesThatDontMatch) {
  std::string config =
      patched(R"({"quantization": {"bits": 4, "group_size": 32}})");
  Model good(config);
  EXPECT_EQ(load_and_score(good.path()).size(), 2u);
  {
    Model model(config);
    replace_in_weights(
        model, "model.embed_tokens.scales", "model.embed_tokens.scalez"
    );
    expect_refused(model.path(), {"model.embed_tokens"});
  }
  {
    Model model(config);
    replace_in_weights(
        model, "model.embed_tokens.biases", "model.embed_tokens.biasez"
    );
    expect_refused(model.path(), {"model.embed_tokens"});
  }
}

// A model whose weights are no numbers draws no token from them.
TEST(WeightsHostile, NanWeightsAreAnErrorOfTheDraw) {
  Model model;
  fs::path path = model.dir() / "model.safetensors";
  std::string bytes = slurp(path);
  std::string nan = repeat("\xc0\x7f", 64);
  bytes.replace(bytes.size() - nan.size(), nan.size(), nan);
  std::ofstream(path, std::ios::binary) << bytes;
  Checkpoint checkpoint = load(model.path());
  Engine engine(*checkpoint.model.model, 16);
  auto sequence = engine.open();
  std::vector<int32_t> prompt = {1, 2, 3};
  backend::Tensor logits = engine.prefill(*sequence, prompt, 64);
  std::vector<float> row(128);
  engine.read(logits, row);
  for (bool nucleus : {false, true}) {
    SamplerParams params;
    params.temperature = 1;
    params.top_p = nucleus ? 0.9 : 1;
    std::vector<float> copy = row;
    EXPECT_THROW(Sampler(params).sample(copy, prompt), Error);
  }
}

TEST(EngineHostile, TokensOutsideTheVocabularyOrTheCapacity) {
  Model model;
  Checkpoint checkpoint = load(model.path());
  Engine engine(*checkpoint.model.model, 16);
  auto sequence = engine.open();
  for (std::vector<int32_t> tokens :
       {std::vector<int32_t>{}, {-1}, {128}, {1, INT32_MAX}}) {
    StepInput input{sequence.get(), tokens};
    EXPECT_THROW(engine.step({&input, 1}), Error);
    EXPECT_EQ(sequence->length(), 0);
  }
  std::vector<int32_t> many(17, 1);
  EXPECT_THROW(engine.prefill(*sequence, many, 64), Error);
  EXPECT_EQ(sequence->length(), 0);
  many.resize(16);
  engine.prefill(*sequence, many, 64);
  EXPECT_EQ(sequence->length(), 16);
}

}  // namespace
}  // namespace mlxcel
