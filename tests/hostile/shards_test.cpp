// Directories and indexes from strangers.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "mlxcel/weights/shards.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string shard_of(const std::string& tensor) {
  return safetensors_file({{tensor, "U8", {1}, "x"}});
}

std::string index_of(const std::string& map) {
  return R"({"weight_map":{)" + map + "}}";
}

struct BadIndex {
  std::string name;
  std::string text;
  std::vector<std::string> message;
};

std::vector<BadIndex> bad_indexes() {
  return {
      {"Empty", "", {"not a JSON object"}},
      {"NotJson", "{weight_map", {"not a JSON object"}},
      {"List", "[]", {"not a JSON object"}},
      {"Deep", std::string(100000, '['), {"not a JSON object"}},
      {"DeepValue",
       R"({"weight_map":)" + std::string(100000, '['),
       {"not a JSON object"}},
      {"InvalidUtf8", "{\"weight_map\":{\"\xff\":\"a\"}}", {"not a JSON"}},
      {"NoWeightMap", "{}", {"weight_map"}},
      {"WeightMapIsNumber", R"({"weight_map":3})", {"weight_map"}},
      {"WeightMapIsNull", R"({"weight_map":null})", {"weight_map"}},
      {"WeightMapIsEmpty", R"({"weight_map":{}})", {"no shard file names"}},
      {"FileNameIsNumber", index_of(R"("w":3)"), {"weight_map", "\"w\""}},
      {"DuplicateMap",
       R"({"weight_map":{"w":"a"},"weight_map":{"w":"b"}})",
       {"duplicate key", "weight_map"}},
      {"DuplicateTensor",
       index_of(R"("w":"m.safetensors","w":"m.safetensors")"),
       {"\"w\"", "twice"}},
  };
}

class BadIndexTest : public testing::TestWithParam<BadIndex> {};

// Even where a shard is there that could be loaded without it.
TEST_P(BadIndexTest, IsRefused) {
  TempDir dir;
  dir.write("m.safetensors", shard_of("w"));
  dir.write(kIndex, GetParam().text);
  std::vector<std::string> parts = GetParam().message;
  parts.push_back(dir.at(kIndex));
  expect_error(
      [&] { list_shards(dir.path()); }, ErrorCode::invalid_input, parts
  );
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    BadIndexTest,
    testing::ValuesIn(bad_indexes()),
    [](const auto& bad) { return bad.param.name; }
);

// A name that is no plain file name is never looked up, and no other file is
// taken in its place.
TEST(ShardsHostile, NamesThatLeaveTheDirectory) {
  TempDir outer;
  outer.write("x.safetensors", shard_of("secret"));
  fs::create_directory(outer.at("model"));
  std::string model = outer.at("model");
  const std::pair<std::string, std::string> names[] = {
      {"../x.safetensors", "../x.safetensors"},
      {outer.at("x.safetensors"), outer.at("x.safetensors")},
      {"..", "\"..\""},
      {".", "\".\""},
      {"", "\"\""},
      {"sub/x.safetensors", "sub/x.safetensors"},
      {"..\\\\x.safetensors", "x.safetensors"},
      {"x.safetensors\\u0000", "\\x00"},
  };
  for (const auto& [name, shown] : names) {
    fs::remove(outer.at("model/w.safetensors"));
    outer.write(
        std::string("model/") + kIndex, index_of("\"w\":\"" + name + "\"")
    );
    expect_error(
        [&] { load_weights(model); },
        ErrorCode::invalid_input,
        {shown, "plain file names"}
    );
    outer.write("model/w.safetensors", shard_of("w"));
    expect_error(
        [&] { load_weights(model); },
        ErrorCode::invalid_input,
        {shown, "plain file names"}
    );
  }
}

TEST(ShardsHostile, LinkOutOfTheDirectoryIsRefused) {
  TempDir outer;
  std::string target = outer.write("private.safetensors", shard_of("secret"));
  fs::create_directory(outer.at("model"));
  std::string link = outer.at("model/model.safetensors");
  fs::create_symlink("../private.safetensors", link);
  expect_error(
      [&] { list_shards(outer.at("model")); },
      ErrorCode::invalid_input,
      {link, "../private.safetensors", "outside"}
  );
  outer.write(
      std::string("model/") + kIndex,
      index_of(R"("secret":"model.safetensors")")
  );
  expect_error(
      [&] { load_weights(outer.at("model")); },
      ErrorCode::invalid_input,
      {link, "outside"}
  );
  EXPECT_EQ(weight_bytes(outer.at("model")), 0u);
}

TEST(ShardsHostile, LinkThroughALinkedFolderIsRefused) {
  TempDir outer;
  fs::create_directories(outer.at("elsewhere"));
  outer.write("elsewhere/x.safetensors", shard_of("secret"));
  fs::create_directory(outer.at("model"));
  fs::create_symlink("../elsewhere", outer.at("model/inner"));
  fs::create_symlink("inner/x.safetensors", outer.at("model/m.safetensors"));
  expect_error(
      [&] { list_shards(outer.at("model")); },
      ErrorCode::invalid_input,
      {"outside"}
  );
}

