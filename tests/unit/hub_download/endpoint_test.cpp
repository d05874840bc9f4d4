#include "mlxcel/hub/download/endpoint.h"

#include <gtest/gtest.h>

#include "mlxcel/core/error.h"
#include "tests/unit/hub/support/environment.h"

namespace mlxcel::hub {
namespace {

struct Environment {
  Variable endpoint{"HF_ENDPOINT", nullptr};
  Variable token{"HF_TOKEN", nullptr};
  Variable old_token{"HUGGING_FACE_HUB_TOKEN", nullptr};
  Variable insecure{"MLXCEL_ALLOW_INSECURE_ENDPOINT", nullptr};
};

TEST(Endpoint, IsThePublicHubUnlessSaidOtherwise) {
  Environment clean;
  Endpoint endpoint = endpoint_from_environment("");
  EXPECT_EQ(endpoint.base, "https://huggingface.co");
  EXPECT_EQ(endpoint.origin, "https://huggingface.co:443");
  EXPECT_EQ(endpoint.token, "");
  Variable other("HF_ENDPOINT", " http://Mirror.example:8080/hf// ");
  endpoint = endpoint_from_environment("");
  EXPECT_EQ(endpoint.base, "http://Mirror.example:8080/hf");
  EXPECT_EQ(endpoint.origin, "http://mirror.example:8080");
}

TEST(Endpoint, Urls) {
  Endpoint endpoint;
  endpoint.base = "https://h";
  EXPECT_EQ(
      endpoint.metadata_url("o/m", "refs/pr/1"),
      "https://h/api/models/o/m/revision/refs%2Fpr%2F1?blobs=true"
  );
  EXPECT_EQ(
      endpoint.file_url("o/m", "main", "a b/c#?%.json"),
      "https://h/o/m/resolve/main/a%20b/c%23%3F%25.json"
  );
}

TEST(Endpoint, PercentEncoding) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode("/ +\xc3\xa4"), "%2F%20%2B%C3%A4");
}

TEST(Endpoint, Origins) {
  EXPECT_EQ(origin_of("HTTP://ExAmple.com/x"), "http://example.com:80");
  EXPECT_EQ(origin_of("https://h:443/x?y"), origin_of("https://h"));
  EXPECT_NE(origin_of("https://h"), origin_of("http://h:443"));
  EXPECT_NE(origin_of("http://h:80"), origin_of("http://h:81"));
  EXPECT_EQ(origin_of("http://[::1]:8/x"), "http://[::1]:8");
  for (const char* text : {"", "h", "ftp://h", "file:///x", "http://", "//h"}) {
    EXPECT_THROW(origin_of(text), Error) << text;
  }
}

TEST(Endpoint, ShownUrlsHaveNoSecrets) {
  EXPECT_EQ(shown_url("https://u:p@h/x?sig=1#f"), "https://h/x");
  EXPECT_EQ(shown_url("http://u:p w@h/x?sig").find("p w"), std::string::npos);
}

TEST(Endpoint, TokensInOrder) {
  Environment clean;
  Variable old_token("HUGGING_FACE_HUB_TOKEN", "three");
  EXPECT_EQ(endpoint_from_environment("").token, "three");
  Variable token("HF_TOKEN", "two\n");
  EXPECT_EQ(endpoint_from_environment("").token, "two");
  EXPECT_EQ(endpoint_from_environment("one").token, "one");
}

TEST(Endpoint, TokensArePrintable) {
  Environment clean;
  for (const char* token : {"a b", "a\x01", "a\x7f", "a\r\nb", "\xc3\xa4"}) {
    try {
      endpoint_from_environment(token);
      ADD_FAILURE() << token;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_EQ(error.message().find(token), std::string::npos);
    }
  }
}

TEST(Endpoint, NoTokenWithoutTls) {
  Environment clean;
  Variable endpoint("HF_ENDPOINT", "http://h");
  Endpoint plain = endpoint_from_environment("secret");
  EXPECT_EQ(plain.token, "");
  EXPECT_NE(plain.remark, "");
  EXPECT_EQ(plain.remark.find("secret"), std::string::npos);
  Variable allowed("MLXCEL_ALLOW_INSECURE_ENDPOINT", "1");
  EXPECT_EQ(endpoint_from_environment("secret").token, "secret");
  EXPECT_EQ(endpoint_from_environment("secret").remark, "");
}

TEST(Endpoint, Refusals) {
  Environment clean;
  for (const char* text :
       {"h", "ftp://h", "https://u:pw@h", "https://h?q", "https://h#f"}) {
    Variable endpoint("HF_ENDPOINT", text);
    EXPECT_THROW(endpoint_from_environment(""), Error) << text;
  }
}

}  // namespace
}  // namespace mlxcel::hub
