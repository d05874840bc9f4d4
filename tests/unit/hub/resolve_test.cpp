#include "mlxcel/hub/resolve.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/hub/support/environment.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::hub {
namespace {

namespace fs = std::filesystem;

/// Brings the files that it is told to, call by call.
class FakeDownloader : public Downloader {
 public:
  void download(const DownloadRequest& request) override {
    requests.push_back(request);
    size_t call = requests.size() - 1;
    if (call < brings.size()) {
      fs::create_directories(request.directory);
      for (const std::string& name : brings[call]) {
        std::ofstream(request.directory / name) << "{}";
      }
    }
    if (failing) {
      fail(ErrorCode::io, "[download] connection lost");
    }
  }

  std::vector<std::vector<std::string>> brings;
  std::vector<DownloadRequest> requests;
  bool failing = false;
};

const std::vector<std::string> kWhole{"config.json", "model.safetensors"};

// With a home, a store in it and a working directory of its own.
class Resolve : public testing::Test {
 protected:
  Resolve() : home_(dir_.path()), before_(fs::current_path()) {
    fs::create_directory(dir_ / "work");
    fs::current_path(dir_ / "work");
    request_.reference = "o/n";
    request_.announce = [this](const std::string& text) {
      announced_.push_back(text);
    };
  }
  ~Resolve() override {
    fs::current_path(before_);
  }

  std::string put(
      const std::string& folder, const std::vector<std::string>& names = kWhole
  ) const {
    fs::create_directories(dir_ / folder);
    for (const std::string& name : names) {
      dir_.write(folder + "/" + name, "{}");
    }
    return dir_ / folder;
  }
  Resolution run() {
    announced_.clear();
    return resolve(request_, &downloader_);
  }

