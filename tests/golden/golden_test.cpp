// Golden parity: for every case under tests/golden the logits of the official
// implementation, on every backend and instruction set of this host.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "mlxcel/backend/cpu/isa.h"
#include "mlxcel/backend/factory.h"
#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/engine/score.h"
#include "mlxcel/loading/load_model.h"
#include "mlxcel/weights/shards.h"
#include "mlxcel/weights/synthetic.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

namespace fs = std::filesystem;
using Value = nlohmann::ordered_json;

// max|a - b| / max|b| per row of logits, exact mode.
constexpr double kTolerance = 1e-4;
// int8 activations: relative RMS over all logits of a case.
constexpr double kInt8Bound = 6e-2;

struct Runner {
  std::string name;
  backend::BackendChoice choice;
  std::string isa;  // of the cpu backend
};

std::vector<Runner> runners(bool exact) {
  std::vector<Runner> all;
  for (const backend::BackendFactory& factory : backend::built_backends()) {
    backend::BackendChoice choice;
    choice.device = "cpu";
    choice.numerics.exact = exact;
    if (factory.name == "cpu") {
      for (backend::cpu::Isa isa : backend::cpu::available_isas()) {
        std::string isa_name(backend::cpu::isa_name(isa));
        all.push_back({"cpu " + isa_name, choice, isa_name});
      }
    } else if (factory.name == "graph" && exact) {
      choice.reference = true;
      all.push_back({"graph", choice, ""});
    }
  }
  return all;
}

struct Case {
  fs::path folder;
  Value config;
  Value info;
  std::vector<int32_t> tokens;
  std::vector<float> expected;  // [T, V]
  int64_t vocabulary = 0;
};

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<float> read_npy(const fs::path& path) {
  std::string bytes = slurp(path);
  size_t start = 10 + load_le<uint16_t>(bytes.data() + 8);
  std::vector<float> values((bytes.size() - start) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + start, bytes.size() - start);
  return values;
}

Case read_case(const fs::path& folder) {
  Case c;
  c.folder = folder;
  c.config = Value::parse(slurp(folder / "config.json"));
  c.info = Value::parse(slurp(folder / "case.json"));
  c.tokens = c.info["tokens"].get<std::vector<int32_t>>();
  c.expected = read_npy(folder / "logits.npy");
  c.vocabulary = c.config["vocab_size"].get<int64_t>();
  return c;
}

// A checkpoint of the case's config with weights made from tensor names.
void write_checkpoint(const Value& config, const std::string& directory) {
  std::ofstream(directory + "/config.json") << config.dump();
  Json parsed = read_config(directory);
  SyntheticOptions options;
  options.dtype = DType::f32;
  if (config.contains("quantization")) {
    options.bits = config["quantization"]["bits"].get<int>();
    options.group = config["quantization"]["group_size"].get<int>();
    options.mode = QuantConfig::from_config(parsed).mode;
  }
  const Descriptor* entry =
      find_model_type(config["model_type"].get<std::string>());
  ASSERT_NE(entry, nullptr);
  write_synthetic(
      entry->family->tensors(text_config(parsed)), directory, options
  );
}

Checkpoint load(const std::string& directory, const Runner& runner) {
  if (!runner.isa.empty()) {
    setenv("MLXCEL_CPU_ISA", runner.isa.c_str(), 1);
  }
  LoadOptions options;
  options.backend = runner.choice;
  options.tokenizer = false;
  Checkpoint checkpoint = load_model(directory, options);
  unsetenv("MLXCEL_CPU_ISA");
  return checkpoint;
}

std::vector<float> logits_of(
    LanguageModel& model,
    const std::vector<int32_t>& tokens,
    std::vector<int64_t> chunks = {}
) {
  Engine engine(model, static_cast<int64_t>(tokens.size()));
  ScoreParams params;
  params.chunks = std::move(chunks);
  params.keep_logits = true;
  return score(engine, tokens, params).logits;
}

