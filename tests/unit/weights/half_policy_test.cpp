#include "mlxcel/weights/transform/half_policy.h"

#include <cmath>
#include <map>

#include "mlxcel/config/config.h"
#include "mlxcel/core/log.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

using Variables = std::map<std::string, std::string>;

HalfPolicy policy_of(
    DeviceFacts device,
    const std::string& config,
    Variables variables = {},
    bool family_keeps = false
) {
  return half_policy(
      device,
      parse_config(config, "config.json"),
      family_keeps,
      [&](const char* name) {
        auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      }
  );
}

constexpr DeviceFacts kCpu{DeviceKind::cpu, 0};
constexpr DeviceFacts kMetal{DeviceKind::metal, 0};
constexpr DeviceFacts kRocm{DeviceKind::rocm, 0};
constexpr DeviceFacts kVolta{DeviceKind::cuda, 70};
constexpr DeviceFacts kTuring{DeviceKind::cuda, 75};
constexpr DeviceFacts kAmpere{DeviceKind::cuda, 80};
constexpr DeviceFacts kHopper{DeviceKind::cuda, 90};

const std::string kDense = R"({"model_type": "llama"})";
const std::string kQuantised =
    R"({"model_type": "llama", "quantization": {"bits": 4}})";
const std::string kQuantisedText =
    R"({"model_type": "llava", "text_config": {"quantization_config": {}}})";

// weights-and-quantization.md 10, row by row.
TEST(HalfPolicy, CpuAndRocmKeepWhatIsStored) {
  for (DeviceFacts device : {kCpu, kRocm}) {
    for (const std::string& config : {kDense, kQuantised}) {
      EXPECT_EQ(policy_of(device, config), HalfPolicy::keep);
      EXPECT_EQ(
          policy_of(device, config, {{"MLXCEL_CUDA_F16_NORMALIZE", "1"}}),
          HalfPolicy::keep
      );
    }
  }
}

TEST(HalfPolicy, MetalConvertsWhatIsNotQuantised) {
  EXPECT_EQ(policy_of(kMetal, kDense), HalfPolicy::to_f16);
  EXPECT_EQ(policy_of(kMetal, kQuantised), HalfPolicy::keep);
  EXPECT_EQ(policy_of(kMetal, kQuantisedText), HalfPolicy::keep);
  EXPECT_EQ(
      policy_of(kMetal, R"({"model_type": "gemma2"})"), HalfPolicy::to_f16
  );
}

TEST(HalfPolicy, TheVariableAndTheFamilyComeFirst) {
  for (DeviceFacts device : {kMetal, kVolta, kHopper}) {
    EXPECT_EQ(
        policy_of(device, kDense, {{"MLXCEL_KEEP_BF16", ""}}), HalfPolicy::keep
    );
    EXPECT_EQ(
        policy_of(device, kDense, {{"MLXCEL_CUDA_F16_NORMALIZE", "1"}}, true),
        HalfPolicy::keep_for_family
    );
    EXPECT_EQ(
        policy_of(device, kDense, {{"MLXCEL_KEEP_BF16", "0"}}, true),
        HalfPolicy::keep
    );
  }
}

TEST(HalfPolicy, OldCudaConvertsQuantisedOnesToo) {
  for (DeviceFacts device : {kVolta, kTuring}) {
    for (const std::string& config : {kDense, kQuantised, kQuantisedText}) {
      EXPECT_EQ(policy_of(device, config), HalfPolicy::to_f16);
      for (const char* no : {"0", "False", "OFF", "no"}) {
        EXPECT_EQ(
            policy_of(device, config, {{"MLXCEL_CUDA_F16_NORMALIZE", no}}),
            HalfPolicy::keep
        );
      }
    }
    // Soft caps alone are no reason there, Apertus is.
    EXPECT_EQ(
        policy_of(device, R"({"final_logit_softcapping": 30.0})"),
        HalfPolicy::to_f16
    );
    const char* apertus = R"({"model_type": "apertus"})";
    EXPECT_EQ(policy_of(device, apertus), HalfPolicy::keep);
    EXPECT_EQ(
        policy_of(device, apertus, {{"MLXCEL_CUDA_F16_FRAGILE", "yes"}}),
        HalfPolicy::to_f16
    );
  }
}

