#include "mlxcel/weights/shards.h"

#include <fmt/format.h>

#include <filesystem>

#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string shard_of(const std::string& tensor, const std::string& bytes) {
  return safetensors_file(
      {{tensor, "U8", {static_cast<int64_t>(bytes.size())}, bytes}}
  );
}

std::string index_of(const std::string& map) {
  return R"({"metadata":{"total_size":3},"weight_map":{)" + map + "}}";
}

std::string text(const Weight& weight) {
  auto bytes = weight.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Shards, WithoutIndexEveryTopLevelFileInOrder) {
  TempDir dir;
  fs::create_directory(dir.at("sub"));
  dir.write("sub/c.safetensors", shard_of("c", "c"));
  dir.write("b.safetensors", shard_of("b", "b"));
  dir.write("a.safetensors", shard_of("a", "a"));
  dir.write(".hidden.safetensors", "not one");
  dir.write("a.bin", "not one");
  EXPECT_EQ(
      list_shards(dir.path()),
      (std::vector<std::string>{
          dir.at("a.safetensors"), dir.at("b.safetensors")})
  );
  WeightMap weights = load_weights(dir.path());
  EXPECT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights.origin, dir.path());
  EXPECT_EQ(text(weights.at("b")), "b");
  EXPECT_EQ(weights.at("b").source->origin(), dir.at("b.safetensors"));
}

TEST(Shards, NoneNamesDirectoryAndExtension) {
  TempDir dir;
  expect_error(
      [&] { list_shards(dir.path()); },
      ErrorCode::not_found,
      {dir.path(), ".safetensors"}
  );
  expect_error(
      [&] { list_shards(dir.at("absent")); },
      ErrorCode::not_found,
      {dir.at("absent")}
  );
}

TEST(Shards, CompleteIndexIsFollowedAndLeavesOtherFilesOut) {
  TempDir dir;
  dir.write("m-1.safetensors", shard_of("a", "a"));
  dir.write("m-2.safetensors", shard_of("b", "b"));
  dir.write("mtp.safetensors", shard_of("c", "c"));
  dir.write(kIndex, index_of(R"("a":"m-1.safetensors","b":"m-2.safetensors")"));
  LogCapture log;
  WeightMap weights = load_weights(dir.path());
  EXPECT_TRUE(weights.contains("a") && weights.contains("b"));
  EXPECT_FALSE(weights.contains("c"));
  EXPECT_TRUE(LogCapture::lines().empty());
}

// A repackaged checkpoint that kept the index of the original.
TEST(Shards, StaleIndexIsToldAndEveryFileLoaded) {
  TempDir dir;
  dir.write("model.safetensors", shard_of("a", "a"));
  dir.write(
      kIndex,
      index_of(R"("a":"model-00001-of-00002.safetensors",)"
               R"("b":"model-00002-of-00002.safetensors")")
  );
  LogCapture log;
  EXPECT_EQ(load_weights(dir.path()).size(), 1u);
  EXPECT_EQ(LogCapture::count(dir.path()), 1);
  EXPECT_EQ(LogCapture::count("repackaged"), 1);
}

// sglang #32279: a missing shard must not leave weights uninitialised.
TEST(Shards, MissingShardIsAnIncompleteDownload) {
  TempDir dir;
  dir.write("m-1.safetensors", shard_of("a", "a"));
  dir.write(
      kIndex,
      index_of(R"("a":"m-1.safetensors","b":"m-2.safetensors",)"
               R"("c":"m-3.safetensors")")
  );
  expect_error(
      [&] { load_weights(dir.path()); },
      ErrorCode::not_found,
      {dir.path(),
       "Missing: \"m-2.safetensors\", \"m-3.safetensors\"",
       "present: m-1.safetensors"}
  );
}

// ollama #13010: the same weights twice in one repository.
TEST(Shards, ConsolidatedFilesAreLeftOutBesideOthers) {
  TempDir dir;
  dir.write("consolidated.safetensors", shard_of("a", "old"));
  dir.write("consolidated-2.safetensors", shard_of("x", "old"));
  EXPECT_EQ(list_shards(dir.path()).size(), 2u);
  dir.write("model-1.safetensors", shard_of("a", "new"));
  EXPECT_EQ(
      list_shards(dir.path()),
      std::vector<std::string>{dir.at("model-1.safetensors")}
  );
  EXPECT_EQ(text(load_weights(dir.path()).at("a")), "new");
  // Nor does one make an index stale.
  dir.write(
      kIndex, index_of(R"("a":"model-1.safetensors","b":"m-2.safetensors")")
  );
  expect_error([&] { list_shards(dir.path()); }, ErrorCode::not_found, {"m-2"});
}

