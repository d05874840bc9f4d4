#include "mlxcel/hub/store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "mlxcel/core/os.h"
#include "mlxcel/hub/huggingface_cache.h"
#include "mlxcel/hub/places.h"
#include "tests/unit/hub/support/environment.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::hub {
namespace {

namespace fs = std::filesystem;

Reference repository(const std::string& owner, const std::string& name) {
  Reference reference;
  reference.kind = Reference::Kind::repository;
  reference.repository = {owner, name};
  return reference;
}

Reference name_alone(const std::string& name) {
  Reference reference = repository("mlx-community", name);
  reference.expanded = true;
  return reference;
}

struct Store : TemporaryDirectory {
  std::string model(const std::string& id, size_t extra = 0) const {
    fs::create_directories(*this / id);
    write(id + "/config.json", "{}");
    write(id + "/model.safetensors", std::string(extra, 'x'));
    return *this / id;
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> all;
    for (const StoreEntry& entry : list_store(path())) {
      all.push_back(entry.id);
    }
    return all;
  }
};

using Ids = std::vector<std::string>;

TEST(HubStore, Root) {
  OwnHome home("/home/me");
  EXPECT_EQ(store_root(""), "/home/me/.cache/mlxcel/models");
  Variable cache("MLXCEL_CACHE_DIR", "/cache");
  EXPECT_EQ(store_root(""), "/cache/models");
  Variable models("MLXCEL_MODELS_DIR", "~/models");
  EXPECT_EQ(store_root(""), "/home/me/models");
  EXPECT_EQ(store_root("given"), "given");
  Variable blank("MLXCEL_MODELS_DIR", " ");
  EXPECT_EQ(store_root(""), "/cache/models");
}

TEST(HubStore, NoRoot) {
  OwnHome home("");
  EXPECT_EQ(store_root(""), std::nullopt);
  EXPECT_ERROR(require_store_root(""), "MLXCEL_MODELS_DIR");
  EXPECT_ERROR(require_store_root(""), "--models-dir");
  EXPECT_EQ(huggingface_cache(), std::nullopt);
}

TEST(HubStore, HomeIsContracted) {
  OwnHome home("/home/me/");
  EXPECT_EQ(contract_home("/home/me"), "~");
  EXPECT_EQ(contract_home("/home/me/a"), "~/a");
  EXPECT_EQ(contract_home("/home/mean"), "/home/mean");
  EXPECT_EQ(contract_home("relative"), "relative");
  Variable root("HOME", "/");
  EXPECT_EQ(contract_home("/a"), "/a");
}

TEST(HubStore, Listing) {
  Store store;
  store.model("b/two");
  store.model("a/one");
  store.model("alone");
  store.model(".cache/x");
  store.model("a/.hidden");
  store.model("a/with space");
  store.model("alone/nested");  // a folder of that model
  fs::create_directories(store / "a/empty");
  store.write("file", "x");
  EXPECT_EQ(store.ids(), (Ids{"a/one", "alone", "b/two"}));
  EXPECT_EQ(list_store(store / "none").size(), 0u);
  EXPECT_ERROR(list_store(store / "file"), store / "file");
}

TEST(HubStore, SizeAndTime) {
  Store store;
  std::string path = store.model("o/n", 1000);
  fs::create_directories(path + "/sub/deeper");
  store.write("o/n/sub/deeper/f", "12345");
  store.write("big", std::string(500, 'x'));
  fs::create_symlink(store / "big", path + "/linked");
  fs::create_symlink("gone", path + "/broken");
  fs::create_directory_symlink("..", path + "/loop");
  StoreEntry entry = list_store(store.path()).at(0);
  EXPECT_EQ(entry.size, 2u + 1000 + 5 + 500);
  EXPECT_EQ(entry.path, path);
  ASSERT_TRUE(entry.modified);
  EXPECT_NEAR(
      static_cast<double>(*entry.modified),
      static_cast<double>(os::unix_time()),
      60
  );
}

TEST(HubStore, DeepFoldersEnd) {
  Store store;
  std::string path = store.model("o/n");
  for (int i = 0; i < 100; ++i) {
    path += "/d";
    fs::create_directory(path);
  }
  EXPECT_EQ(list_store(store.path()).at(0).size, 2u);
  auto entry = find_entry(store.path(), repository("o", "n"));
  remove_entry(store.path(), *entry);
  EXPECT_FALSE(fs::exists(store / "o"));
}

TEST(HubStore, Order) {
  std::vector<StoreEntry> entries{
      {"b", "", 1, 10},
      {"a", "", 1, std::nullopt},
      {"d", "", 5, std::nullopt},
      {"c", "", 3, 20},
  };
  auto sorted = [&](StoreOrder order) {
    sort_entries(entries, order);
    std::string ids;
    for (const StoreEntry& entry : entries) {
      ids += entry.id;
    }
    return ids;
  };
  EXPECT_EQ(sorted(StoreOrder::name), "abcd");
  EXPECT_EQ(sorted(StoreOrder::size), "dcab");
  EXPECT_EQ(sorted(StoreOrder::modified), "cbad");
}

TEST(HubStore, Finding) {
  Store store;
  std::string one = store.model("mlx-community/one");
  std::string alone = store.model("alone");
  fs::create_directories(store / "o/partial");
  auto find = [&](const Reference& reference) {
    auto entry = find_entry(store.path(), reference);
    return entry ? entry->id + " " + entry->path : "";
  };
  EXPECT_EQ(
      find(repository("mlx-community", "one")), "mlx-community/one " + one
  );
  EXPECT_EQ(find(name_alone("one")), "mlx-community/one " + one);
  EXPECT_EQ(find(name_alone("alone")), "alone " + alone);
  EXPECT_EQ(find(repository("mlx-community", "alone")), "");
  EXPECT_EQ(
      find(repository("o", "partial")), "o/partial " + store / "o/partial"
  );
  // A folder of an owner is no entry.
  EXPECT_EQ(find(name_alone("o")), "");
  EXPECT_EQ(find(name_alone("mlx-community")), "");
}

TEST(HubStore, RemovingStaysInside) {
  Store store;
  TemporaryDirectory outside;
  outside.write("config.json", "{}");
  std::string path = store.model("o/n");
  fs::create_directory_symlink(outside.path(), path + "/folder");
  fs::create_symlink(outside / "config.json", path + "/file");
  remove_entry(store.path(), *find_entry(store.path(), repository("o", "n")));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(store / "o"));
  EXPECT_TRUE(fs::exists(outside / "config.json"));

