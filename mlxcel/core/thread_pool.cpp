#include "mlxcel/core/thread_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "mlxcel/core/log.h"
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
  claims_ = std::make_unique<Claim[]>(static_cast<size_t>(threads_));
  workers_.reserve(static_cast<size_t>(threads_));
  for (int thread = 1; thread < threads_; ++thread) {
    // The epoch is read here: a region may start before the thread does.
    try {
      workers_.emplace_back([this, thread, seen = epoch_.load()] {
        work(thread, seen);
      });
    } catch (const std::exception& error) {
      log_warning(fmt::format(
          "[threads] {} of {} threads: {}", thread, threads_, error.what()
      ));
      threads_ = thread;
    }
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

bool ThreadPool::claim(int thread, uint64_t epoch) {
  std::atomic<uint64_t>& last = claims_[static_cast<size_t>(thread)].epoch;
  uint64_t seen = last.load(std::memory_order_relaxed);
  // Only the thread and the caller of the region write, and the caller never
  // leaves a region whose calls are not all claimed.
  return seen < epoch &&
         last.compare_exchange_strong(seen, epoch, std::memory_order_acq_rel);
}

void ThreadPool::dispatch(Task task, void* context) {
  if (threads_ == 1) {
    task(context, 0, 1);
    return;
  }
  task_ = task;
  context_ = context;
  pending_.store(threads_ - 1, std::memory_order_relaxed);
  uint64_t epoch = epoch_.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (sleeping_.load(std::memory_order_seq_cst) > 0) {
    std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  task(context, 0, threads_);
  for (int thread = 1; thread < threads_; ++thread) {
    if (claim(thread, epoch)) {
      task(context, thread, threads_);
      pending_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
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
    if (!claim(thread, seen)) {
      continue;
    }
    task_(context_, thread, threads_);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace mlxcel