TEST(Shards, LinksIntoAHuggingFaceCacheAreFollowed) {
  TempDir dir;
  std::string hub = "models--org--name";
  fs::create_directories(dir.at(hub + "/blobs"));
  fs::create_directories(dir.at(hub + "/snapshots/abc"));
  dir.write(hub + "/blobs/0123", shard_of("a", "a"));
  dir.write(hub + "/blobs/4567", index_of(R"("a":"model.safetensors")"));
  std::string snapshot = dir.at(hub + "/snapshots/abc");
  fs::create_symlink("../../blobs/0123", snapshot + "/model.safetensors");
  fs::create_symlink("../../blobs/4567", snapshot + "/" + kIndex);
  EXPECT_EQ(text(load_weights(snapshot).at("a")), "a");
  // From elsewhere they are links out of a directory.
  fs::create_directories(dir.at("local"));
  fs::create_symlink(
      dir.at(hub + "/blobs/0123"), dir.at("local/model.safetensors")
  );
  expect_error(
      [&] { load_weights(dir.at("local")); },
      ErrorCode::invalid_input,
      {"model.safetensors"}
  );
}

TEST(Shards, LinksInsideTheDirectoryAndToItAreFollowed) {
  TempDir dir;
  fs::create_directories(dir.at("model/files"));
  dir.write("model/files/f", shard_of("a", "a"));
  fs::create_symlink("files/f", dir.at("model/m.safetensors"));
  fs::create_directory_symlink("model", dir.at("alias"));
  EXPECT_EQ(text(load_weights(dir.at("alias")).at("a")), "a");
}

TEST(Shards, BrokenLinkIsSkippedWithAWarning) {
  TempDir dir;
  dir.write("a.safetensors", shard_of("a", "a"));
  fs::create_symlink("../blobs/gone", dir.at("b.safetensors"));
  LogCapture log;
  EXPECT_EQ(list_shards(dir.path()).size(), 1u);
  EXPECT_EQ(LogCapture::count(dir.at("b.safetensors")), 1);
  EXPECT_EQ(LogCapture::count("../blobs/gone"), 1);
  fs::remove(dir.at("a.safetensors"));
  expect_error(
      [&] { list_shards(dir.path()); },
      ErrorCode::not_found,
      {dir.path(), "all 1", "broken links"}
  );
  dir.write(kIndex, index_of(R"("b":"b.safetensors")"));
  expect_error(
      [&] { list_shards(dir.path()); },
      ErrorCode::not_found,
      {"b.safetensors", "../blobs/gone"}
  );
}

TEST(Shards, LaterFileWinsAndADifferentShapeIsTold) {
  TempDir dir;
  dir.write("1.safetensors", shard_of("a", "one"));
  dir.write("2.safetensors", shard_of("a", "two"));
  {
    LogCapture log;
    EXPECT_EQ(text(load_weights(dir.path()).at("a")), "two");
    EXPECT_TRUE(LogCapture::lines().empty());
  }
  dir.write("3.safetensors", shard_of("a", "three"));
  LogCapture log;
  EXPECT_EQ(text(load_weights(dir.path()).at("a")), "three");
  ASSERT_EQ(LogCapture::lines().size(), 1u);
  for (const char* part :
       {"\"a\"", "[5] U8", "[3] U8", "2.safetensors", "3.safetensors"}) {
    EXPECT_EQ(LogCapture::count(part), 1) << part;
  }
}

TEST(Shards, BytesFromHeaders) {
  TempDir dir;
  EXPECT_EQ(weight_bytes(dir.path()), 0u);
  EXPECT_EQ(weight_bytes(dir.at("absent")), 0u);
  dir.write("1.safetensors", shard_of("a", "one"));
  dir.write("2.safetensors", shard_of("b", "three"));
  EXPECT_EQ(weight_bytes(dir.path()), 8u);
  dir.write("2.safetensors", "broken");
  EXPECT_EQ(weight_bytes(dir.path()), 0u);
  dir.write(kIndex, index_of(R"("a":"1.safetensors","b":"2.safetensors")"));
  EXPECT_EQ(weight_bytes(dir.path()), 3u);  // the index's total_size
}

}  // namespace
}  // namespace mlxcel::test