TEST(ShardsHostile, NeighbourWhoseNameStartsAlikeIsOutside) {
  TempDir outer;
  fs::create_directories(outer.at("model"));
  fs::create_directories(outer.at("model-private"));
  outer.write("model-private/x.safetensors", shard_of("secret"));
  fs::create_symlink(
      "../model-private/x.safetensors", outer.at("model/m.safetensors")
  );
  expect_error(
      [&] { list_shards(outer.at("model")); },
      ErrorCode::invalid_input,
      {"outside"}
  );
}

TEST(ShardsHostile, LinkToItself) {
  TempDir dir;
  fs::create_symlink("m.safetensors", dir.at("m.safetensors"));
  LogCapture log;
  expect_error(
      [&] { list_shards(dir.path()); },
      ErrorCode::not_found,
      {dir.path(), "broken links"}
  );
}

TEST(ShardsHostile, DirectoryOrFifoInPlaceOfAShard) {
  TempDir dir;
  fs::create_directory(dir.at("a.safetensors"));
  ASSERT_EQ(::mkfifo(dir.at("b.safetensors").c_str(), 0600), 0);
  expect_error(
      [&] { list_shards(dir.path()); },
      ErrorCode::not_found,
      {dir.path(), ".safetensors"}
  );
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    dir.write(kIndex, index_of(fmt::format(R"("w":"{}")", name)));
    expect_error(
        [&] { list_shards(dir.path()); },
        ErrorCode::invalid_input,
        {name, "regular file"}
    );
  }
}

TEST(ShardsHostile, FifoInPlaceOfTheIndex) {
  TempDir dir;
  dir.write("m.safetensors", shard_of("w"));
  ASSERT_EQ(::mkfifo(dir.at(kIndex).c_str(), 0600), 0);
  expect_error(
      [&] { list_shards(dir.path()); },
      ErrorCode::invalid_input,
      {kIndex, "regular file"}
  );
}

TEST(ShardsHostile, IndexThatPromisesATensorNoShardHas) {
  TempDir dir;
  dir.write("m.safetensors", shard_of("w"));
  dir.write(kIndex, index_of(R"("v":"m.safetensors","w":"m.safetensors")"));
  expect_error(
      [&] { load_weights(dir.path()); },
      ErrorCode::invalid_input,
      {kIndex, "\"v\"", "m.safetensors"}
  );
}

TEST(ShardsHostile, NamesThatDifferInCaseAreMissing) {
  TempDir dir;
  dir.write("model-1.safetensors", shard_of("a"));
  dir.write("model-2.safetensors", shard_of("b"));
  dir.write(
      kIndex,
      index_of(R"("a":"model-1.safetensors","b":"model-2.safetensors",)"
               R"("c":"Model-3.safetensors")")
  );
  expect_error(
      [&] { list_shards(dir.path()); },
      ErrorCode::not_found,
      {"Model-3.safetensors", "model-1.safetensors", "model-2.safetensors"}
  );
}

TEST(ShardsHostile, TotalSizeThatLiesIsNotBelieved) {
  for (const char* size :
       {"18446744073709551615", "0", "1", "-1", "1.5", "\"x\"", "null"}) {
    TempDir dir;
    dir.write("m.safetensors", shard_of("w"));
    dir.write(
        kIndex,
        fmt::format(
            R"({{"metadata":{{"total_size":{}}},)"
            R"("weight_map":{{"w":"m.safetensors"}}}})",
            size
        )
    );
    EXPECT_EQ(weight_bytes(dir.path()), 1u) << size;
    EXPECT_EQ(load_weights(dir.path()).size(), 1u) << size;
  }
}

TEST(ShardsHostile, MillionEntriesAreQuick) {
  TempDir dir;
  dir.write("m.safetensors", shard_of("w"));
  std::string map;
  for (int i = 0; i < 1000000; ++i) {
    map += fmt::format(
        R"({}"model.layers.{}.weight":"m-{}.safetensors")",
        i == 0 ? "" : ",",
        i,
        i
    );
  }
  dir.write(kIndex, index_of(map));
  LogCapture log;
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(list_shards(dir.path()).size(), 1u);  // stale: "m" isn't in it
  fs::remove(dir.at("m.safetensors"));
  expect_error(
      [&] { list_shards(dir.path()); },
      ErrorCode::not_found,
      {"incomplete download", "and 999900 more"}
  );
  auto spent = std::chrono::steady_clock::now() - start;
  RecordProperty(
      "milliseconds",
      static_cast<int>(
          std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()
      )
  );
  EXPECT_LT(spent, std::chrono::seconds(30));
}

}  // namespace
}  // namespace mlxcel::test
