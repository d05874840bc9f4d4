#include "mlxcel/weights/safetensors_writer.h"

#include "mlxcel/core/json.h"
#include "mlxcel/core/os.h"
#include "mlxcel/weights/safetensors.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

std::string slurp(const std::string& path) {
  return read_file(path, 1 << 20);
}

std::vector<TensorEntry> parse(const std::string& file) {
  return read_safetensors_header(
      std::as_bytes(std::span(file.data(), file.size())), "f.safetensors"
  );
}

TEST(SafetensorsWriter, WritesOneFileAsMlxDoes) {
  TempDir dir;
  SafetensorsWriter writer(
      dir.path(),
      {{"b.weight", "U32", {2, 1}, 8},
       {"a.weight", "F16", {3}, 6},
       {"c\"quoted", "F32", {1, 1}, 4}}
  );
  writer.write("BBBB", 4);
  writer.write("bbbb", 4);
  writer.write("AAaaAA", 6);
  writer.write("CCCC", 4);
  writer.finish();
  EXPECT_EQ(writer.files(), std::vector<std::string>{"model.safetensors"});
  EXPECT_EQ(writer.total_bytes(), 18u);
  std::string json =
      R"({"__metadata__":{"format":"mlx"},)"
      R"("b.weight":{"data_offsets":[0,8],"dtype":"U32","shape":[2,1]},)"
      R"("a.weight":{"data_offsets":[8,14],"dtype":"F16","shape":[3]},)"
      R"("c\"quoted":{"data_offsets":[14,18],"dtype":"F32","shape":[1,1]}})";
  EXPECT_EQ(
      slurp(dir.at("model.safetensors")), raw_file(json, "BBBBbbbbAAaaAACCCC")
  );
  EXPECT_EQ(os::list_directory(dir.path()).size(), 1u);
}

TEST(SafetensorsWriter, EmptyTensorsAndOddNamesAreRead) {
  TempDir dir;
  SafetensorsWriter writer(
      dir.path(),
      {{"first", "U8", {0}, 0},
       {"a\"é", "F32", {2}, 8},
       {"empty", "U8", {0}, 0},
       {"b", "U8", {3}, 3},
       {"last", "U8", {0, 2}, 0}}
  );
  writer.write("01234567", 5);
  writer.write("567", 3);
  writer.write("xyz", 3);
  writer.finish();
  std::string file = slurp(dir.at("model.safetensors"));
  auto entries = parse(file);
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[1].name, "a\"é");
  EXPECT_EQ(file.substr(entries[0].begin), "01234567xyz");
}

TEST(SafetensorsWriter, NoTensorAtAll) {
  TempDir dir;
  SafetensorsWriter writer(dir.path(), {});
  writer.finish();
  EXPECT_TRUE(parse(slurp(dir.at("model.safetensors"))).empty());
}

// 8 | 3 + 7: the tensor of 3 would pass 10, the one of 7 reaches it.
TEST(SafetensorsWriter, SplitsAtTheLimitAndWritesAnIndex) {
  TempDir dir;
  SafetensorsWriter writer(
      dir.path(),
      {{"b", "U8", {8}, 8}, {"a", "U8", {3}, 3}, {"c", "U8", {7}, 7}},
      10
  );
  writer.write("BBBBBBBB", 8);
  writer.write("AAA", 3);
  writer.write("CCCCCCC", 7);
  EXPECT_FALSE(file_exists(dir.at("model-00001-of-00002.safetensors")));
  writer.finish();
  EXPECT_EQ(
      writer.files(),
      (std::vector<std::string>{
          "model-00001-of-00002.safetensors",
          "model-00002-of-00002.safetensors"})
  );
  auto first = parse(slurp(dir.at(writer.files()[0])));
  std::string second = slurp(dir.at(writer.files()[1]));
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second.substr(parse(second).at(0).begin), "AAACCCCCCC");
  Json index =
      Json::parse_file(dir.at("model.safetensors.index.json"), 1 << 20);
  EXPECT_EQ(index.at("metadata").at("total_size").as_int(), 18);
  EXPECT_EQ(index.at("weight_map").size(), 3u);
  EXPECT_EQ(index.at("weight_map").at("b").as_string(), writer.files()[0]);
  EXPECT_EQ(index.at("weight_map").at("c").as_string(), writer.files()[1]);
}

TEST(SafetensorsWriter, ATensorAboveTheLimitStandsAlone) {
  TempDir dir;
  SafetensorsWriter writer(
      dir.path(), {{"a", "U8", {2}, 2}, {"b", "U8", {2}, 2}}, 1
  );
  writer.write("aa", 2);
  writer.write("bb", 2);
  writer.finish();
  EXPECT_EQ(writer.files().size(), 2u);
}

TEST(SafetensorsWriter, LeavesNothingWithoutFinish) {
  TempDir dir;
  {
    SafetensorsWriter writer(
        dir.path(), {{"a", "U8", {4}, 4}, {"b", "U8", {4}, 4}}, 4
    );
    writer.write("aaaa", 4);
    writer.write("bb", 2);
    expect_error(
        [&] { writer.write("bbb", 3); }, ErrorCode::internal, {"more bytes"}
    );
    expect_error(
        [&] { writer.finish(); }, ErrorCode::internal, {"fewer bytes"}
    );
  }
  EXPECT_TRUE(os::list_directory(dir.path()).empty());
}

TEST(SafetensorsWriter, RefusesANameThatIsNotUtf8) {
  TempDir dir;
  SafetensorsWriter writer(dir.path(), {{"a\xff", "U8", {1}, 1}});
  expect_error(
      [&] { writer.write("x", 1); }, ErrorCode::invalid_input, {"UTF-8"}
  );
}

}  // namespace
}  // namespace mlxcel::test
