#include "mlxcel/core/shard_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

struct Folder : TemporaryDirectory {
  explicit Folder(const Names& names) {
    for (const std::string& name : names) {
      write(name, "x");
    }
  }
  ShardFiles files() const {
    return find_shard_files(path());
  }
  ShardPlan plan(const Names& indexed) const {
    return plan_shards(path(), files(), indexed);
  }
};

TEST(ShardFiles, CountsByNameAndKind) {
  Folder folder(
      {"b.safetensors",
       "a.safetensors",
       ".hidden.safetensors",
       "a.SAFETENSORS",
       "a.safetensors.part",
       "consolidated.safetensors",
       "consolidated.00.safetensors",
       "adapters.safetensors",
       "0000100_adapters.safetensors",
       "adapter_model.safetensors",
       "adapter_model-00001-of-00002.safetensors"}
  );
  folder.write("empty.safetensors", "");
  fs::create_directory(folder / "folder.safetensors");
  fs::create_symlink("gone", folder / "link.safetensors");
  ShardFiles files = folder.files();
  EXPECT_EQ(files.whole, (Names{"a.safetensors", "b.safetensors"}));
  EXPECT_EQ(files.empty, Names{"empty.safetensors"});
  EXPECT_EQ(files.broken, Names{"link.safetensors"});
  EXPECT_EQ(files.adapters.size(), 4u);
  EXPECT_EQ(files.all.size(), 14u);
}

TEST(ShardFiles, ConsolidatedAloneCounts) {
  Folder folder({"consolidated.00.safetensors", "consolidated.safetensors"});
  EXPECT_EQ(folder.files().whole.size(), 2u);
  // Not beside a file that is still to come.
  folder.write("model.safetensors", "");
  EXPECT_TRUE(folder.files().whole.empty());
}

TEST(ShardPlan, WithoutAnIndexAllFilesWhole) {
  Folder folder({"a.safetensors", "b.safetensors"});
  EXPECT_EQ(folder.plan({}).present, (Names{"a.safetensors", "b.safetensors"}));
  EXPECT_TRUE(folder.plan({}).missing.empty());
  folder.write("c.safetensors", "");
  EXPECT_EQ(folder.plan({}).missing, Names{"c.safetensors"});
}

TEST(ShardPlan, NumberedFilesComeTogether) {
  Folder folder(
      {"m-00001-of-00003.safetensors",
       "m-00003-of-00003.safetensors",
       "n-00001-of-00001.safetensors"}
  );
  EXPECT_EQ(folder.plan({}).missing, Names{"m-00002-of-00003.safetensors"});
  folder.write("m-00002-of-00003.safetensors", "");
  EXPECT_EQ(folder.plan({}).missing, Names{"m-00002-of-00003.safetensors"});
  folder.write("m-00002-of-00003.safetensors", "x");
  EXPECT_TRUE(folder.plan({}).missing.empty());
}

TEST(ShardPlan, IndexIsFollowedWhereItsFilesAreThere) {
  Folder folder({"1.safetensors", "2.safetensors", "mtp.safetensors"});
  folder.write("stray.safetensors", "");
  ShardPlan plan = folder.plan({"1.safetensors", "2.safetensors"});
  EXPECT_EQ(plan.present, (Names{"1.safetensors", "2.safetensors"}));
  EXPECT_TRUE(plan.missing.empty());
  EXPECT_FALSE(plan.stale);
}

TEST(ShardPlan, StaleOnlyWithAFileThatTheIndexLacks) {
  Folder folder({"1.safetensors"});
  Names index = {"1.safetensors", "2.safetensors"};
  EXPECT_FALSE(folder.plan(index).stale);
  EXPECT_EQ(folder.plan(index).missing, Names{"2.safetensors"});
  // None of these is one.
  folder.write("consolidated.safetensors", "x");
  folder.write("adapters.safetensors", "x");
  folder.write("adapter_model.safetensors", "x");
  folder.write(".2.safetensors", "x");
  folder.write("2.safetensors", "");
  folder.write("3.safetensors", "");
  fs::create_symlink("gone", folder / "4.safetensors");
  EXPECT_FALSE(folder.plan(index).stale);
  EXPECT_EQ(folder.plan(index).present, Names{"1.safetensors"});
  folder.write("3.safetensors", "x");
  ShardPlan plan = folder.plan(index);
  EXPECT_TRUE(plan.stale);
  EXPECT_EQ(plan.present, (Names{"1.safetensors", "3.safetensors"}));
  EXPECT_EQ(plan.missing, Names{"2.safetensors"});  // empty
}

TEST(ShardPlan, NamesThatLeaveTheDirectoryAreNotLookedUp) {
  Folder outer({"secret.safetensors"});
  fs::create_directory(outer / "model");
  std::string model = outer / "model";
  Names index = {"../secret.safetensors", outer / "secret.safetensors"};
  ShardPlan plan = plan_shards(model, find_shard_files(model), index);
  EXPECT_EQ(plan.missing, index);
}

// Each of many files could claim to be one of 99,999.
TEST(ShardPlan, HugeNumberedSetsAreBounded) {
  TemporaryDirectory folder;
  for (int i = 0; i < 2000; ++i) {
    folder.write(std::to_string(i) + "-00001-of-99999.safetensors", "x");
  }
  auto start = std::chrono::steady_clock::now();
  ShardPlan plan =
      plan_shards(folder.path(), find_shard_files(folder.path()), {});
  EXPECT_LE(plan.missing.size(), 200'000u);
  EXPECT_GT(plan.missing.size(), 99'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(UnfinishedDownloads, OfEveryKind) {
  TemporaryDirectory folder;
  folder.write("model.safetensors", "x");
  EXPECT_TRUE(unfinished_downloads(folder.path()).empty());
  folder.write(".model.safetensors.0123456789abcdef.part", "x");
  folder.write("m.safetensors.tmp-1234", "x");
  folder.write("m.safetensors.crdownload", "x");
  folder.write("m.safetensors.aria2", "x");
  fs::create_directories(folder / ".cache/huggingface/download");
  folder.write(".cache/huggingface/download/a.b.incomplete", "x");
  folder.write(".cache/huggingface/download/model.safetensors.metadata", "x");
  EXPECT_EQ(unfinished_downloads(folder.path()).size(), 5u);
  EXPECT_EQ(
      unfinished_downloads(folder.path()).back(),
      ".cache/huggingface/download/a.b.incomplete"
  );
}

TEST(UnfinishedDownloads, BlobsOfASnapshot) {
  TemporaryDirectory folder;
  fs::create_directories(folder / "models--o--n/blobs");
  fs::create_directories(folder / "models--o--n/snapshots/abc");
  folder.write("models--o--n/blobs/0123.incomplete", "x");
  EXPECT_EQ(
      unfinished_downloads(folder / "models--o--n/snapshots/abc"),
      Names{"../../blobs/0123.incomplete"}
  );
  EXPECT_TRUE(unfinished_downloads(folder / "models--o--n/snapshots").empty());
}

}  // namespace
}  // namespace mlxcel
