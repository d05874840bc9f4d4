#include "mlxcel/weights/tensor_table.h"

#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

const TensorTable kTable = {
    {"a.weight", {4, 64}},
    {"norm.weight", {64}, TensorRole::vector},
    {"a.bias", {4}, TensorRole::vector, false},
};

WeightMap map_of(const std::vector<std::string>& names) {
  WeightMap weights;
  weights.origin = "DIR";
  for (const std::string& name : names) {
    weights.insert(name, make_weight<uint8_t>(DType::u8, {1}, {1}));
  }
  return weights;
}

TEST(TensorTable, CompleteCheckpointPassesQuietly) {
  LogCapture log;
  check_tensors(kTable, map_of({"a.weight", "norm.weight"}));
  check_tensors(
      kTable,
      map_of({"a.weight", "a.scales", "a.biases", "a.bias", "norm.weight"})
  );
  EXPECT_TRUE(LogCapture::lines().empty());
}

TEST(TensorTable, EveryMissingTensorIsNamed) {
  expect_error(
      [] {
        check_tensors(kTable, map_of({"a.scales", "a.bias"}));
      },
      ErrorCode::not_found,
      {"DIR", "2 of 3", "a.weight", "norm.weight"}
  );
}

TEST(TensorTable, ThousandsOfMissingTensorsAreCutShort) {
  TensorTable table;
  for (int i = 0; i < 5000; ++i) {
    table.push_back({"t" + std::to_string(i), {1}});
  }
  expect_error(
      [&] { check_tensors(table, map_of({})); },
      ErrorCode::not_found,
      {"5000 of 5000", "t0", "and 4960 more"}
  );
}

TEST(TensorTable, MissingAndUnexpected) {
  TensorTable table = kTable;
  table.push_back({"head.weight", {}, TensorRole::unused, false});
  TableDifference difference = compare_with_table(
      table,
      map_of(
          {"a.weight",
           "a.scales",
           "a.global_scale",
           "a.bias",
           "head.weight",
           "head.scales",
           "norm.scales",
           "b.weight"}
      )
  );
  EXPECT_EQ(difference.missing, std::vector<std::string>{"norm.weight"});
  EXPECT_EQ(
      difference.unexpected,
      (std::vector<std::string>{"b.weight", "norm.scales"})
  );
}

TEST(TensorTable, UnexpectedTensorsAreToldOnce) {
  LogCapture log;
  check_tensors(
      kTable,
      map_of({"a.weight", "norm.weight", "norm.scales", "b.weight", "bad\nname"}
      )
  );
  ASSERT_EQ(LogCapture::lines().size(), 1u);
  for (const char* part :
       {"DIR",
        "3 tensors",
        "\"b.weight\"",
        "\"norm.scales\"",
        "bad\\x0aname"}) {
    EXPECT_EQ(LogCapture::count(part), 1) << part;
  }
}

}  // namespace
}  // namespace mlxcel::test