TEST(HalfPolicy, NewCudaConvertsOnlyWhenAskedAndOnlyWhatBearsIt) {
  Variables asked = {{"MLXCEL_CUDA_F16_NORMALIZE", "On"}};
  for (DeviceFacts device : {kAmpere, kHopper}) {
    EXPECT_EQ(policy_of(device, kDense), HalfPolicy::keep);
    EXPECT_EQ(
        policy_of(device, kDense, {{"MLXCEL_CUDA_F16_NORMALIZE", "2"}}),
        HalfPolicy::keep
    );
    EXPECT_EQ(policy_of(device, kDense, asked), HalfPolicy::to_f16);
    EXPECT_EQ(policy_of(device, kQuantised, asked), HalfPolicy::keep);
    EXPECT_EQ(policy_of(device, kQuantisedText, asked), HalfPolicy::keep);
    for (const char* fragile : {
             R"({"attn_logit_softcapping": 50.0})",
             R"({"final_logit_softcapping": 30.0})",
             R"({"logit_softcapping": 30.0})",
             R"({"text_config": {"logits_soft_cap": 30.0}})",
             R"({"logit_scale": 0.0625})",
             R"({"text_config": {"logit_scale": 2}})",
             R"({"model_type": "gemma3_text"})",
             R"({"model_type": "cohere2"})",
             R"({"model_type": "command-r"})",
             R"({"model_type": "gpt_oss"})",
             R"({"model_type": "gpt-oss"})",
             R"({"text_config": {"model_type": "apertus"}})",
         }) {
      EXPECT_EQ(policy_of(device, fragile, asked), HalfPolicy::keep) << fragile;
      Variables forced = asked;
      forced["MLXCEL_CUDA_F16_FRAGILE"] = "1";
      EXPECT_EQ(policy_of(device, fragile, forced), HalfPolicy::to_f16)
          << fragile;
    }
    for (const char* sound :
         {R"({"logit_scale": 1.0})", R"({"logit_scale": 0})"}) {
      EXPECT_EQ(policy_of(device, sound, asked), HalfPolicy::to_f16) << sound;
    }
  }
}

WeightMap mixed() {
  WeightMap weights;
  weights.origin = "DIR";
  // 1.0, -2.0, the largest bfloat16 below float16's range, one above it, NaN.
  weights.insert(
      "a.weight",
      make_weight<uint16_t>(
          DType::bf16, {5}, {0x3f80, 0xc000, 0x477f, 0x4780, 0x7fc0}
      )
  );
  weights.insert("a.scales", make_weight<uint16_t>(DType::bf16, {1}, {0x3f00}));
  weights.insert("b.weight", make_weight<float>(DType::f32, {1}, {3.0F}));
  weights.insert("c.weight", make_weight<uint32_t>(DType::u32, {1}, {7}));
  return weights;
}

// Also what is told below a warning.
class RemarkCapture {
 public:
  RemarkCapture() {
    lines().clear();
    set_log_sink([](LogLevel, const std::string& line) {
      lines().push_back(line);
    });
  }
  ~RemarkCapture() {
    set_log_sink(nullptr);
  }
  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
  static int count(std::string_view part) {
    int found = 0;
    for (const std::string& line : lines()) {
      found += line.find(part) != std::string::npos ? 1 : 0;
    }
    return found;
  }
};

const Environment kNothingSet = [](const char*) -> const char* {
  return nullptr;
};

TEST(HalfPolicy, EveryBfloat16TensorIsConvertedOnce) {
  RemarkCapture log;
  WeightMap weights = mixed();
  EXPECT_EQ(apply_half_policy(HalfPolicy::to_f16, weights, kNothingSet), 2);
  EXPECT_EQ(weights.at("a.weight").dtype, DType::f16);
  EXPECT_EQ(weights.at("a.scales").dtype, DType::f16);
  EXPECT_EQ(weights.at("b.weight").dtype, DType::f32);
  EXPECT_EQ(weights.at("c.weight").dtype, DType::u32);
  std::vector<float> values = to_float(weights.at("a.weight"));
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[1], -2.0F);
  EXPECT_EQ(values[2], 65280.0F);
  EXPECT_TRUE(std::isinf(values[3]));
  EXPECT_TRUE(std::isnan(values[4]));
  EXPECT_EQ(RemarkCapture::count("2 bfloat16 tensors are read as float16"), 1);
  EXPECT_EQ(apply_half_policy(HalfPolicy::to_f16, weights, kNothingSet), 0);
  EXPECT_EQ(RemarkCapture::lines().size(), 1u);
}

TEST(HalfPolicy, KeepingIsToldForAFamilyUnlessSilenced) {
  RemarkCapture log;
  WeightMap weights = mixed();
  EXPECT_EQ(
      apply_half_policy(HalfPolicy::keep_for_family, weights, kNothingSet), 0
  );
  EXPECT_EQ(weights.at("a.weight").dtype, DType::bf16);
  EXPECT_EQ(RemarkCapture::count("2 tensors stay bfloat16"), 1);
  apply_half_policy(HalfPolicy::keep, weights, kNothingSet);
  apply_half_policy(HalfPolicy::to_f16, weights, [](const char* name) {
    return std::string_view(name) == "MLXCEL_NO_PRECISION_WARNING" ? ""
                                                                   : nullptr;
  });
  EXPECT_EQ(RemarkCapture::lines().size(), 1u);
}

}  // namespace
}  // namespace mlxcel::test
