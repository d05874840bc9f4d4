#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "mlxcel/hub/download/http.h"
#include "mlxcel/hub/download/limits.h"

namespace mlxcel::hub {

/// How often something is tried again, and after what pause.
class Patience {
 public:
  using Note = std::function<void(const std::string&)>;

  /// All three outlive it.
  Patience(
      const DownloadLimits& limits,
      const std::atomic<bool>& cancelled,
      const Note& note
  );

  /// A try that brought something on: counting begins anew.
  void reward() {
    failed_ = 0;
  }
  /// Waits after a failed try. Throws `error` when there were enough, or when
  /// the hub asks for a longer pause than is bearable. `count`: the tries that
  /// this one counts for.
  void wait(
      const Error& error,
      std::optional<double> asked = std::nullopt,
      int count = 1
  );

 private:
  const DownloadLimits& limits_;
  const std::atomic<bool>& cancelled_;
  const Note& note_;
  int failed_ = 0;
};

/// Performs the request until its answer is neither broken nor passing.
/// `subject` is what messages name. The body of a success is put in `body`,
/// at most `limit` bytes. Throws what Patience does, and Error for an answer
/// other than success; redirects are answers if the request keeps to its
/// origin.
HttpResponse fetch_answer(
    HttpClient& client,
    const HttpRequest& request,
    const std::string& subject,
    size_t limit,
    std::string& body,
    Patience patience
);

}  // namespace mlxcel::hub
