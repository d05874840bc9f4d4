#include "mlxcel/core/thread_pool.h"

#include <algorithm>

#include "mlxcel/core/os.h"

namespace mlxcel {

namespace {

// About a millisecond of spinning before a worker gives its core back: longer
// than any gap inside a step, shorter than a user notices.
constexpr int kSpins = 20000;

}  // namespace

ThreadPool& ThreadPool::instance() {
  static ThreadPool pool(os::usable_cores());
  return pool;
}

ThreadPool::ThreadPool(int threads) : threads_(std::max(1, threads)) {
  start();
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::resize(int threads) {
  threads = std::max(1, threads);
  if (threads != threads_) {
    stop();
    threads_ = threads;
    start();
  }
}

void ThreadPool::start() {
  quit_ = false;
  for (int thread = 1; thread < threads_; ++thread) {
    // The epoch is read here: a region may start before the thread does.
    workers_.emplace_back([this, thread, seen = epoch_.load()] {
      work(thread, seen);
    });
  }
}

void ThreadPool::stop() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
  workers_.clear();
}

void ThreadPool::dispatch(Task task, void* context) {
  if (threads_ == 1) {
    task(context, 0, 1);
    return;
  }
  task_ = task;
  context_ = context;
  pending_.store(threads_ - 1, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) {
    std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  task(context, 0, threads_);
  // A worker may have lost its core: after a while let it have ours.
  for (int spins = 0; pending_.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < kSpins) {
      os::cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::work(int thread, uint64_t seen) {
  while (true) {
    int spins = 0;
    while (epoch_.load(std::memory_order_acquire) == seen) {
      if (++spins < kSpins) {
        os::cpu_relax();
        continue;
      }
      std::unique_lock lock(mutex_);
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(lock, [&] {
        return epoch_.load(std::memory_order_seq_cst) != seen;
      });
      sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    }
    seen = epoch_.load(std::memory_order_acquire);
    if (quit_.load(std::memory_order_acquire)) {
      return;
    }
    task_(context_, thread, threads_);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace mlxcel
