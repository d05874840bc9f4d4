#include "mlxcel/hub/download/answers.h"

#include <fmt/format.h>

#include "mlxcel/core/numbers.h"

namespace mlxcel::hub {

namespace {

constexpr size_t kShownMessage = 300;

std::string credentials_advice(bool with_token) {
  return with_token ? "the token that was sent gives no access to it"
                    : "no token was sent: give one with --token or HF_TOKEN";
}

std::string explanation(const HttpResponse& response, bool with_token) {
  std::string kind = response.header("x-error-code");
  switch (response.status) {
    case 401:
    case 403:
      if (kind == "GatedRepo") {
        return "the repository is gated: accept its terms on its page; " +
               credentials_advice(with_token);
      }
      if (kind == "RepoNotFound" || response.status == 401) {
        return "no such repository, or a private one; " +
               credentials_advice(with_token);
      }
      return "access is refused; " + credentials_advice(with_token);
    case 404:
      if (kind == "RevisionNotFound") {
        return "no such revision";
      }
      if (kind == "EntryNotFound") {
        return "no such file in the repository";
      }
      return kind == "RepoNotFound" ? "no such repository" : "not found";
    case 429:
      return "too many requests; a token raises the limit, waiting helps too";
    default:
      return response.status >= 500 ? "the hub has a fault"
                                    : "an answer that was not expected";
  }
}

}  // namespace

bool is_passing(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 ||
         status == 503 || status == 504;
}

std::optional<double> asked_pause(const HttpResponse& response) {
  if (auto seconds = parse_int(response.header("retry-after"));
      seconds && *seconds >= 0) {
    return static_cast<double>(*seconds);
  }
  // "api";r=0;t=55
  std::string limit = response.header("ratelimit");
  size_t at = limit.find(";t=");
  if (response.status != 429 || at == std::string::npos) {
    return std::nullopt;
  }
  size_t from = at + 3;
  size_t end =
      std::min(limit.find_first_not_of("0123456789", from), limit.size());
  auto seconds = parse_int(std::string_view(limit).substr(from, end - from));
  return seconds ? std::optional<double>(static_cast<double>(*seconds))
                 : std::nullopt;
}

Error refusal(
    const HttpResponse& response, const std::string& subject, bool with_token
) {
  std::string said = response.header("x-error-message");
  return Error(
      response.status == 404 ? ErrorCode::not_found : ErrorCode::io,
      fmt::format(
          "[download] {}: {} (HTTP {}{})",
          subject,
          explanation(response, with_token),
          response.status,
          said.empty() ? "" : ": " + quote(said, kShownMessage)
      )
  );
}

}  // namespace mlxcel::hub
