#include "mlxcel/hub/completeness.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::hub {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr const char* kIndex = "model.safetensors.index.json";

// A directory with a config.json.
struct Model : TemporaryDirectory {
  Model() {
    write("config.json", "{}");
  }
  void index(const std::string& map) const {
    write(kIndex, R"({"weight_map":{)" + map + "}}");
  }
  Completeness check() const {
    return check_completeness(path());
  }
};

TEST(HubCompleteness, OneFile) {
  Model model;
  EXPECT_EQ(model.check().missing, Names{"*.safetensors"});
  model.write("x.safetensors", "");
  EXPECT_EQ(model.check().missing, Names{"\"x.safetensors\""});
  model.write("x.safetensors", "x");
  EXPECT_TRUE(model.check().complete());
  EXPECT_EQ(model.check().present, (Names{"config.json", "\"x.safetensors\""}));
  fs::remove(model / "config.json");
  EXPECT_EQ(model.check().missing, Names{"config.json"});
}

TEST(HubCompleteness, WhatIsNoShard) {
  Model model;
  model.write(".hidden.safetensors", "x");
  model.write("model.safetensors.part", "x");
  model.write("model.SAFETENSORS", "x");
  fs::create_directory(model / "folder.safetensors");
  fs::create_symlink("gone", model / "link.safetensors");
  EXPECT_FALSE(model.check().complete());
  // Repeats the others, but will do alone.
  model.write("consolidated.safetensors", "x");
  EXPECT_TRUE(model.check().complete());
}

TEST(HubCompleteness, IndexIsFollowed) {
  Model model;
  model.index(R"("a":"1.safetensors","b":"2.safetensors","c":"1.safetensors")");
  EXPECT_EQ(
      model.check().missing, (Names{"\"1.safetensors\"", "\"2.safetensors\""})
  );
  model.write("1.safetensors", "x");
  EXPECT_EQ(model.check().missing, Names{"\"2.safetensors\""});
  model.write("2.safetensors", "");
  EXPECT_EQ(model.check().missing, Names{"\"2.safetensors\""});
  EXPECT_EQ(
      model.check().describe(),
      "missing: \"2.safetensors\"; present: config.json, \"1.safetensors\""
  );
  model.write("2.safetensors", "x");
  EXPECT_TRUE(model.check().complete());
}

TEST(HubCompleteness, StaleIndex) {
  Model model;
  model.index(R"("a":"1.safetensors","b":"2.safetensors")");
  model.write("1.safetensors", "x");
  // It repeats the others and makes no index stale.
  model.write("consolidated.00.safetensors", "x");
  EXPECT_EQ(model.check().missing, Names{"\"2.safetensors\""});
  model.write("model.safetensors", "x");
  EXPECT_TRUE(model.check().complete());
}

TEST(HubCompleteness, UnreadableIndex) {
  for (const std::string& text : std::vector<std::string>{
           "",
           "{",
           "[]",
           "{}",
           R"({"weight_map":[]})",
           R"({"weight_map":{}})",
           R"({"weight_map":{"a":1}})",
           R"({"weight_map":)" + std::string(100000, '['),
           "\xff\xfe",
       }) {
    Model model;
    model.write(kIndex, text);
    EXPECT_EQ(model.check().missing, Names{"*.safetensors"}) << text;
    model.write("x.safetensors", "x");
    EXPECT_TRUE(model.check().complete()) << text;
  }
}

// A name that leads out of the directory is never looked up there.
TEST(HubCompleteness, NamesThatAreNoFileNames) {
  TemporaryDirectory outer;
  outer.write("secret.safetensors", "x");
  fs::create_directory(outer / "model");
  outer.write("model/config.json", "{}");
  outer.write(
      std::string("model/") + kIndex,
      R"({"weight_map":{"a":"../secret.safetensors","b":"/etc/passwd"}})"
  );
  EXPECT_EQ(
      check_completeness(outer / "model").missing,
      (Names{"\"../secret.safetensors\"", "\"/etc/passwd\""})
  );
}

TEST(HubCompleteness, NumberedFilesWithoutIndex) {
  Model model;
  model.write("model-00001-of-00003.safetensors", "x");
  model.write("model-00003-of-00003.safetensors", "x");
  EXPECT_EQ(
      model.check().missing, Names{"\"model-00002-of-00003.safetensors\""}
  );
  model.write("model-00002-of-00003.safetensors", "x");
  EXPECT_TRUE(model.check().complete());
  // Numbers that make no set.
  for (const char* name :
       {"a-00001-of-00000.safetensors",
        "-00001-of-00002.safetensors",
        "a-0001-of-0002.safetensors",
        "a-00001-of-0000x.safetensors",
        "00001-of-00002.safetensors"}) {
    model.write(name, "x");
    EXPECT_TRUE(model.check().complete()) << name;
  }
}

TEST(HubCompleteness, LongListsAreCut) {
  Model model;
  model.write("m-00001-of-99999.safetensors", "x");
  Completeness state = model.check();
  EXPECT_EQ(state.missing.size(), 99998u);
  EXPECT_LT(state.describe().size(), 2000u);
  EXPECT_NE(state.describe().find("and 99978 more"), std::string::npos);
}

TEST(HubCompleteness, LargeIndex) {
  Model model;
  std::string map;
  for (int i = 0; i < 1000000; ++i) {
    map += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"m.safetensors\"";
  }
  model.index(map);
  model.write("m.safetensors", "x");
  EXPECT_TRUE(model.check().complete());
}

TEST(HubCompleteness, TellsWhatIsUnfinished) {
  Model model;
  model.index(R"("a":"1.safetensors","b":"2.safetensors")");
  model.write("1.safetensors", "x");
  model.write(".2.safetensors.0123456789abcdef.part", "x");
  EXPECT_EQ(
      model.check().describe(),
      "missing: \"2.safetensors\"; present: config.json, \"1.safetensors\"; "
      "unfinished: .2.safetensors.0123456789abcdef.part"
  );
}

TEST(HubCompleteness, NoDirectory) {
  TemporaryDirectory dir;
  EXPECT_ERROR(check_completeness(dir / "none"), dir / "none");
}

}  // namespace
}  // namespace mlxcel::hub
