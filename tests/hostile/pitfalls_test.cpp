// ../shared/pitfalls.md 1 to 23 as far as they concern a whole checkpoint, for
// every family that is built; README.md lists where the others are tested.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/engine/engine.h"
#include "mlxcel/weights/safetensors.h"
#include "tests/hostile/tiny_model.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "model.safetensors";

std::vector<float> answer(const std::string& directory) {
  Checkpoint checkpoint = load(directory);
  Engine engine(*checkpoint.model.model, 64);
  auto sequence = engine.open();
  std::vector<int32_t> prompt = {1, 2, 3};
  std::vector<float> row(128);
  engine.read(engine.prefill(*sequence, prompt, 64), row);
  return row;
}

// The tensors of the model's file.
std::vector<test::FileTensor> read_tensors(const Model& model) {
  std::string path = model.dir() / kFile;
  std::ifstream in(path, std::ios::binary);
  std::string bytes(
      (std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()
  );
  std::vector<test::FileTensor> tensors;
  for (const TensorEntry& entry : read_safetensors_header(
           std::as_bytes(std::span(bytes.data(), bytes.size())), path
       )) {
    tensors.push_back(
        {entry.name,
         std::string(dtype_name(entry.dtype)),
         entry.shape,
         bytes.substr(entry.begin, entry.end - entry.begin)}
    );
  }
  return tensors;
}

void write_tensors(
    const Model& model, const std::vector<test::FileTensor>& tensors
) {
  model.dir().write(kFile, test::safetensors_file(tensors));
}

std::string merged(const std::string& config, const std::string& patch) {
  auto value = nlohmann::ordered_json::parse(config);
  value.merge_patch(nlohmann::ordered_json::parse(patch));
  return value.dump();
}

class Pitfalls : public testing::TestWithParam<const char*> {
 protected:
  // head_dim: Gemma has no other way to say it.
  std::string config(const std::string& patch = "{}") const {
    return merged(
        patched(
            std::string(R"({"head_dim": 16, "model_type": ")") + GetParam() +
            "\"}"
        ),
        patch
    );
  }
};

/// The families that may have a head of their own.
class PitfallsOfHeads : public Pitfalls {};

std::string family(const testing::TestParamInfo<const char*>& test) {
  return test.param;
}
INSTANTIATE_TEST_SUITE_P(
    Each,
    Pitfalls,
    testing::Values("llama", "mistral", "qwen2", "qwen3", "gemma"),
    family
);
INSTANTIATE_TEST_SUITE_P(
    Each,
    PitfallsOfHeads,
    testing::Values("llama", "mistral", "qwen2", "qwen3"),
    family
);

// 2, mlxcel #929.
TEST_P(Pitfalls, QuantizationOfNoWidthIsNamed) {
  Model model(config());
  for (const auto& [field, text] :
       std::vector<std::pair<std::string, std::string>>{
           {"bits", R"({"bits": 0, "group_size": 64})"},
           {"bits", R"({"bits": 64, "group_size": 64})"},
           {"group_size", R"({"bits": 4, "group_size": 0})"}}) {
    model.dir().write(
        "config.json", config("{\"quantization\": " + text + "}")
    );
    test::expect_error(
        [&] { load(model.path()); },
        ErrorCode::invalid_input,
        {"quantization." + field, model.path()}
    );
  }
}

// 13 and 14, mlx-vlm #1777, lmstudio #664.
TEST_P(Pitfalls, VisionConfigOfNothingMeansText) {
  Model model(config());
  std::vector<float> expected = answer(model.path());
  for (const char* nothing : {"null", "{}"}) {
    std::string text = config();
    text.insert(
        text.size() - 1, std::string(", \"vision_config\": ") + nothing
    );
    model.dir().write("config.json", text);
    EXPECT_EQ(answer(model.path()), expected) << nothing;
  }
}

// 16, mlx-lm #1298: a head beside tied embeddings is dropped.
TEST_P(Pitfalls, StoredHeadOfTiedEmbeddingsIsDropped) {
  Model model(config());
  std::vector<float> expected = answer(model.path());
  auto tensors = read_tensors(model);
  tensors.push_back(
      {"lm_head.weight", "BF16", {128, 64}, std::string(128 * 64 * 2, '\x3f')}
  );
  write_tensors(model, tensors);
  EXPECT_EQ(answer(model.path()), expected);
}

// 16 the other way round, mlx-vlm #1193: never tied in silence.
TEST_P(PitfallsOfHeads, UntiedWithoutAHeadIsAnError) {
  std::string untied = config(R"({"tie_word_embeddings": false})");
  Model model(untied);
  EXPECT_NO_THROW(answer(model.path()));
  auto tensors = read_tensors(model);
  std::erase_if(tensors, [](const auto& tensor) {
    return tensor.name == "lm_head.weight";
  });
  write_tensors(model, tensors);
  test::expect_error(
      [&] { load(model.path()); }, ErrorCode::not_found, {"lm_head.weight"}
  );
}

// 22, ollama #13010.
TEST_P(Pitfalls, ConsolidatedCopyIsLeftOut) {
  Model model(config());
  std::vector<float> expected = answer(model.path());
  auto tensors = read_tensors(model);
  for (test::FileTensor& tensor : tensors) {
    std::fill(tensor.bytes.begin(), tensor.bytes.end(), '\x3f');
  }
  model.dir().write(
      "consolidated.safetensors", test::safetensors_file(tensors)
  );
  EXPECT_EQ(answer(model.path()), expected);
}

// 23, sglang #32279.
TEST_P(Pitfalls, MissingShardIsNamed) {
  Model model(config());
  auto tensors = read_tensors(model);
  fs::remove(model.dir() / kFile);
  nlohmann::ordered_json map;
  std::string shards[] = {
      "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
  size_t half = tensors.size() / 2;
  for (size_t i = 0; i < tensors.size(); ++i) {
    map[tensors[i].name] = shards[i < half ? 0 : 1];
  }
  auto middle = tensors.begin() + static_cast<ptrdiff_t>(half);
  model.dir().write(
      shards[0], test::safetensors_file({tensors.begin(), middle})
  );
  model.dir().write(
      "model.safetensors.index.json",
      nlohmann::ordered_json{{"weight_map", map}}.dump()
  );
  test::expect_error(
      [&] { load(model.path()); },
      ErrorCode::not_found,
      {"Missing: \"" + shards[1] + "\"", "present: " + shards[0]}
  );
  model.dir().write(shards[1], test::safetensors_file({middle, tensors.end()}));
  EXPECT_NO_THROW(answer(model.path()));
}

}  // namespace
}  // namespace mlxcel
