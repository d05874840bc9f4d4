#include "mlxcel/hub/download/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <exception>

#include "mlxcel/core/text.h"
#include "mlxcel/hub/download/endpoint.h"
#include "mlxcel/hub/download/trust.h"
#include "mlxcel_version.h"

namespace mlxcel::hub {

namespace {

constexpr long kReceiveBuffer = 512 << 10;
// Of a body that is no file, so that the connection can be used again.
constexpr size_t kDroppedBytes = 64 << 10;

struct ListFree {
  void operator()(curl_slist* list) const {
    curl_slist_free_all(list);
  }
};
using HeaderList = std::unique_ptr<curl_slist, ListFree>;

HeaderList header_list(const HttpRequest& request, bool authorized) {
  HeaderList list;
  auto add = [&](const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) {
      throw std::bad_alloc();
    }
    (void)list.release();
    list.reset(longer);
  };
  add("Accept-Encoding: identity");
  for (const std::string& line : request.headers) {
    add(line);
  }
  if (authorized && !request.token.empty()) {
    add("Authorization: Bearer " + request.token);
  }
  return list;
}

CURLcode add_trust(CURL*, void* ssl_context, void* trust) {
  return static_cast<const ExtraTrust*>(trust)->add_to(ssl_context)
             ? CURLE_OK
             : CURLE_SSL_CACERT_BADFILE;
}

int check_cancelled(
    void* flag, curl_off_t, curl_off_t, curl_off_t, curl_off_t
) {
  return static_cast<const std::atomic<bool>*>(flag)->load() ? 1 : 0;
}

// Whether the same request may well succeed a little later.
bool worth_another_try(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

std::string_view trim(std::string_view text) {
  auto space = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  };
  while (!text.empty() && space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// libcurl wants to be set up once, before there are other threads.
void initialise() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) {
    fail(
        ErrorCode::internal,
        fmt::format("[download] libcurl: {}", curl_easy_strerror(code))
    );
  }
}

}  // namespace

std::string HttpResponse::header(std::string_view name) const {
  auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

// What the callbacks of one request share. They may not throw through libcurl.
struct HttpClient::Exchange {
  CURL* curl;
  const Body& body;
  size_t header_limit;
  HttpResponse response;
  size_t header_bytes = 0;
  size_t dropped = 0;
  bool dropped_enough = false;
  std::exception_ptr thrown;

  static size_t on_header(char* data, size_t, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    exchange.header_bytes += count;
    if (exchange.header_bytes > exchange.header_limit) {
      return 0;
    }
    std::string_view line = trim({data, count});
    if (line.starts_with("HTTP/")) {
      exchange.response.headers.clear();
      return count;
    }
    size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      std::string name = ascii_lower(line.substr(0, colon));
      exchange.response.headers[name] = trim(line.substr(colon + 1));
    }
    return count;
  }

  static size_t on_body(char* data, size_t, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    curl_easy_getinfo(
        exchange.curl, CURLINFO_RESPONSE_CODE, &exchange.response.status
    );
    if (!exchange.response.success()) {
      exchange.dropped += count;
      exchange.dropped_enough = exchange.dropped > kDroppedBytes;
      return exchange.dropped_enough ? 0 : count;
    }
    try {
      exchange.body(exchange.response, {data, count});
      return count;
    } catch (...) {
      exchange.thrown = std::current_exception();
      return 0;
    }
  }
};

HttpClient::HttpClient(
    const DownloadLimits& limits,
    const ExtraTrust& trust,
    const std::atomic<bool>& cancelled
)
    : limits_(limits), trust_(trust), cancelled_(cancelled) {
  initialise();
  curl_ = curl_easy_init();
  if (curl_ == nullptr) {
    throw std::bad_alloc();
  }
}

HttpClient::~HttpClient() {
  curl_easy_cleanup(curl_);
}

