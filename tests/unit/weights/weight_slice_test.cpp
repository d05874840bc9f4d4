#include "mlxcel/weights/weight_slice.h"

#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

TEST(WeightSlice, RowsAndElementsAreViews) {
  Weight all = make_weight<float>(
      DType::f32, {3, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
  );
  Weight rows = slice_rows(all, 1, 2);
  EXPECT_EQ(rows.shape, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(to_float(rows), (std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(rows.bytes().data(), all.bytes().data() + 16);
  Weight element = element_of(all, 2);
  EXPECT_EQ(element.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(to_float(element), (std::vector<float>{8, 9, 10, 11}));
  EXPECT_EQ(to_float(slice_rows(element, 1, 1)), (std::vector<float>{10, 11}));
  EXPECT_EQ(slice_rows(all, 0, 3).source, all.source);
  EXPECT_EQ(slice_rows(all, 1, 0).bytes().size(), 0u);
}

TEST(WeightSlice, PartsOfAStackAreTheOriginals) {
  Weight a = make_weight<float>(DType::f32, {1, 2}, {1, 2});
  Weight b = make_weight<float>(DType::f32, {1, 2}, {3, 4});
  Weight c = make_weight<float>(DType::f32, {1, 2}, {5, 6});
  Weight stack = stack_weights({a, b, c});
  EXPECT_EQ(stack.shape, (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(element_of(stack, 1).source, b.source);
  EXPECT_EQ(element_of(slice_rows(stack, 1, 2), 1).source, c.source);
  EXPECT_EQ(to_float(stack), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(
      to_float(slice_rows(stack, 1, 2)), (std::vector<float>{3, 4, 5, 6})
  );
}

}  // namespace
}  // namespace mlxcel::test
