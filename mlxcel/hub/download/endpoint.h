#pragma once

#include <string>
#include <string_view>

namespace mlxcel::hub {

/// Where the hub is, and who asks.
struct Endpoint {
  std::string base;    ///< without a slash at its end
  std::string origin;  ///< scheme://host:port of the base
  std::string token;   ///< empty: none is sent
  /// Why a token that was given is not sent; empty if there is no reason.
  std::string remark;

  std::string metadata_url(
      const std::string& repository, const std::string& revision
  ) const;
  std::string file_url(
      const std::string& repository,
      const std::string& revision,
      const std::string& path
  ) const;
};

/// From HF_ENDPOINT, else the public hub; the token from `token`, HF_TOKEN or
/// HUGGING_FACE_HUB_TOKEN, kept back from an endpoint without TLS unless
/// MLXCEL_ALLOW_INSECURE_ENDPOINT is set. Throws Error(usage) for an endpoint
/// that is no http or https address and for a token that isn't printable
/// ASCII.
Endpoint endpoint_from_environment(const std::string& token);

/// scheme://host:port in lower case, with the scheme's port where none is
/// given. Throws Error(invalid_input) for anything but http and https.
std::string origin_of(const std::string& url);

/// Everything but RFC 3986's unreserved characters as %XX.
std::string percent_encode(std::string_view text);

/// `url` without user, query and fragment, for messages.
std::string shown_url(const std::string& url);

}  // namespace mlxcel::hub
