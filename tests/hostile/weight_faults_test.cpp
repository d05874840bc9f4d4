// Files of weights that are cut, written to or replaced while the model is
// loaded or in use: the request fails with the file named, the process lives,
// and the model is unusable until it is loaded again (design 7).

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "mlxcel/backend/factory.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/fault_guard.h"
#include "mlxcel/engine/engine.h"
#include "mlxcel/weights/safetensors.h"
#include "mlxcel/weights/shards.h"
#include "mlxcel/weights/transform/lazy_planes.h"
#include "tests/hostile/tiny_model.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "model.safetensors";
const std::vector<int32_t> kPrompt = {1, 2, 3};

bool has_graph() {
  for (const auto& backend : backend::built_backends()) {
    if (backend.name == "graph") {
      return true;
    }
  }
  return false;
}

// Large enough that its matrices fill many pages.
std::string wide_config() {
  return patched(R"({"intermediate_size": 4096, "tie_word_embeddings": false})"
  );
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Writes other bytes of the same length into the file itself.
void overwrite(const std::string& path) {
  std::string bytes = slurp(path);
  std::reverse(bytes.begin() + 8192, bytes.end());
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << bytes;
}

// The clock of a file system ticks some hundred times a second.
void let_the_clock_tick() {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

// Moves the tensors whose names have `part` into a file of their own.
std::string move_tensors(const Model& model, const std::string& part) {
  std::string path = model.dir() / kFile;
  std::string bytes = slurp(path);
  std::vector<test::FileTensor> taken;
  std::vector<test::FileTensor> left;
  for (const TensorEntry& entry : read_safetensors_header(
           std::as_bytes(std::span(bytes.data(), bytes.size())), path
       )) {
    bool moves = entry.name.find(part) != std::string::npos;
    (moves ? taken : left)
        .push_back(
            {entry.name,
             std::string(dtype_name(entry.dtype)),
             entry.shape,
             bytes.substr(entry.begin, entry.end - entry.begin)}
        );
  }
  EXPECT_FALSE(taken.empty());
  model.dir().write(kFile, test::safetensors_file(left));
  return model.dir().write("other.safetensors", test::safetensors_file(taken));
}

// A model and a sequence in use.
class Running {
 public:
  Running(const std::string& directory, bool reference)
      : checkpoint(load(directory, reference)),
        engine(*checkpoint.model.model, 64),
        sequence(engine.open()) {}

  std::vector<float> ask() {
    backend::Tensor logits = engine.prefill(*sequence, kPrompt, 64);
    std::vector<float> row(128);
    engine.read(logits, row);
    return row;
  }
  void expect_broken(const std::string& file) {
    for (int i = 0; i < 3; ++i) {
      test::expect_error(
          [&] { ask(); }, ErrorCode::io, {file, "load the model again"}
      );
      EXPECT_LE(sequence->length(), 3);
    }
    // Nor is it well for others.
    sequence = engine.open();
    test::expect_error([&] { ask(); }, ErrorCode::io, {file});
  }

  Checkpoint checkpoint;
  Engine engine;
  std::unique_ptr<Sequence> sequence;
};

class Lazy {
 public:
  Lazy() {
    setenv("MLXCEL_WEIGHT_MATERIALIZATION", "lazy", 1);
  }
  ~Lazy() {
    unsetenv("MLXCEL_WEIGHT_MATERIALIZATION");
  }
};

/// Parameter: whether on the graph backend.
class WeightFault : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !has_graph()) {
      GTEST_SKIP() << "built without MLX";
    }
    FaultGuard::install();
  }
  std::string file(const std::string& name = kFile) const {
    return model.dir() / name;
  }
  Model model{wide_config()};
};

INSTANTIATE_TEST_SUITE_P(
    On,
    WeightFault,
    testing::Bool(),
    [](const auto& test) { return test.param ? "graph" : "cpu"; }
);

TEST_P(WeightFault, CutWhileInUse) {
  Running running(model.path(), GetParam());
  running.ask();
  fs::resize_file(file(), 4096);
  running.expect_broken(file());
}

TEST_P(WeightFault, CutByOneByte) {
  Running running(model.path(), GetParam());
  running.ask();
  fs::resize_file(file(), fs::file_size(file()) - 1);
  running.expect_broken(file());
}

TEST_P(WeightFault, CutAfterLoadingBeforeTheFirstStep) {
  Lazy lazy;
  Running running(model.path(), GetParam());
  fs::resize_file(file(), 4096);
  running.expect_broken(file());
}

TEST_P(WeightFault, EmptiedWhileInUse) {
  Running running(model.path(), GetParam());
  running.ask();
  fs::resize_file(file(), 0);
  running.expect_broken(file());
}

TEST_P(WeightFault, WrittenIntoWhileInUse) {
  Running running(model.path(), GetParam());
  running.ask();
  let_the_clock_tick();
  overwrite(file());
  running.expect_broken(file());
}

