#include "mlxcel/hub/download/endpoint.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "mlxcel/core/error.h"
#include "mlxcel/core/text.h"
#include "mlxcel/hub/places.h"

namespace mlxcel::hub {

namespace {

constexpr const char* kPublicHub = "https://huggingface.co";

struct UrlFree {
  void operator()(CURLU* url) const {
    curl_url_cleanup(url);
  }
};
using Url = std::unique_ptr<CURLU, UrlFree>;

// Null if the text is no address.
Url parse_url(const std::string& text) {
  Url url(curl_url());
  if (url == nullptr || text.find('\0') != std::string::npos ||
      curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return nullptr;
  }
  return url;
}

std::string part(const Url& url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, flags) != CURLUE_OK) {
    return "";
  }
  std::string copy = text;
  curl_free(text);
  return copy;
}

std::string trimmed(std::string text) {
  auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && space(text.back())) {
    text.pop_back();
  }
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  return text;
}

std::string find_token(const std::string& given, std::string& source) {
  source = "--token";
  std::string token = trimmed(given);
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (token.empty()) {
      source = name;
      token = trimmed(variable(name));
    }
  }
  return token;
}

void check_token(const std::string& token, const std::string& source) {
  bool printable = std::all_of(token.begin(), token.end(), [](char c) {
    return c > ' ' && c < 0x7f;
  });
  if (!printable) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[download] {}: a token is printable ASCII without spaces", source
        )
    );
  }
}

}  // namespace

std::string origin_of(const std::string& text) {
  Url url = parse_url(text);
  std::string scheme = url ? part(url, CURLUPART_SCHEME) : "";
  std::string host = url ? part(url, CURLUPART_HOST) : "";
  if ((scheme != "http" && scheme != "https") || host.empty()) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[download] {}: not an http or https address",
            quote(shown_url(text), 200)
        )
    );
  }
  host = ascii_lower(host);
  return fmt::format(
      "{}://{}:{}", scheme, host, part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT)
  );
}

std::string shown_url(const std::string& text) {
  Url url = parse_url(text);
  if (url == nullptr) {
    std::string shown = text.substr(0, text.find_first_of("?#"));
    return shown.substr(shown.rfind('@') + 1);
  }
  for (CURLUPart secret :
       {CURLUPART_USER,
        CURLUPART_PASSWORD,
        CURLUPART_QUERY,
        CURLUPART_FRAGMENT}) {
    curl_url_set(url.get(), secret, nullptr, 0);
  }
  return part(url, CURLUPART_URL);
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
                 c == '~';
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded;
}

std::string Endpoint::metadata_url(
    const std::string& repository, const std::string& revision
) const {
  return fmt::format(
      "{}/api/models/{}/revision/{}?blobs=true",
      base,
      repository,
      percent_encode(revision)
  );
}

std::string Endpoint::file_url(
    const std::string& repository,
    const std::string& revision,
    const std::string& path
) const {
  std::string url = fmt::format(
      "{}/{}/resolve/{}", base, repository, percent_encode(revision)
  );
  for (size_t at = 0; at <= path.size();) {
    size_t end = std::min(path.find('/', at), path.size());
    url += '/' + percent_encode(std::string_view(path).substr(at, end - at));
    at = end + 1;
  }
  return url;
}

Endpoint endpoint_from_environment(const std::string& token) {
  Endpoint endpoint;
  endpoint.base = trimmed(variable("HF_ENDPOINT"));
  if (endpoint.base.empty()) {
    endpoint.base = kPublicHub;
  }
  while (endpoint.base.ends_with('/')) {
    endpoint.base.pop_back();
  }
  try {
    endpoint.origin = origin_of(endpoint.base);
  } catch (const Error&) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[download] HF_ENDPOINT {}: expected an http or https address",
            quote(shown_url(endpoint.base), 200)
        )
    );
  }
  if (endpoint.base.find_first_of("?#@") != std::string::npos) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[download] HF_ENDPOINT {}: an address without user, query and "
            "fragment is expected",
            quote(shown_url(endpoint.base), 200)
        )
    );
  }
  std::string source;
  endpoint.token = find_token(token, source);
  check_token(endpoint.token, source);
  bool secure = endpoint.origin.starts_with("https:");
  bool allowed = !variable("MLXCEL_ALLOW_INSECURE_ENDPOINT").empty();
  if (!endpoint.token.empty() && !secure && !allowed) {
    endpoint.token.clear();
    endpoint.remark = fmt::format(
        "the token of {} is not sent to {}, which has no TLS "
        "(MLXCEL_ALLOW_INSECURE_ENDPOINT=1 allows it)",
        source,
        endpoint.origin
    );
  }
  return endpoint;
}

}  // namespace mlxcel::hub
