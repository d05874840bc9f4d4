#include "mlxcel/hub/download/metadata.h"

#include <gtest/gtest.h>

#include "mlxcel/core/error.h"

namespace mlxcel::hub {
namespace {

const std::string kSha1(40, 'A');
const std::string kSha256(64, 'b');

RepositoryListing parse(const std::string& text) {
  return parse_listing(text, "list", DownloadLimits{});
}

TEST(Listing, FieldsOfFiles) {
  RepositoryListing listing = parse(
      R"({"sha": ")" + kSha1 + R"(", "private": false, "siblings": [
        {"rfilename": "a.json", "size": 5, "blobId": ")" +
      kSha1 + R"("},
        {"rfilename": "b", "size": 130, "blobId": ")" +
      kSha1 + R"(", "lfs": {"sha256": ")" + kSha256 +
      R"(", "size": 6000000000, "pointerSize": 134}},
        {"rfilename": "c", "size": null, "lfs": null}]})"
  );
  EXPECT_EQ(listing.commit, std::string(40, 'a'));
  ASSERT_EQ(listing.files.size(), 3u);
  EXPECT_EQ(listing.files[0].path, "a.json");
  EXPECT_EQ(listing.files[0].size, 5u);
  EXPECT_EQ(listing.files[0].content.kind, ContentId::Kind::git_blob);
  EXPECT_EQ(listing.files[0].content.hex, std::string(40, 'a'));
  EXPECT_EQ(listing.files[1].size, 6000000000u);
  EXPECT_EQ(listing.files[1].content.kind, ContentId::Kind::sha256);
  EXPECT_EQ(listing.files[1].content.hex, kSha256);
  EXPECT_FALSE(listing.files[2].size);
  EXPECT_EQ(listing.files[2].content.kind, ContentId::Kind::none);
}

TEST(Listing, NamesTheFieldThatIsWrong) {
  for (const char* part : {R"("rfilename": 7)", R"("size": "x")"}) {
    std::string text =
        std::string(R"({"siblings": [{"rfilename": "a"}, {)") + part + "}]}";
    try {
      parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("siblings[1]"), std::string::npos)
          << error.message();
    }
  }
}

TEST(Listing, Limits) {
  auto rows = [](size_t count) {
    std::string text = R"({"siblings": [)";
    for (size_t i = 0; i < count; ++i) {
      text += (i == 0 ? "" : ",") + (R"({"rfilename":")" + std::to_string(i)) +
              R"("})";
    }
    return text + "]}";
  };
  EXPECT_EQ(parse(rows(16384)).files.size(), 16384u);
  EXPECT_THROW(parse(rows(16385)), Error);
  auto named = [](size_t length) {
    return R"({"siblings": [{"rfilename": ")" + std::string(length, 'x') +
           R"("}]})";
  };
  EXPECT_NO_THROW(parse(named(512)));
  EXPECT_THROW(parse(named(513)), Error);
}

}  // namespace
}  // namespace mlxcel::hub