// As downloads and converters write: the name changes hands, what was mapped
// stays.
TEST_P(WeightFault, ReplacedOrRemovedWhileInUseGoesOn) {
  Running running(model.path(), GetParam());
  std::vector<float> before = running.ask();
  let_the_clock_tick();
  fs::copy_file(file(), file("new"));
  overwrite(file("new"));
  fs::rename(file("new"), file());
  running.sequence = running.engine.open();
  EXPECT_EQ(running.ask(), before);
  fs::remove(file());
  running.sequence = running.engine.open();
  EXPECT_EQ(running.ask(), before);
}

TEST_P(WeightFault, LoadingAgainHelps) {
  std::string good = slurp(file());
  Running running(model.path(), GetParam());
  std::vector<float> before = running.ask();
  fs::resize_file(file(), 4096);
  running.expect_broken(file());
  model.dir().write(kFile, good);
  running.expect_broken(file());
  Running again(model.path(), GetParam());
  EXPECT_EQ(again.ask(), before);
}

// Vectors are read once, at load; their file counts all the same.
TEST_P(WeightFault, NormsInACutFile) {
  std::string path = move_tensors(model, "norm");
  for (bool eager : {true, false}) {
    std::string good = slurp(path);
    WeightMap weights = load_weights(model.path());
    fs::resize_file(path, fs::file_size(path) - 64);
    std::optional<Lazy> lazy;
    if (!eager) {
      lazy.emplace();
    }
    LoadOptions options;
    options.backend.device = "cpu";
    options.backend.reference = GetParam();
    test::expect_error(
        [&] {
          LoadedModel loaded =
              load_model_from_weights(model.path(), weights, options);
          Engine engine(*loaded.model, 64);
          engine.prefill(*engine.open(), kPrompt, 64);
        },
        ErrorCode::io,
        {path}
    );
    model.dir().write("other.safetensors", good);
  }
}

TEST_P(WeightFault, EmbeddingInACutFile) {
  std::string path = move_tensors(model, "embed_tokens");
  Running running(model.path(), GetParam());
  running.ask();
  fs::resize_file(path, 8192);
  running.expect_broken(path);
}

TEST_P(WeightFault, HeadInACutFile) {
  std::string path = move_tensors(model, "lm_head");
  Running running(model.path(), GetParam());
  running.ask();
  fs::resize_file(path, 8192);
  running.expect_broken(path);
}

// On graph the step has not read the head yet.
TEST_P(WeightFault, HeadCutBetweenAStepAndItsLogits) {
  std::string path = move_tensors(model, "lm_head");
  Running running(model.path(), GetParam());
  std::vector<float> before = running.ask();
  running.sequence = running.engine.open();
  backend::Tensor logits =
      running.engine.prefill(*running.sequence, kPrompt, 64);
  fs::resize_file(path, 8192);
  std::vector<float> row(128);
  if (GetParam()) {
    test::expect_error(
        [&] { running.engine.read(logits, row); }, ErrorCode::io, {path}
    );
  } else {
    running.engine.read(logits, row);
    EXPECT_EQ(row, before);
  }
}

// Between reading the header and reading the weights.
TEST_P(WeightFault, CutWhileLoading) {
  WeightMap weights = load_weights(model.path());
  fs::resize_file(file(), 16384);
  LoadOptions options;
  options.backend.device = "cpu";
  options.backend.reference = GetParam();
  test::expect_error(
      [&] { load_model_from_weights(model.path(), weights, options); },
      ErrorCode::io,
      {file()}
  );
}

// --- planes that are made of others when first asked for ---

class LazyPlanes : public testing::Test {
 protected:
  LazyPlanes() {
    FaultGuard::install();
    path = dir.write(
        "m.safetensors",
        test::safetensors_file({{"w", "U8", {100000}, std::string(100000, 'w')}}
        )
    );
    load_safetensors(path, weights);
    planes = lazy_planes(
        {weights.at("w")},
        {100000},
        [this](
            const std::vector<Weight>& inputs, std::vector<std::byte*> made
        ) {
          ++times;
          auto bytes = inputs.front().bytes();
          std::copy(bytes.begin(), bytes.end(), made.front());
        }
    );
  }
  test::TempDir dir;
  std::string path;
  WeightMap weights;
  std::vector<std::shared_ptr<const WeightSource>> planes;
  int times = 0;
};

TEST_F(LazyPlanes, OfACutFileAreAnErrorEachTime) {
  fs::resize_file(path, 4096);
  for (int i = 0; i < 2; ++i) {
    test::expect_error([&] { planes.front()->bytes(); }, ErrorCode::io, {path});
  }
}

TEST_F(LazyPlanes, OfAFileCutByOneByteAreAnError) {
  fs::resize_file(path, fs::file_size(path) - 1);
  test::expect_error([&] { planes.front()->bytes(); }, ErrorCode::io, {path});
}

// Once made they need the file no more.
TEST_F(LazyPlanes, MadeBeforeTheCutStay) {
  EXPECT_EQ(planes.front()->bytes().size(), 100000u);
  fs::resize_file(path, 0);
  EXPECT_EQ(planes.front()->bytes()[99999], std::byte{'w'});
  EXPECT_EQ(times, 1);
  EXPECT_EQ(planes.front()->file(), nullptr);
}

}  // namespace
}  // namespace mlxcel