  fs::create_directory(store / "o");
  fs::create_directory_symlink(outside.path(), store / "o/n");
  remove_entry(store.path(), *find_entry(store.path(), repository("o", "n")));
  EXPECT_FALSE(fs::is_symlink(store / "o/n"));
  EXPECT_TRUE(fs::exists(outside / "config.json"));

  fs::create_directory(outside / "n");
  outside.write("n/config.json", "{}");
  fs::create_directory_symlink(outside.path(), store / "away");
  auto entry = find_entry(store.path(), repository("away", "n"));
  EXPECT_ERROR(remove_entry(store.path(), *entry), "is a link");
  EXPECT_TRUE(fs::exists(outside / "n/config.json"));
}

TEST(HubStore, OwnersWithOtherModelsStay) {
  Store store;
  store.model("o/a");
  store.model("o/b");
  remove_entry(store.path(), *find_entry(store.path(), repository("o", "a")));
  EXPECT_EQ(store.ids(), Ids{"o/b"});
}

TEST(HubCache, Place) {
  OwnHome home("/home/me");
  EXPECT_EQ(huggingface_cache(), "/home/me/.cache/huggingface/hub");
  Variable hf_home("HF_HOME", "/hf");
  EXPECT_EQ(huggingface_cache(), "/hf/hub");
  Variable hub("HF_HUB_CACHE", "~/hub");
  EXPECT_EQ(huggingface_cache(), "/home/me/hub");
}

struct Cache : TemporaryDirectory {
  std::string snapshot(const std::string& commit) const {
    std::string folder = "models--o--n/snapshots/" + commit;
    fs::create_directories(*this / folder);
    write(folder + "/config.json", "{}");
    return *this / folder;
  }
  void ref(const std::string& name, const std::string& commit) const {
    fs::path path = *this / ("models--o--n/refs/" + name);
    fs::create_directories(path.parent_path());
    write("models--o--n/refs/" + name, commit);
  }
  std::optional<std::string> find(const std::string& revision) const {
    return find_snapshot(path(), {"o", "n"}, revision);
  }
};

TEST(HubCache, Snapshots) {
  Cache cache;
  EXPECT_EQ(cache.find("main"), std::nullopt);
  std::string a = cache.snapshot("aaaa");
  std::string b = cache.snapshot("bbbb");
  EXPECT_EQ(cache.find("main"), std::nullopt);
  cache.ref("main", "aaaa");
  cache.ref("refs/pr/1", "bbbb\n");
  EXPECT_EQ(cache.find("main"), a);
  EXPECT_EQ(cache.find("refs/pr/1"), b);
  EXPECT_EQ(cache.find("bbbb"), b);
  EXPECT_EQ(cache.find("cccc"), std::nullopt);
  fs::remove(a + "/config.json");
  EXPECT_EQ(cache.find("main"), std::nullopt);
  EXPECT_EQ(cache.find("aaaa"), std::nullopt);
}

TEST(HubCache, RefsThatAreNoCommits) {
  Cache cache;
  cache.snapshot("aaaa");
  fs::create_directories(cache / "models--o--n/snapshots/x");
  cache.write("config.json", "{}");
  for (const std::string& text : std::vector<std::string>{
           "",
           "\n",
           "..",
           "../..",
           "../../..",
           "aaaa/../aaaa",
           "/",
           "bbbb",
           std::string(100000, 'a'),
       }) {
    cache.ref("main", text);
    EXPECT_EQ(cache.find("main"), std::nullopt) << text.substr(0, 20);
  }
  fs::remove(cache / "models--o--n/refs/main");
  fs::create_directory(cache / "models--o--n/refs/main");
  EXPECT_EQ(cache.find("main"), std::nullopt);
  EXPECT_ERROR(cache.find("../snapshots/aaaa"), "--revision");
}

// a--b/c and a/b--c would share a folder.
TEST(HubCache, AmbiguousIds) {
  TemporaryDirectory cache;
  fs::create_directories(cache / "models--a--b--c/snapshots/x");
  cache.write("models--a--b--c/snapshots/x/config.json", "{}");
  EXPECT_EQ(find_snapshot(cache.path(), {"a--b", "c"}, "x"), std::nullopt);
  EXPECT_EQ(find_snapshot(cache.path(), {"a", "b--c"}, "x"), std::nullopt);
}

}  // namespace
}  // namespace mlxcel::hub
