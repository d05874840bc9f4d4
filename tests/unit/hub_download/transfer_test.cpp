#include "mlxcel/hub/download/transfer.h"

#include <gtest/gtest.h>

namespace mlxcel::hub {
namespace {

RemoteFile file(const std::string& path, char hash, uint64_t size = 7) {
  return {path, size, {ContentId::Kind::sha256, std::string(64, hash)}};
}

TEST(TemporaryName, BelongsToOneContent) {
  std::string name = temporary_name(file("a/b.json", '1'), "o/m", "main");
  EXPECT_TRUE(name.starts_with(".b.json."));
  EXPECT_TRUE(is_temporary_name(name));
  EXPECT_EQ(name, temporary_name(file("a/b.json", '1'), "o/n", "other"));
  EXPECT_NE(name, temporary_name(file("a/b.json", '2'), "o/m", "main"));
  EXPECT_NE(name, temporary_name(file("b/b.json", '1'), "o/m", "main"));
  EXPECT_NE(name, temporary_name(file("a/b.json", '1', 8), "o/m", "main"));
}

TEST(TemporaryName, WithoutAHashToTheRevision) {
  RemoteFile plain{"a", 7, {}};
  EXPECT_EQ(
      temporary_name(plain, "o/m", "1"), temporary_name(plain, "o/m", "1")
  );
  EXPECT_NE(
      temporary_name(plain, "o/m", "1"), temporary_name(plain, "o/m", "2")
  );
}

TEST(TemporaryName, FitsAFileSystem) {
  EXPECT_LE(
      temporary_name(file(std::string(255, 'x'), '1'), "o/m", "main").size(),
      255u
  );
}

TEST(TemporaryName, OfOthers) {
  for (const char* name :
       {"",
        ".part",
        "a.0123456789abcdef.part",
        ".a.0123456789abcdeg.part",
        ".a.0123.part",
        ".0123456789abcdef.part",
        ".a.0123456789abcdef"}) {
    EXPECT_FALSE(is_temporary_name(name)) << name;
  }
}

}  // namespace
}  // namespace mlxcel::hub
