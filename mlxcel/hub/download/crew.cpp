#include "mlxcel/hub/download/crew.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace mlxcel::hub {

namespace {

constexpr auto kReportEvery = std::chrono::milliseconds(100);

// Joins, and cancels first if something was thrown meanwhile.
class Threads {
 public:
  explicit Threads(std::atomic<bool>& cancelled) : cancelled_(cancelled) {}
  ~Threads() {
    if (std::uncaught_exceptions() > before_) {
      cancelled_.store(true);
    }
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  template <typename F>
  void add(F&& work) {
    threads_.emplace_back(std::forward<F>(work));
  }

 private:
  std::atomic<bool>& cancelled_;
  int before_ = std::uncaught_exceptions();
  std::vector<std::thread> threads_;
};

}  // namespace

Crew::Crew(
    const std::vector<FileProgress>& files,
    const DownloadLimits& limits,
    const ExtraTrust& trust,
    DownloadProgress& progress
)
    : files_(files),
      limits_(limits),
      trust_(trust),
      progress_(progress),
      positions_(files.size()),
      states_(files.size()) {}

void Crew::run(size_t begin, size_t end, bool told, const Job& job) {
  next_.store(begin);
  size_t count = std::min(limits_.parallel, end - begin);
  working_ = count;
  {
    Threads threads(cancelled_);
    for (size_t i = 0; i < count; ++i) {
      threads.add([&] { work(end, told, job); });
    }
    tell_until_done();
  }
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void Crew::tell_until_done() {
  std::unique_lock lock(mutex_);
  while (working_ > 0 || !events_.empty()) {
    if (events_.empty()) {
      changed_.wait_for(lock, kReportEvery);
    }
    std::deque<Event> events;
    events.swap(events_);
    lock.unlock();
    for (const Event& event : events) {
      if (event.finished) {
        progress_.finished(files_[event.file], event.fetched);
      } else {
        progress_.note(event.note);
      }
    }
    report();
    lock.lock();
  }
}

void Crew::report() {
  std::vector<FileProgress> active;
  uint64_t done = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    uint64_t position = positions_[i].load();
    done += position;
    if (states_[i].load() == State::active) {
      active.push_back(files_[i]);
      active.back().done = position;
    }
  }
  progress_.update(active, done);
}

void Crew::work(size_t end, bool told, const Job& job) {
  try {
    HttpClient client(limits_, trust_, cancelled_);
    while (!cancelled_.load()) {
      size_t file = next_.fetch_add(1);
      if (file >= end) {
        break;
      }
      do_file(client, file, told, job);
    }
  } catch (...) {
    keep_error();
  }
  std::lock_guard lock(mutex_);
  working_ -= 1;
  changed_.notify_one();
}

void Crew::do_file(HttpClient& client, size_t file, bool told, const Job& job) {
  if (told) {
    states_[file].store(State::active);
  }
  bool fetched = job(client, file);
  if (!told) {
    return;
  }
  states_[file].store(State::done);
  positions_[file].store(files_[file].size);
  std::lock_guard lock(mutex_);
  events_.push_back({"", file, fetched, true});
  changed_.notify_one();
}

void Crew::keep_error() {
  std::lock_guard lock(mutex_);
  if (!error_) {
    error_ = std::current_exception();
  }
  cancelled_.store(true);
}

void Crew::note(const std::string& text) {
  std::lock_guard lock(mutex_);
  events_.push_back({text});
  changed_.notify_one();
}

}  // namespace mlxcel::hub
