// Model directories of downloads that were cut off, and with files that don't
// belong: loading and the hub's check agree on what is missing, and say so.

#include <gtest/gtest.h>

#include <filesystem>

#include "mlxcel/core/shard_files.h"
#include "mlxcel/hub/completeness.h"
#include "mlxcel/weights/shards.h"
#include "tests/unit/weights/support/weight_files.h"

namespace mlxcel::test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

struct Remains {
  std::string name;
  Names whole;
  Names empty;
  Names indexed;     // none: no index
  Names missing;     // none: the directory is complete
  Names unfinished;  // files that are told
  Names stray;       // files that are there and no shards
};

std::vector<Remains> remains() {
  const std::string one = "model-00001-of-00003.safetensors";
  const std::string two = "model-00002-of-00003.safetensors";
  const std::string three = "model-00003-of-00003.safetensors";
  const std::string single = "model.safetensors";
  return {
      {"Whole", {one, two, three}, {}, {one, two, three}, {}, {}, {}},
      {"WholeWithoutIndex", {one, two, three}, {}, {}, {}, {}, {}},
      {"LastMissing", {one, two}, {}, {one, two, three}, {three}, {}, {}},
      {"LastMissingWithoutIndex", {one, two}, {}, {}, {three}, {}, {}},
      {"FirstMissingWithoutIndex", {three}, {}, {}, {one, two}, {}, {}},
      {"IndexAlone", {}, {}, {one, two}, {one, two}, {}, {}},
      {"LastEmpty", {one, two}, {three}, {one, two, three}, {three}, {}, {}},
      {"LastEmptyWithoutIndex", {one, two}, {three}, {}, {three}, {}, {}},
      {"SingleEmpty", {}, {single}, {}, {single}, {}, {}},
      {"Nothing", {}, {}, {}, {"*.safetensors"}, {}, {}},
      {"OwnDownload",
       {one, two},
       {},
       {one, two, three},
       {three},
       {"." + three + ".0123456789abcdef.part"},
       {}},
      {"HuggingFaceDownload",
       {one, two},
       {},
       {one, two, three},
       {three},
       {".cache/huggingface/download/1234.abcd.incomplete"},
       {}},
      {"BrowserDownload",
       {},
       {},
       {},
       {"*.safetensors"},
       {single + ".crdownload"},
       {}},
      {"OldPartBesideTheWhole",
       {single},
       {},
       {},
       {},
       {"." + single + ".0123456789abcdef.part"},
       {}},
      {"StrayFiles",
       {one, two, three},
       {},
       {one, two, three},
       {},
       {},
       {"mtp.safetensors", "model.bin", "x.safetensors.bak"}},
      {"ConsolidatedIsNoShard",
       {one},
       {},
       {one, two},
       {two},
       {},
       {"consolidated.safetensors", "consolidated.00.safetensors"}},
      {"AdaptersAreNoShards",
       {one},
       {},
       {one, two},
       {two},
       {},
       {"adapters.safetensors",
        "adapter_model.safetensors",
        "0000100_adapters.safetensors"}},
      {"AdapterAlone",
       {},
       {},
       {},
       {"*.safetensors"},
       {},
       {"adapters.safetensors"}},
      {"StaleIndex", {single}, {}, {one, two}, {}, {}, {}},
      {"StaleIndexOfAnIncompleteSet",
       {one},
       {},
       {single},
       {two, three},
       {},
       {}},
      {"EmptyFileMakesNoIndexStale",
       {one},
       {single},
       {one, two},
       {two},
       {},
       {}},
  };
}

class IncompleteDownload : public testing::TestWithParam<Remains> {
 protected:
  void SetUp() override {
    const Remains& remains = GetParam();
    dir.write("config.json", "{}");
    fs::create_directories(dir.at(".cache/huggingface/download"));
    for (const Names* names :
         {&remains.whole, &remains.stray, &remains.unfinished}) {
      for (const std::string& name : *names) {
        dir.write(name, safetensors_file({{name, "U8", {1}, "x"}}));
      }
    }
    for (const std::string& name : remains.empty) {
      dir.write(name, "");
    }
    std::string map;
    for (const std::string& name : remains.indexed) {
      map += (map.empty() ? "\"" : ",\"") + name + "\":\"" + name + "\"";
    }
    if (!map.empty()) {
      dir.write(kShardIndex, "{\"weight_map\":{" + map + "}}");
    }
  }
  TempDir dir;
  LogCapture log;
};

TEST_P(IncompleteDownload, LoadingTellsWhatIsThereAndMissing) {
  const Remains& remains = GetParam();
  if (remains.missing.empty()) {
    std::vector<std::string> expected;
    for (const std::string& name : remains.whole) {
      expected.push_back(dir.at(name));
    }
    EXPECT_EQ(list_shards(dir.path()), expected);
    WeightMap weights = load_weights(dir.path());
    EXPECT_EQ(weights.size(), remains.whole.size());
    return;
  }
  std::vector<std::string> parts = remains.unfinished;
  parts.push_back(dir.path());
  bool some = remains.missing != Names{"*.safetensors"};
  if (some) {
    parts.push_back("an incomplete download. Missing: ");
    parts.push_back(remains.whole.empty() ? "present: nothing" : "present: m");
    parts.insert(parts.end(), remains.missing.begin(), remains.missing.end());
    parts.insert(parts.end(), remains.whole.begin(), remains.whole.end());
  } else {
    parts.push_back(".safetensors");
    parts.insert(parts.end(), remains.stray.begin(), remains.stray.end());
  }
  expect_error([&] { load_weights(dir.path()); }, ErrorCode::not_found, parts);
  expect_error([&] { list_tensors(dir.path()); }, ErrorCode::not_found, parts);
}

TEST_P(IncompleteDownload, TheHubAgrees) {
  const Remains& remains = GetParam();
  hub::Completeness found = hub::check_completeness(dir.path());
  Names missing;
  for (const std::string& name : remains.missing) {
    missing.push_back(name.front() == '*' ? name : "\"" + name + "\"");
  }
  EXPECT_EQ(found.missing, missing);
  EXPECT_EQ(found.complete(), missing.empty());
  EXPECT_EQ(found.unfinished, remains.unfinished);
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    IncompleteDownload,
    testing::ValuesIn(remains()),
    [](const auto& test) { return test.param.name; }
);

}  // namespace
}  // namespace mlxcel::test
