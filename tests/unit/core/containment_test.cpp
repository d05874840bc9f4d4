#include "mlxcel/core/containment.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

namespace fs = std::filesystem;

/// hub/models--o--n and hub/models--o--other, each with a blob and a snapshot.
class Containment : public testing::Test {
 protected:
  Containment() {
    for (const char* name : {"models--o--n", "models--o--other"}) {
      std::string repository = std::string("hub/") + name;
      fs::create_directories(dir / (repository + "/blobs"));
      fs::create_directories(dir / (repository + "/snapshots/abc/sub"));
      dir.write(repository + "/blobs/1", "x");
      dir.write(repository + "/private", "x");
    }
    fs::create_directories(dir / "model/sub");
    dir.write("private", "x");
  }

  /// Whether a link named `name` in `directory` to `target` may be read.
  bool allows(
      const std::string& directory,
      const std::string& target,
      const std::string& name = "file"
  ) const {
    std::string path = dir / (directory + "/" + name);
    fs::remove(path);
    fs::create_symlink(target, path);
    return stays_inside(dir / directory, path);
  }

  TemporaryDirectory dir;
};

constexpr const char* kSnapshot = "hub/models--o--n/snapshots/abc";

TEST_F(Containment, SnapshotsLinkIntoTheirOwnBlobs) {
  EXPECT_TRUE(allows(kSnapshot, "../../blobs/1"));
  EXPECT_TRUE(allows(kSnapshot, "../../../blobs/1", "sub/file"));
  EXPECT_TRUE(allows(kSnapshot, dir / "hub/models--o--n/blobs/1"));
  // Reached by another way, they are the same.
  fs::create_directory_symlink("hub", dir / "alias");
  fs::create_directory_symlink(kSnapshot, dir / "mine");
  EXPECT_TRUE(allows("alias/models--o--n/snapshots/abc", "../../blobs/1"));
  EXPECT_TRUE(allows("mine", "../../blobs/1"));
}

TEST_F(Containment, BlobsMayBeLinksThemselves) {
  fs::create_symlink(
      "../../models--o--other/blobs/1", dir / "hub/models--o--n/blobs/shared"
  );
  EXPECT_TRUE(allows(kSnapshot, "../../blobs/shared"));
  EXPECT_TRUE(allows(kSnapshot, "../../../blobs/shared", "sub/file"));
  EXPECT_FALSE(allows("model", "../hub/models--o--n/blobs/shared"));
}

TEST_F(Containment, SnapshotsLinkNowhereElse) {
  EXPECT_FALSE(allows(kSnapshot, "../../../models--o--other/blobs/1"));
  EXPECT_FALSE(allows(kSnapshot, "../../private"));
  EXPECT_FALSE(allows(kSnapshot, "../../../../private"));
  EXPECT_FALSE(allows(kSnapshot, "/etc/passwd"));
  EXPECT_FALSE(allows(kSnapshot, "../../blobs/2"));
  EXPECT_FALSE(allows(kSnapshot, "../../blobs/../private"));
  fs::create_directory(dir / "hub/models--o--n/blobs/deep");
  dir.write("hub/models--o--n/blobs/deep/1", "x");
  EXPECT_FALSE(allows(kSnapshot, "../../blobs/deep/1"));
}

TEST_F(Containment, OrdinaryDirectories) {
  dir.write("model/sub/f", "x");
  EXPECT_TRUE(allows("model", "sub/f"));
  EXPECT_TRUE(allows("model", "../model/sub/f"));
  EXPECT_FALSE(allows("model", "../private"));
  EXPECT_FALSE(allows("model", "file"));
  EXPECT_FALSE(allows("model", "gone"));
  EXPECT_FALSE(allows("model", "../hub/models--o--n/private"));
  EXPECT_FALSE(allows("model", "../hub/models--o--n/blobs/1"));
  // Folders of such names are no cache.
  fs::create_directories(dir / "blobs");
  dir.write("blobs/1", "x");
  EXPECT_FALSE(allows("model", "../blobs/1"));
  fs::create_directories(dir / "models--x");
  dir.write("models--x/1", "x");
  EXPECT_FALSE(allows("model", "../models--x/1"));
}

TEST_F(Containment, NamesThatBeginAlike) {
  fs::create_directories(dir / "model2");
  dir.write("model2/f", "x");
  EXPECT_FALSE(allows("model", "../model2/f"));
}

}  // namespace
}  // namespace mlxcel
