#include "mlxcel/hub/download/answers.h"

#include <gtest/gtest.h>

namespace mlxcel::hub {
namespace {

HttpResponse answer(
    long status, std::map<std::string, std::string, std::less<>> headers = {}
) {
  return {status, std::move(headers)};
}

TEST(Answers, Pauses) {
  EXPECT_EQ(asked_pause(answer(429)), std::nullopt);
  EXPECT_EQ(asked_pause(answer(503, {{"retry-after", "7"}})), 7);
  EXPECT_EQ(asked_pause(answer(503, {{"retry-after", "-7"}})), std::nullopt);
  EXPECT_EQ(
      asked_pause(
          answer(503, {{"retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"}})
      ),
      std::nullopt
  );
  std::map<std::string, std::string, std::less<>> limited{
      {"ratelimit", "\"api\";r=0;t=55"}};
  EXPECT_EQ(asked_pause(answer(429, limited)), 55);
  EXPECT_EQ(asked_pause(answer(500, limited)), std::nullopt);
  EXPECT_EQ(
      asked_pause(answer(429, {{"ratelimit", "\"api\";r=0;t="}})), std::nullopt
  );
}

TEST(Answers, PassingOnes) {
  for (long status : {408, 429, 500, 502, 503, 504}) {
    EXPECT_TRUE(is_passing(status)) << status;
  }
  for (long status : {200, 301, 400, 401, 403, 404, 416, 501}) {
    EXPECT_FALSE(is_passing(status)) << status;
  }
}

TEST(Answers, Refusals) {
  EXPECT_EQ(refusal(answer(404), "x", false).code(), ErrorCode::not_found);
  EXPECT_EQ(
      refusal(
          answer(
              403,
              {{"x-error-code", "GatedRepo"}, {"x-error-message", "no\x01"}}
          ),
          "o/m",
          true
      )
          .message(),
      "[download] o/m: the repository is gated: accept its terms on its page; "
      "the token that was sent gives no access to it (HTTP 403: \"no\\x01\")"
  );
}

}  // namespace
}  // namespace mlxcel::hub
