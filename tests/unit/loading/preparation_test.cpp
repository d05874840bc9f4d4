#include "mlxcel/loading/preparation.h"

#include "mlxcel/config/config.h"
#include "mlxcel/loading/estimate/hollow_weights.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

constexpr const char* kWrapped = R"({
  "model_type": "qwen3", "quantization_config": {
    "quant_method": "fp8", "weight_block_size": [128, 128]}})";

void put(
    TensorListing& listing,
    const std::string& name,
    DType dtype,
    std::vector<int64_t> shape
) {
  uint64_t size = static_cast<uint64_t>(dtype_size(dtype));
  for (int64_t n : shape) {
    size *= static_cast<uint64_t>(n);
  }
  listing.add({name, dtype, std::move(shape), 0, size});
}

// FP8 blocks under the names of a wrapper, no head, norms in bfloat16.
WeightMap checkpoint() {
  TensorListing listing;
  std::string model = "model.language_model.";
  std::string layer = model + "layers.0.";
  put(listing, model + "embed_tokens.weight", DType::bf16, {96, 128});
  put(listing, layer + "mlp.up_proj.weight", DType::f8_e4m3, {256, 128});
  put(listing, layer + "mlp.up_proj.weight_scale_inv", DType::f32, {2, 1});
  put(listing, layer + "input_layernorm.weight", DType::bf16, {128});
  put(listing, model + "norm.weight", DType::f64, {128});
  return hollow_weights(listing);
}

std::vector<std::string> outline(const WeightMap& weights) {
  std::vector<std::string> lines;
  for (const auto& [name, weight] : weights) {
    lines.push_back(name + " " + weight.describe());
  }
  return lines;
}

std::vector<std::string> prepared(const Preparation& how, int times) {
  WeightMap weights = checkpoint();
  for (int i = 0; i < times; ++i) {
    prepare_text_weights(parse_config(kWrapped, "config.json"), how, weights);
  }
  return outline(weights);
}

TEST(Preparation, StepsComeInOrder) {
  std::vector<std::string> seen;
  Preparation how;
  how.edits.push_back([&](const Json&, WeightMap& weights) {
    seen = outline(weights);
  });
  std::vector<std::string> expected = {
      "lm_head.weight [96, 128] BF16",
      "model.embed_tokens.weight [96, 128] BF16",
      "model.layers.0.input_layernorm.weight [128] BF16",
      "model.layers.0.mlp.up_proj.scales [256, 4] U8",
      "model.layers.0.mlp.up_proj.weight [256, 32] U32",
      "model.norm.weight [128] F32",
  };
  EXPECT_EQ(prepared(how, 1), expected);
  EXPECT_EQ(seen, expected);  // names and planes are MLX's by then
}

TEST(Preparation, TheTypePolicyComesAfterTheEdits) {
  Preparation how;
  how.device = {DeviceKind::cuda, 75};
  how.edits.push_back([](const Json&, WeightMap& weights) {
    EXPECT_EQ(weights.at("lm_head.weight").dtype, DType::bf16);
    weights.erase("lm_head.weight");
  });
  std::vector<std::string> lines = prepared(how, 1);
  EXPECT_EQ(lines[0], "model.embed_tokens.weight [96, 128] F16");
  EXPECT_EQ(lines[1], "model.layers.0.input_layernorm.weight [128] F16");
  how.keeps_bf16 = true;
  EXPECT_EQ(prepared(how, 1)[0], "model.embed_tokens.weight [96, 128] BF16");
}

TEST(Preparation, TwiceIsOnce) {
  for (DeviceFacts device :
       {DeviceFacts{},
        DeviceFacts{DeviceKind::metal, 0},
        DeviceFacts{DeviceKind::cuda, 75}}) {
    Preparation how;
    how.device = device;
    EXPECT_EQ(prepared(how, 1), prepared(how, 2));
  }
}

}  // namespace
}  // namespace mlxcel::test
