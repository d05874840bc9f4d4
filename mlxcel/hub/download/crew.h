#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "mlxcel/hub/download/http.h"
#include "mlxcel/hub/download_progress.h"

namespace mlxcel::hub {

/// The threads of a download, each with a connection of its own. The thread
/// that calls run() tells the progress.
class Crew {
 public:
  /// Does the file of that index; true if something was fetched.
  using Job = std::function<bool(HttpClient& client, size_t file)>;

  /// `files` are those that jobs are about, in order. All outlive it.
  Crew(
      const std::vector<FileProgress>& files,
      const DownloadLimits& limits,
      const ExtraTrust& trust,
      DownloadProgress& progress
  );

  /// Does the job for [begin, end), at most limits.parallel at a time. Throws
  /// the first error of a job when all have ended; those in work are
  /// cancelled. `told`: whether finished files are reported.
  void run(size_t begin, size_t end, bool told, const Job& job);

  /// From any thread: tells the progress.
  void note(const std::string& text);
  /// Bytes of the file that are there.
  std::atomic<uint64_t>& position(size_t file) {
    return positions_[file];
  }
  const std::atomic<bool>& cancelled() const {
    return cancelled_;
  }

 private:
  struct Event {
    std::string note;
    size_t file = 0;
    bool fetched = false;
    bool finished = false;
  };
  enum class State : char { waiting, active, done };

  void work(size_t end, bool told, const Job& job);
  void do_file(HttpClient& client, size_t file, bool told, const Job& job);
  void keep_error();
  void tell_until_done();
  void report();

  const std::vector<FileProgress>& files_;
  const DownloadLimits& limits_;
  const ExtraTrust& trust_;
  DownloadProgress& progress_;
  std::vector<std::atomic<uint64_t>> positions_;
  std::vector<std::atomic<State>> states_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  size_t working_ = 0;
  std::exception_ptr error_;
};

}  // namespace mlxcel::hub
