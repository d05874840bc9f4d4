#include "mlxcel/cache/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "mlxcel/core/error.h"

namespace mlxcel::test {

namespace {

using cache::BlockAllocator;
using cache::BlockTable;

TEST(BlockTable, GrowsByBlocksOf32Tokens) {
  BlockAllocator allocator(8);
  BlockTable table(allocator);
  EXPECT_TRUE(table.blocks().empty());
  table.reserve(1);
  EXPECT_EQ(table.blocks().size(), 1U);
  table.reserve(32);
  EXPECT_EQ(table.blocks().size(), 1U);
  table.reserve(33);
  EXPECT_EQ(table.blocks().size(), 2U);
  table.reserve(5);
  EXPECT_EQ(table.blocks().size(), 2U);
  EXPECT_EQ(allocator.available(), 6);
}

TEST(BlockTable, KeepsTheOrderOfItsBlocks) {
  BlockAllocator allocator(8);
  BlockTable table(allocator);
  table.reserve(70);
  std::vector<int32_t> before(table.blocks().begin(), table.blocks().end());
  table.reserve(200);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), table.blocks().begin()));
}

TEST(BlockTable, NoBlockHasTwoOwners) {
  BlockAllocator allocator(16);
  BlockTable a(allocator);
  BlockTable b(allocator);
  for (int64_t tokens = 1; tokens <= 256; tokens += 30) {
    a.reserve(tokens);
    b.reserve(tokens / 2);
    a.truncate(tokens - 20);
  }
  std::set<int32_t> blocks(a.blocks().begin(), a.blocks().end());
  blocks.insert(b.blocks().begin(), b.blocks().end());
  EXPECT_EQ(blocks.size(), a.blocks().size() + b.blocks().size());
  EXPECT_GE(*blocks.begin(), 0);
  EXPECT_LT(*blocks.rbegin(), 16);
}

TEST(BlockTable, TruncatesToTheTokensKept) {
  BlockAllocator allocator(8);
  BlockTable table(allocator);
  table.reserve(256);
  EXPECT_EQ(allocator.available(), 0);
  table.truncate(33);
  EXPECT_EQ(table.blocks().size(), 2U);
  EXPECT_EQ(allocator.available(), 6);
  table.truncate(100);
  EXPECT_EQ(table.blocks().size(), 2U);
  table.truncate(0);
  EXPECT_TRUE(table.blocks().empty());
  EXPECT_EQ(allocator.available(), 8);
}

TEST(BlockTable, AFullPoolChangesNothing) {
  BlockAllocator allocator(3);
  BlockTable a(allocator);
  BlockTable b(allocator);
  a.reserve(40);
  b.reserve(20);
  try {
    b.reserve(65);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_NE(error.message().find("0 of 3 are free"), std::string::npos)
        << error.message();
  }
  EXPECT_EQ(b.blocks().size(), 1U);
  a.truncate(0);
  b.reserve(65);
  EXPECT_EQ(b.blocks().size(), 3U);
}

TEST(BlockTable, GivesItsBlocksBackWhenItDies) {
  BlockAllocator allocator(4);
  {
    BlockTable table(allocator);
    table.reserve(128);
    EXPECT_EQ(allocator.available(), 0);
  }
  EXPECT_EQ(allocator.available(), 4);
}

}  // namespace

}  // namespace mlxcel::test