// The largest over rows of max|a - b| / max|b|.
double distance(
    const std::vector<float>& a, const std::vector<float>& b, int64_t width
) {
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size()) {
    return INFINITY;
  }
  double worst = 0;
  for (size_t row = 0; row < b.size(); row += static_cast<size_t>(width)) {
    double difference = 0;
    double largest = 0;
    for (size_t i = row; i < row + static_cast<size_t>(width); ++i) {
      double gap = std::fabs(static_cast<double>(a[i]) - b[i]);
      difference = std::isnan(gap) ? INFINITY : std::max(difference, gap);
      largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

double relative_rms(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  fs::path root = fs::path(MLXCEL_TEST_DATA) / "golden";
  for (const auto& family : fs::directory_iterator(root)) {
    if (!family.is_directory()) {
      continue;
    }
    for (const auto& folder : fs::directory_iterator(family)) {
      if (fs::exists(folder.path() / "logits.npy")) {
        names.push_back(fs::relative(folder.path(), root).string());
      }
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    case_ = read_case(fs::path(MLXCEL_TEST_DATA) / "golden" / GetParam());
    write_checkpoint(case_.config, directory_.path());
  }

  Case case_;
  TemporaryDirectory directory_;
};

TEST_P(Golden, ExactModeMatchesTheOfficialLogits) {
  for (const Runner& runner : runners(true)) {
    SCOPED_TRACE(runner.name);
    Checkpoint checkpoint = load(directory_.path(), runner);
    auto logits = logits_of(*checkpoint.model.model, case_.tokens);
    EXPECT_LE(distance(logits, case_.expected, case_.vocabulary), kTolerance);
  }
}

TEST_P(Golden, ChunksAndSingleTokensGiveTheSame) {
  for (const Runner& runner : runners(true)) {
    SCOPED_TRACE(runner.name);
    Checkpoint checkpoint = load(directory_.path(), runner);
    for (const std::vector<int64_t>& chunks :
         {std::vector<int64_t>{24, 1, 1}, {7}, {1}}) {
      auto logits = logits_of(*checkpoint.model.model, case_.tokens, chunks);
      EXPECT_LE(distance(logits, case_.expected, case_.vocabulary), kTolerance)
          << "first chunk " << chunks[0];
    }
  }
}

// Three sequences of different lengths in shared steps, chunked prompts and
// single generated tokens mixed: each as if alone.
TEST_P(Golden, SequencesInOneBatchAreAsIfAlone) {
  auto width = static_cast<size_t>(case_.vocabulary);
  for (const Runner& runner : runners(true)) {
    SCOPED_TRACE(runner.name);
    Checkpoint checkpoint = load(directory_.path(), runner);
    Engine engine(*checkpoint.model.model, 1000);
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<size_t> fed(3, 0);
    for (int i = 0; i < 3; ++i) {
      sequences.push_back(engine.open());
    }
    std::span<const int32_t> tokens = case_.tokens;
    // Sizes per step of each sequence; 0 leaves it out.
    const size_t plan[][3] = {
        {9, 20, 0}, {1, 3, 40}, {13, 1, 0}, {1, 1, 0}, {16, 15, 0}};
    for (const auto& sizes : plan) {
      std::vector<StepInput> inputs;
      std::vector<size_t> starts;
      for (size_t s = 0; s < 3; ++s) {
        if (sizes[s] > 0) {
          auto role =
              sizes[s] == 1 ? backend::Role::generated : backend::Role::prompt;
          inputs.push_back(
              {sequences[s].get(),
               tokens.subspan(fed[s], sizes[s]),
               role,
               Logits::all}
          );
          starts.push_back(fed[s]);
          fed[s] += sizes[s];
        }
      }
      backend::Tensor logits = engine.step(inputs);
      std::vector<float> rows(static_cast<size_t>(logits.rows()) * width);
      engine.read(logits, rows);
      size_t row = 0;
      for (size_t i = 0; i < inputs.size(); ++i) {
        size_t count = inputs[i].tokens.size() * width;
        std::vector<float> got(
            rows.begin() + static_cast<ptrdiff_t>(row),
            rows.begin() + static_cast<ptrdiff_t>(row + count)
        );
        auto expected =
            case_.expected.begin() + static_cast<ptrdiff_t>(starts[i] * width);
        std::vector<float> want(
            expected, expected + static_cast<ptrdiff_t>(count)
        );
        EXPECT_LE(distance(got, want, case_.vocabulary), kTolerance);
        row += count;
      }
    }
  }
}

TEST_P(Golden, Int8ActivationsStayWithinTheBound) {
  for (const Runner& runner : runners(false)) {
    SCOPED_TRACE(runner.name);
    Checkpoint checkpoint = load(directory_.path(), runner);
    auto logits = logits_of(*checkpoint.model.model, case_.tokens);
    EXPECT_LE(
        relative_rms(logits, case_.expected),
        case_.info.value("int8_bound", kInt8Bound)
    );
  }
}

TEST_P(Golden, WeightRouteGivesIdenticalLogits) {
  for (const Runner& runner : runners(true)) {
    SCOPED_TRACE(runner.name);
    Checkpoint checkpoint = load(directory_.path(), runner);
    LoadOptions options;
    options.backend = runner.choice;
    if (!runner.isa.empty()) {
      setenv("MLXCEL_CPU_ISA", runner.isa.c_str(), 1);
    }
    LoadedModel model = load_model_from_weights(
        directory_.path(), load_weights(directory_.path()), options
    );
    unsetenv("MLXCEL_CPU_ISA");
    EXPECT_EQ(
        logits_of(*checkpoint.model.model, case_.tokens),
        logits_of(*model.model, case_.tokens)
    );
  }
}

// The case can fail: any other tensor moves the logits by 100 tolerances.
TEST_P(Golden, EveryTensorMatters) {
  Runner runner = runners(true).back();
  LoadOptions options;
  options.backend = runner.choice;
  WeightMap weights = load_weights(directory_.path());
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights) {
    names.push_back(name);
  }
  for (const std::string& name : names) {
    WeightMap changed = load_weights(directory_.path());
    Weight weight = changed.at(name);
    std::span<const std::byte> bytes = weight.bytes();
    std::vector<std::byte> other(bytes.begin(), bytes.end());
    // Shift floats, flip the bits of packed codes.
    for (size_t i = 0; i + 4 <= other.size(); i += 4) {
      if (weight.dtype == DType::f32) {
        // Not all rows alike: scores that grow by the same choose the same.
        bool up = (static_cast<uint32_t>(i / 4) * 2654435761U >> 20) % 2 == 0;
        float value = load_le<float>(&other[i]) + (up ? 0.5F : -0.5F);
        std::memcpy(&other[i], &value, 4);
      } else {
        // Scales of one byte: not all by the same power of two.
        uint32_t flip = weight.dtype == DType::u8 ? 0x03010200u : ~0u;
        uint32_t word = load_le<uint32_t>(&other[i]) ^ flip;
        std::memcpy(&other[i], &word, 4);
      }
    }
    weight.source = buffer_source(std::move(other), "changed");
    changed.insert(name, weight);
    LoadedModel model =
        load_model_from_weights(directory_.path(), changed, options);
    auto logits = logits_of(*model.model, case_.tokens);
    EXPECT_GE(
        distance(logits, case_.expected, case_.vocabulary), 100 * kTolerance
    ) << name;
  }
}

TEST_P(Golden, EveryConfigKeyMatters) {
  Runner runner = runners(true).back();
  for (const auto& [key, value] : case_.info["changes"].items()) {
    SCOPED_TRACE(key);
    Value config = case_.config;
    config[key] = value;
    TemporaryDirectory other;
    // The weights stay those of the case unless the new shapes need others.
    fs::copy(directory_ / "model.safetensors", other / "model.safetensors");
    std::ofstream(other / "config.json") << config.dump();
    double moved = INFINITY;
    try {
      Checkpoint checkpoint = load(other.path(), runner);
      auto logits = logits_of(*checkpoint.model.model, case_.tokens);
      if (checkpoint.model.model->vocabulary() == case_.vocabulary) {
        moved = distance(logits, case_.expected, case_.vocabulary);
      }
    } catch (const Error&) {
      continue;  // refused: seen as well
    }
    EXPECT_GE(moved, 100 * kTolerance);
  }
  // Nothing in the config goes unmentioned.
  for (const auto& [key, value] : case_.config.items()) {
    bool listed =
        case_.info["changes"].contains(key) || key == "quantization" ||
        std::find(case_.info["dead"].begin(), case_.info["dead"].end(), key) !=
            case_.info["dead"].end();
    EXPECT_TRUE(listed) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    Golden,
    testing::ValuesIn(case_names()),
    [](const testing::TestParamInfo<std::string>& tested) {
      std::string name = tested.param;
      std::replace(name.begin(), name.end(), '/', '_');
      return name;
    }
);

}  // namespace
}  // namespace mlxcel
