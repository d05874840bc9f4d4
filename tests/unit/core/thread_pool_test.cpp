#include "mlxcel/core/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace mlxcel {
namespace {

TEST(ThreadPool, RunsOnceOnEveryThread) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(threads));
      pool.run([&](int thread, int count) {
        EXPECT_EQ(count, threads);
        ++calls[static_cast<size_t>(thread)];
      });
      for (const auto& count : calls) {
        ASSERT_EQ(count.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, CoversTheRangeOnce) {
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 7, 64, 1000}) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
    pool.parallel_for(count, 7, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ++hits[static_cast<size_t>(i)];
      }
    });
    for (const auto& hit : hits) {
      ASSERT_EQ(hit.load(), 1);
    }
  }
}

TEST(ThreadPool, WakesAfterSleepAndResizes) {
  ThreadPool pool(2);
  std::atomic<int> calls = 0;
  for (int threads : {2, 4, 1, 3}) {
    pool.resize(threads);
    // Long enough for the workers to give up spinning.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    calls = 0;
    pool.run([&](int, int) { ++calls; });
    EXPECT_EQ(calls.load(), threads);
  }
}

// Memory may run out on any thread: the process lives, the caller is told.
TEST(ThreadPool, AnExceptionOfAnyThreadComesOut) {
  ThreadPool pool(3);
  for (int thrower : {0, 1, 2}) {
    std::atomic<int> calls = 0;
    EXPECT_THROW(
        pool.run([&](int thread, int) {
          ++calls;
          if (thread == thrower) {
            throw std::bad_alloc();
          }
        }),
        std::bad_alloc
    );
    EXPECT_EQ(calls.load(), 3);
  }
  EXPECT_THROW(
      pool.parallel_for(
          1000, 1, [](int64_t, int64_t) { throw std::runtime_error("each"); }
      ),
      std::runtime_error
  );
  std::atomic<int64_t> sum = 0;
  pool.parallel_for(1000, 7, [&](int64_t begin, int64_t end) {
    sum += end - begin;
  });
  EXPECT_EQ(sum.load(), 1000);
}

}  // namespace
}  // namespace mlxcel
