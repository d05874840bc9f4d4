// Memory that runs out, at each allocation in turn: an Error or bad_alloc,
// never the end of the process, and afterwards all goes on as before.

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <tuple>

#include "mlxcel/backend/factory.h"
#include "mlxcel/core/error.h"
#include "mlxcel/engine/engine.h"
#include "tests/hostile/tiny_model.h"
#include "tests/unit/support/failing_new.h"

namespace mlxcel::test {
namespace {

using Which = FailingNew::Which;

bool has_graph() {
  for (const auto& backend : backend::built_backends()) {
    if (backend.name == "graph") {
      return true;
    }
  }
  return false;
}

void expect_out_of_memory(const Error& error) {
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.message();
}

// Calls `action` with ever more allocations granted until none fails, each
// time after `prepare`. Gives the number of calls in which one did.
template <typename Prepare, typename Action>
int exhaust(Which which, size_t size, Prepare prepare, Action action) {
  int failures = 0;
  for (int64_t granted = 0; failures < 20000; granted += 1 + granted / 40) {
    prepare();
    try {
      FailingNew failing(granted, which, size);
      action();
      if (!FailingNew::failed()) {
        return failures;
      }
    } catch (const Error& error) {
      expect_out_of_memory(error);
    } catch (const std::bad_alloc&) {
    }
    ++failures;
  }
  ADD_FAILURE() << "does not end";
  return failures;
}

// Libraries end the process where small allocations fail and go on failing:
// nlohmann-json and MLX allocate in destructors.
constexpr size_t kConfigParts = 512;
constexpr size_t kArrayParts = 128;

/// Parameters: on graph; which allocations fail.
class Exhausted
    : public testing::TestWithParam<std::tuple<bool, FailingNew::Which>> {
 protected:
  bool reference() const {
    return std::get<0>(GetParam());
  }
  Which which() const {
    return std::get<1>(GetParam());
  }
  void SetUp() override {
    if (reference() && !has_graph()) {
      GTEST_SKIP() << "built without MLX";
    }
  }
  Model model;
};

INSTANTIATE_TEST_SUITE_P(
    On,
    Exhausted,
    testing::Values(
        std::tuple(false, Which::next),
        std::tuple(false, Which::all),
        std::tuple(true, Which::next)
    ),
    [](const auto& test) {
      return std::string(std::get<0>(test.param) ? "graph" : "cpu") +
             (std::get<1>(test.param) == Which::next ? "Once" : "Lasting");
    }
);

TEST_P(Exhausted, LoadingFails) {
  load(model.path(), reference());  // what is made once per process
  int failures = exhaust(
      which(), kConfigParts, [] {}, [&] { load(model.path(), reference()); }
  );
  EXPECT_GT(failures, 3);
  if (!reference() && which() == Which::next) {
    // Ours bear any failure, one at a time.
    failures = exhaust(
        which(), 0, [] {}, [&] { load(model.path()); }
    );
    EXPECT_GT(failures, 50);
  }
  EXPECT_EQ(load(model.path(), reference()).model.directory, model.path());
}

TEST_P(Exhausted, AStepFailsAndTheSequenceGoesOn) {
  Checkpoint checkpoint = load(model.path(), reference());
  Engine engine(*checkpoint.model.model, 64);
  std::vector<int32_t> prompt = {1, 2, 3, 4, 5};
  std::vector<int32_t> next = {6};
  auto answer = [&](Sequence& sequence) {
    std::vector<float> row(128);
    engine.read(engine.prefill(sequence, next, 64), row);
    return row;
  };
  auto fresh = engine.open();
  engine.prefill(*fresh, prompt, 64);
  std::vector<float> expected = answer(*fresh);

  auto sequence = engine.open();
  // What a failed step took with it is computed again, as generate() does.
  auto complete = [&] {
    auto held = sequence->tokens();
    auto end =
        std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end());
    sequence->truncate(end.first - held.begin());
    engine.prefill(*sequence, {end.second, prompt.end()}, 64);
  };
  size_t smallest = reference() ? kArrayParts : 0;
  int failures = exhaust(which(), smallest, complete, [&] {
    StepInput input{sequence.get(), next};
    engine.step({&input, 1});
  });
  EXPECT_GT(failures, 0);
  complete();
  EXPECT_EQ(answer(*sequence), expected);
}

}  // namespace
}  // namespace mlxcel::test