void HttpClient::set_up(const HttpRequest& request, const std::string& url) {
  auto milliseconds = [](double seconds) {
    return static_cast<long>(std::ceil(seconds * 1000));
  };
  auto set = [&](CURLoption option, auto value) {
    curl_easy_setopt(curl_, option, value);
  };
  curl_easy_reset(curl_);
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_USERAGENT, "mlxcel/" MLXCEL_VERSION);
  set(CURLOPT_HTTPGET, 1L);
  set(CURLOPT_NOBODY, request.head ? 1L : 0L);
  set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(limits_.connect_seconds));
  set(CURLOPT_LOW_SPEED_LIMIT, limits_.stall_bytes);
  set(CURLOPT_LOW_SPEED_TIME,
      static_cast<long>(std::ceil(limits_.stall_seconds)));
  set(CURLOPT_TIMEOUT_MS, milliseconds(request.seconds));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &check_cancelled);
  set(CURLOPT_XFERINFODATA, static_cast<const void*>(&cancelled_));
  static const std::string bundle = system_certificates();
  if (!bundle.empty()) {
    set(CURLOPT_CAINFO, bundle.c_str());
  }
  if (!trust_.empty()) {
    set(CURLOPT_SSL_CTX_FUNCTION, &add_trust);
    set(CURLOPT_SSL_CTX_DATA, static_cast<const void*>(&trust_));
  }
}

void HttpClient::fail_transport(int code, const std::string& url) const {
  auto result = static_cast<CURLcode>(code);
  throw ConnectionError(
      fmt::format(
          "[download] {}: {}",
          shown_url(url),
          reason_.empty() ? curl_easy_strerror(result) : reason_
      ),
      worth_another_try(result),
      result != CURLE_COULDNT_RESOLVE_HOST &&
          result != CURLE_COULDNT_RESOLVE_PROXY &&
          result != CURLE_COULDNT_CONNECT
  );
}

HttpResponse HttpClient::one(
    const HttpRequest& request,
    const std::string& url,
    bool authorized,
    const Body& body,
    std::string& location
) {
  set_up(request, url);
  HeaderList headers = header_list(request, authorized);
  Exchange exchange{curl_, body, limits_.header_bytes};
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl_, CURLOPT_HEADERFUNCTION, &Exchange::on_header);
  curl_easy_setopt(curl_, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, &Exchange::on_body);
  curl_easy_setopt(curl_, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl_, CURLOPT_ERRORBUFFER, reason);
  CURLcode code = curl_easy_perform(curl_);
  curl_easy_setopt(curl_, CURLOPT_ERRORBUFFER, nullptr);
  reason_ = reason;
  if (exchange.thrown) {
    std::rethrow_exception(exchange.thrown);
  }
  if (code == CURLE_ABORTED_BY_CALLBACK && cancelled_.load()) {
    fail(ErrorCode::cancelled, "[download] cancelled");
  }
  if (exchange.header_bytes > exchange.header_limit) {
    reason_ = fmt::format(
        "the answer has more than {} bytes of headers", exchange.header_limit
    );
    fail_transport(CURLE_WRITE_ERROR, url);
  }
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &exchange.response.status);
  bool refused = exchange.response.status >= 300;
  if (code != CURLE_OK && !(refused && exchange.dropped_enough)) {
    fail_transport(code, url);
  }
  char* next = nullptr;
  curl_easy_getinfo(curl_, CURLINFO_REDIRECT_URL, &next);
  location = next == nullptr ? "" : next;
  return std::move(exchange.response);
}

HttpResponse HttpClient::perform(const HttpRequest& request, const Body& body) {
  std::string url = request.url;
  std::string home = origin_of(url);
  bool authorized = true;
  HttpResponse response;
  for (int hop = 0; hop <= limits_.redirects; ++hop) {
    std::string location;
    response = one(request, url, authorized, body, location);
    if (response.status < 300 || response.status >= 400 || location.empty()) {
      return response;
    }
    std::string origin = origin_of(location);
    if (url.starts_with("https:") && !origin.starts_with("https:")) {
      fail(
          ErrorCode::io,
          fmt::format(
              "[download] {}: redirected to {}, which has no TLS",
              shown_url(url),
              origin
          )
      );
    }
    if (origin != home) {
      if (!request.leave_origin) {
        return response;
      }
      authorized = false;
    }
    url = location;
  }
  fail(
      ErrorCode::io,
      fmt::format(
          "[download] {}: more than {} redirects",
          shown_url(request.url),
          limits_.redirects
      )
  );
}

}  // namespace mlxcel::hub
