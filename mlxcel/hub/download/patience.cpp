#include "mlxcel/hub/download/patience.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "mlxcel/core/os.h"
#include "mlxcel/hub/download/answers.h"

namespace mlxcel::hub {

namespace {

constexpr auto kSlice = std::chrono::milliseconds(50);
// A hub that can't be reached at the start seldom can a little later.
constexpr int kUnreachableCount = 3;

}  // namespace

Patience::Patience(
    const DownloadLimits& limits,
    const std::atomic<bool>& cancelled,
    const Note& note
)
    : limits_(limits), cancelled_(cancelled), note_(note) {}

void Patience::wait(
    const Error& error, std::optional<double> asked, int count
) {
  failed_ += count;
  if (failed_ >= limits_.tries ||
      asked.value_or(0) > limits_.longest_asked_pause) {
    throw error;
  }
  double pause = std::min(
      limits_.longest_pause, limits_.first_pause * std::exp2(failed_ - 1)
  );
  pause = std::max(pause, asked.value_or(0));
  note_(fmt::format("{}; trying again in {:.1f} s", error.message(), pause));
  double until = os::now() + pause;
  while (os::now() < until) {
    if (cancelled_.load()) {
      fail(ErrorCode::cancelled, "[download] cancelled");
    }
    std::this_thread::sleep_for(kSlice);
  }
}

HttpResponse fetch_answer(
    HttpClient& client,
    const HttpRequest& request,
    const std::string& subject,
    size_t limit,
    std::string& body,
    Patience patience
) {
  auto collect = [&](const HttpResponse&, std::string_view piece) {
    if (piece.size() > limit - body.size()) {
      fail(
          ErrorCode::invalid_input,
          fmt::format("[download] {}: more than {} bytes", subject, limit)
      );
    }
    body += piece;
  };
  while (true) {
    body.clear();
    try {
      HttpResponse response = client.perform(request, collect);
      bool redirect = response.status >= 300 && response.status < 400;
      if (response.success() || (redirect && !request.leave_origin)) {
        return response;
      }
      Error error = refusal(response, subject, !request.token.empty());
      if (!is_passing(response.status)) {
        throw error;
      }
      patience.wait(error, asked_pause(response));
    } catch (const ConnectionError& error) {
      if (!error.again()) {
        throw;
      }
      patience.wait(
          error, std::nullopt, error.reached() ? 1 : kUnreachableCount
      );
    }
  }
}

}  // namespace mlxcel::hub