  TemporaryDirectory dir_;
  OwnHome home_;
  fs::path before_;
  ResolveRequest request_;
  FakeDownloader downloader_;
  std::vector<std::string> announced_;
};

constexpr const char* kStore = ".cache/mlxcel/models/o/n";
constexpr const char* kSnapshots =
    ".cache/huggingface/hub/models--o--n/snapshots/";
constexpr const char* kRefs = ".cache/huggingface/hub/models--o--n/refs";

TEST_F(Resolve, Paths) {
  std::string model = put("model");
  request_.reference = model;
  EXPECT_EQ(run().directory, model);
  EXPECT_EQ(run().source, Source::path);
  EXPECT_EQ(run().repository, "");
  request_.reference = model + "/config.json";
  EXPECT_EQ(run().directory, model);
  request_.reference = "../model";
  EXPECT_EQ(run().directory, "../model");
  request_.revision = "main";
  EXPECT_ERROR(run(), "--revision");
  EXPECT_TRUE(announced_.empty());
  EXPECT_TRUE(downloader_.requests.empty());
}

TEST_F(Resolve, Order) {
  std::string entry = put(kStore);
  EXPECT_EQ(run().directory, entry);
  EXPECT_EQ(run().source, Source::store);
  EXPECT_EQ(run().repository, "o/n");
  std::string snapshot = put(std::string(kSnapshots) + "abc");
  put(kRefs, {});
  dir_.write(std::string(kRefs) + "/main", "abc");
  EXPECT_EQ(run().directory, snapshot);
  EXPECT_EQ(run().source, Source::huggingface_cache);
  put("work/models/n");
  EXPECT_EQ(run().directory, "./models/n");
  EXPECT_EQ(run().source, Source::local_models);
  put("work/o/n");
  EXPECT_EQ(run().directory, "o/n");
  EXPECT_EQ(run().source, Source::path);
  EXPECT_TRUE(announced_.empty());
  EXPECT_TRUE(downloader_.requests.empty());
}

TEST_F(Resolve, IncompletePlacesArePassedOver) {
  put("work/models/n", {"config.json"});
  put(std::string(kSnapshots) + "abc", {"config.json"});
  put(kRefs, {});
  dir_.write(std::string(kRefs) + "/main", "abc");
  std::string store = put(kStore);
  EXPECT_EQ(run().directory, store);
}

TEST_F(Resolve, FreshDownload) {
  downloader_.brings = {kWhole};
  Resolution resolution = run();
  EXPECT_EQ(resolution.directory, dir_ / kStore);
  EXPECT_EQ(resolution.source, Source::download);
  ASSERT_EQ(downloader_.requests.size(), 1u);
  EXPECT_EQ(downloader_.requests[0].repository, "o/n");
  EXPECT_EQ(downloader_.requests[0].revision, "main");
  EXPECT_EQ(downloader_.requests[0].directory, dir_ / kStore);
  EXPECT_TRUE(downloader_.requests[0].include.empty());
  EXPECT_FALSE(downloader_.requests[0].force);
  ASSERT_EQ(announced_.size(), 1u);
  EXPECT_NE(announced_[0].find("Downloading o/n"), std::string::npos);
}

TEST_F(Resolve, FreshDownloadOfWhatIsNoCheckpoint) {
  downloader_.brings = {{"config.json"}};
  EXPECT_ERROR(run(), "missing: *.safetensors; present: config.json");
  EXPECT_EQ(downloader_.requests.size(), 1u);
}

TEST_F(Resolve, NamesAreExpanded) {
  Variable organisation("MLXCEL_DEFAULT_ORG", "o");
  put(kStore);
  request_.reference = "n";
  EXPECT_EQ(run().repository, "o/n");
  ASSERT_EQ(announced_.size(), 1u);
  EXPECT_NE(announced_[0].find("n means o/n"), std::string::npos);
}

TEST_F(Resolve, IncompleteEntryIsResumed) {
  put(kStore, {"config.json"});
  downloader_.brings = {{"model.safetensors"}};
  EXPECT_EQ(run().directory, dir_ / kStore);
  ASSERT_EQ(downloader_.requests.size(), 1u);
  EXPECT_FALSE(downloader_.requests[0].force);
  ASSERT_EQ(announced_.size(), 1u);
  EXPECT_NE(announced_[0].find("incomplete; resuming"), std::string::npos);
}

TEST_F(Resolve, IncompleteEntryIsFetchedAnewOnce) {
  put(kStore, {"config.json"});
  downloader_.brings = {{}, {"model.safetensors"}};
  EXPECT_EQ(run().directory, dir_ / kStore);
  ASSERT_EQ(downloader_.requests.size(), 2u);
  EXPECT_FALSE(downloader_.requests[0].force);
  EXPECT_TRUE(downloader_.requests[1].force);
  ASSERT_EQ(announced_.size(), 2u);
  EXPECT_NE(announced_[1].find("still incomplete"), std::string::npos);
}

TEST_F(Resolve, IncompleteForGood) {
  put(kStore, {"config.json"});
  EXPECT_ERROR(run(), "not a whole checkpoint (missing: *.safetensors");
  EXPECT_EQ(downloader_.requests.size(), 2u);
}

TEST_F(Resolve, ErrorsOfTheDownloaderPass) {
  downloader_.failing = true;
  EXPECT_ERROR(run(), "connection lost");
  EXPECT_EQ(downloader_.requests.size(), 1u);
}

TEST_F(Resolve, Revisions) {
  request_.revision = "refs/pr/1";
  std::string snapshot = put(std::string(kSnapshots) + "abc");
  put(std::string(kRefs) + "/refs/pr", {});
  dir_.write(std::string(kRefs) + "/refs/pr/1", "abc");
  put("work/models/n");
  put(kStore);
  EXPECT_EQ(run().directory, snapshot);
  request_.revision = "abc";
  EXPECT_EQ(run().directory, snapshot);
  request_.revision = "v2";
  EXPECT_ERROR(run(), "keeps one revision");
  EXPECT_TRUE(downloader_.requests.empty());
  fs::remove_all(dir_ / kStore);
  downloader_.brings = {kWhole};
  EXPECT_EQ(run().directory, dir_ / kStore);
  EXPECT_EQ(downloader_.requests.at(0).revision, "v2");
  for (const char* bad : {"../x", "a b", "-x"}) {
    request_.revision = bad;
    EXPECT_ERROR(run(), "--revision");
  }
}

TEST_F(Resolve, TheSameRevisionAgain) {
  downloader_.failing = true;
  // One that brought nothing leaves nothing.
  request_.revision = "typo";
  EXPECT_ERROR(run(), "connection lost");
  EXPECT_FALSE(fs::exists(dir_ / ".cache/mlxcel/models/o"));
  put("elsewhere/n", {});
  fs::create_directory_symlink(
      dir_ / "elsewhere", dir_ / ".cache/mlxcel/models/o"
  );
  request_.revision = "";
  EXPECT_ERROR(run(), "connection lost");
  EXPECT_TRUE(fs::exists(dir_ / ".cache/mlxcel/models/o/n"));
  fs::remove(dir_ / ".cache/mlxcel/models/o");
  downloader_.requests.clear();
  request_.revision = "typo";
  EXPECT_ERROR(run(), "connection lost");
  request_.revision = "v2";
  downloader_.brings = {{}, {"tokenizer.json"}, {}, {"config.json"}};
  EXPECT_ERROR(run(), "connection lost");
  downloader_.failing = false;
  // Resumed, also by who doesn't say it, and not with files of main.
  request_.revision = "";
  EXPECT_ERROR(run(), "missing: *.safetensors");
  downloader_.brings.push_back({"model.safetensors"});
  EXPECT_EQ(run().source, Source::download);
  EXPECT_EQ(downloader_.requests.size(), 5u);
  for (size_t i = 1; i < downloader_.requests.size(); ++i) {
    EXPECT_EQ(downloader_.requests[i].revision, "v2");
  }
  EXPECT_EQ(run().source, Source::store);
  request_.revision = "v2";
  EXPECT_EQ(run().source, Source::store);
  for (const char* other : {"main", "v3"}) {
    request_.revision = other;
    EXPECT_ERROR(run(), "with revision \"v2\" is there already");
  }
  dir_.write(std::string(kStore) + "/.mlxcel-revision", "../x");
  EXPECT_ERROR(run(), ".mlxcel-revision: \"../x\" is no revision");
}

TEST_F(Resolve, NameAloneInTheRoot) {
  request_.reference = "n";
  std::string alone = put(".cache/mlxcel/models/n");
  EXPECT_EQ(run().directory, alone);
  fs::remove(alone + "/model.safetensors");
  // It can't be resumed: nobody knows whose it is.
  downloader_.brings = {kWhole};
  EXPECT_EQ(run().directory, dir_ / ".cache/mlxcel/models/mlx-community/n");
  EXPECT_NE(announced_.at(1).find("Downloading"), std::string::npos);
}

TEST_F(Resolve, ARevisionPassesOverIncompleteEntriesToo) {
  put(kStore, {"model.safetensors.part"});
  request_.revision = "v2";
  EXPECT_ERROR(run(), "keeps one revision");
}

TEST_F(Resolve, Offline) {
  request_.offline = true;
  EXPECT_ERROR(run(), "offline mode");
  EXPECT_ERROR(run(), "./models/n");
  EXPECT_ERROR(run(), ".cache/huggingface/hub");
  EXPECT_ERROR(run(), ".cache/mlxcel/models");
  put(kStore, {"config.json"});
  EXPECT_ERROR(run(), "missing: *.safetensors");
  EXPECT_TRUE(downloader_.requests.empty());
  EXPECT_TRUE(announced_.empty());
  put(kStore);
  EXPECT_EQ(run().directory, dir_ / kStore);
}

TEST_F(Resolve, OfflineVariable) {
  EXPECT_FALSE(offline_environment());
  for (const char* name : {"MLXCEL_OFFLINE", "LLAMA_ARG_OFFLINE"}) {
    for (const char* yes : {"on", "enabled", "true", "1"}) {
      Variable set(name, yes);
      EXPECT_TRUE(offline_environment()) << yes;
      EXPECT_ERROR(run(), "offline mode");
    }
    for (const char* no : {"", "0", "yes", "ON", "True", " 1", "1 ", "off"}) {
      Variable set(name, no);
      EXPECT_FALSE(offline_environment()) << no;
    }
  }
  EXPECT_TRUE(downloader_.requests.empty());
}

TEST_F(Resolve, WithoutADownloader) {
  EXPECT_ERROR(resolve(request_, nullptr), "This build can't download");
  EXPECT_ERROR(resolve(request_, nullptr), dir_ / kStore);
  put(kStore);
  EXPECT_EQ(resolve(request_, nullptr).directory, dir_ / kStore);
}

TEST_F(Resolve, GivenRoot) {
  request_.store = dir_ / "other";
  downloader_.brings = {kWhole};
  EXPECT_EQ(run().directory, dir_ / "other/o/n");
  EXPECT_EQ(run().source, Source::store);
}

TEST_F(Resolve, NoPlaceForTheStore) {
  Variable homeless("HOME", "");
  EXPECT_ERROR(run(), "--models-dir");
  put("work/models/n");
  EXPECT_EQ(run().directory, "./models/n");
}

TEST_F(Resolve, LinksOutOfTheDirectoryAreRefused) {
  std::string model = put("model");
  request_.reference = model;
  put("outside", {"x", "secret.json"});
  put("model/1_Pooling", {});
  put("model/other", {});
  for (const char* name :
       {"tokenizer.json",
        "chat_template.jinja",
        "tokenizer.model",
        "vocab.txt",
        "qwen.tiktoken",
        "1_Pooling/config.json"}) {
    fs::create_symlink(dir_ / "outside/secret.json", fs::path(model) / name);
    EXPECT_ERROR(run(), name);
    EXPECT_ERROR(run(), "outside of the model directory");
    fs::remove(fs::path(model) / name);
  }
  for (const char* name : {"additional_chat_templates", "2_Dense"}) {
    fs::create_directory_symlink("../outside", fs::path(model) / name);
    EXPECT_ERROR(run(), name);
    fs::remove(fs::path(model) / name);
  }
  // What nobody reads, links inside, and links to nothing.
  fs::create_symlink("../outside/x", fs::path(model) / "notes");
  fs::create_symlink("../outside/x", fs::path(model) / ".hidden.json");
  fs::create_symlink("../../outside/x", fs::path(model) / "other/x.json");
  fs::create_directory_symlink("../outside", fs::path(model) / "data");
  fs::create_symlink("config.json", fs::path(model) / "tokenizer.json");
  fs::create_symlink("gone", fs::path(model) / "gone.json");
  fs::create_symlink("loop.json", fs::path(model) / "loop.json");
  EXPECT_EQ(run().directory, model);
}

TEST_F(Resolve, SnapshotsMayLinkToTheirBlobs) {
  std::string snapshot = put(std::string(kSnapshots) + "abc", {});
  std::string blobs = put(".cache/huggingface/hub/models--o--n/blobs", {"1"});
  for (const std::string& name : kWhole) {
    fs::create_symlink("../../blobs/1", fs::path(snapshot) / name);
  }
  request_.revision = "abc";
  EXPECT_EQ(run().directory, snapshot);
  std::string other =
      put(".cache/huggingface/hub/models--o--other/blobs", {"1"});
  fs::create_symlink(other + "/1", fs::path(snapshot) / "tokenizer.json");
  EXPECT_ERROR(run(), "tokenizer.json");
}

TEST_F(Resolve, WithoutAListener) {
  request_.announce = nullptr;
  downloader_.brings = {kWhole};
  EXPECT_EQ(run().source, Source::download);
}

}  // namespace
}  // namespace mlxcel::hub
