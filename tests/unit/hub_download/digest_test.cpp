#include "mlxcel/hub/download/digest.h"

#include <gtest/gtest.h>

namespace mlxcel::hub {
namespace {

using Kind = ContentId::Kind;

std::string digest(Kind kind, size_t digits, const std::string& text) {
  Digest digest({kind, std::string(digits, '0')}, text.size());
  for (char c : text) {
    digest.add(&c, 1);
  }
  return digest.finish();
}

// FIPS 180-4's example; `printf abc | git hash-object --stdin`, and the same
// in a repository of the object format sha256.
TEST(Digest, KnownValues) {
  EXPECT_EQ(
      digest(Kind::sha256, 64, "abc"),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  );
  EXPECT_EQ(
      digest(Kind::git_blob, 40, "abc"),
      "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f"
  );
  EXPECT_EQ(
      digest(Kind::git_blob, 40, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
  );
  EXPECT_EQ(
      digest(Kind::git_blob, 64, ""),
      "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
  );
  EXPECT_EQ(digest(Kind::none, 0, "abc"), "");
}

TEST(Digest, Hexadecimal) {
  EXPECT_TRUE(is_hex("0aF9", 4));
  EXPECT_FALSE(is_hex("0aF9", 5));
  EXPECT_FALSE(is_hex("0ag9", 4));
  EXPECT_TRUE(is_hex("", 0));
}

}  // namespace
}  // namespace mlxcel::hub
