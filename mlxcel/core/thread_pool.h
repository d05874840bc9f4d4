#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mlxcel {

/// One persistent pool per process. Inside a busy period the workers spin, so
/// that a parallel region costs well under a microsecond; left alone they
/// sleep. Regions don't nest and come from one thread at a time.
class ThreadPool {
 public:
  /// Made at first use with the number of usable cores.
  static ThreadPool& instance();

  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Threads of a region, the caller among them; fewer than asked for, with a
  /// warning, if the system gives no more.
  int size() const {
    return threads_;
  }
  /// Between regions only.
  void resize(int threads);

  /// Calls f(thread, threads) once for every thread; returns when all calls
  /// have. The caller makes those of threads that have no core at the moment,
  /// so that a busy machine costs no more than its share. If calls throw, one
  /// of their exceptions comes out.
  template <typename F>
  void run(F&& f) {
    using Region = Guarded<std::remove_reference_t<F>>;
    Region region{f};
    dispatch(&Region::call, &region);
    if (region.thrown) {
      std::rethrow_exception(region.thrown);
    }
  }

  /// Calls f(begin, end) over [0, count) in pieces of `grain`, taken by
  /// whichever thread is free, so that a slow core does not hold up the rest.
  template <typename F>
  void parallel_for(int64_t count, int64_t grain, F&& f) {
    if (count <= grain || threads_ == 1) {
      if (count > 0) {
        f(int64_t{0}, count);
      }
      return;
    }
    std::atomic<int64_t> next = 0;
    run([&](int, int) {
      while (true) {
        int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= count) {
          return;
        }
        f(begin, begin + grain < count ? begin + grain : count);
      }
    });
  }

 private:
  using Task = void (*)(void* context, int thread, int threads);

  /// A region's function, which must not throw on a thread of the pool.
  template <typename F>
  struct Guarded {
    F& f;
    std::atomic<bool> failed = false;
    std::exception_ptr thrown;

    static void call(void* context, int thread, int threads) noexcept {
      auto& region = *static_cast<Guarded*>(context);
      try {
        region.f(thread, threads);
      } catch (...) {
        if (!region.failed.exchange(true, std::memory_order_relaxed)) {
          region.thrown = std::current_exception();
        }
      }
    }
  };

  void dispatch(Task task, void* context);
  void start();
  void stop();
  void work(int thread, uint64_t seen);

  /// The last region that a thread's call was begun for, by it or for it.
  struct alignas(64) Claim {
    std::atomic<uint64_t> epoch = 0;
  };
  /// Whether the call is the caller's to make.
  bool claim(int thread, uint64_t epoch);

  int threads_;
  std::vector<std::thread> workers_;
  std::unique_ptr<Claim[]> claims_;
  // What a worker reads at the start of a region comes with the epoch, in one
  // line.
  alignas(64) std::atomic<uint64_t> epoch_ = 0;
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::atomic<bool> quit_ = false;
  alignas(64) std::atomic<int> pending_ = 0;
  alignas(64) std::atomic<int> sleeping_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace mlxcel
