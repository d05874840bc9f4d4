#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/hub/download/limits.h"

namespace mlxcel::hub {

class ExtraTrust;

struct HttpRequest {
  std::string url;
  bool head = false;
  /// Sent to the origin of `url`, and to no other that redirects lead to.
  std::string token;
  std::vector<std::string> headers;
  /// Whether redirects to other origins are followed; those within one are.
  bool leave_origin = true;
  /// Seconds that all of it may take; 0: as long as bytes come.
  double seconds = 0;
};

struct HttpResponse {
  long status = 0;
  /// Names in lower case. Where a name comes twice, the last one counts.
  std::map<std::string, std::string, std::less<>> headers;

  /// Empty if there is none of that name.
  std::string header(std::string_view name) const;
  bool success() const {
    return status >= 200 && status < 300;
  }
};

/// The connection broke, or none was made.
class ConnectionError : public Error {
 public:
  ConnectionError(std::string message, bool again, bool reached = true)
      : Error(ErrorCode::io, std::move(message)),
        again_(again),
        reached_(reached) {}

  /// Whether another try can help.
  bool again() const {
    return again_;
  }
  /// Whether there was a connection at all.
  bool reached() const {
    return reached_;
  }

 private:
  bool again_;
  bool reached_;
};

/// One connection that is kept open between requests; for one thread.
/// Speaks http and https only, through the proxies of the environment.
class HttpClient {
 public:
  /// Receives the body of a successful answer, piece by piece.
  using Body = std::function<void(const HttpResponse&, std::string_view)>;

  /// `cancelled` ends a request with Error(cancelled). All three outlive it.
  HttpClient(
      const DownloadLimits& limits,
      const ExtraTrust& trust,
      const std::atomic<bool>& cancelled
  );
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Follows redirects. An answer of any status is returned; ConnectionError
  /// if there is none or its body ends early; what `body` throws.
  HttpResponse perform(const HttpRequest& request, const Body& body);

 private:
  struct Exchange;

  HttpResponse one(
      const HttpRequest& request,
      const std::string& url,
      bool authorized,
      const Body& body,
      std::string& location
  );
  void set_up(const HttpRequest& request, const std::string& url);
  [[noreturn]] void fail_transport(int code, const std::string& url) const;

  const DownloadLimits& limits_;
  const ExtraTrust& trust_;
  const std::atomic<bool>& cancelled_;
  void* curl_;
  std::string reason_;
};

}  // namespace mlxcel::hub
