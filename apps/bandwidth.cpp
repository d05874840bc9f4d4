#include "apps/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "mlxcel/core/os.h"
#include "mlxcel/core/thread_pool.h"

namespace mlxcel::apps {

namespace {

constexpr int64_t kBytes = int64_t{1} << 29;
constexpr int64_t kPiece = int64_t{1} << 20;
constexpr int kPasses = 4;

uint64_t sum(const uint64_t* words, int64_t count) {
  constexpr int64_t kLanes = 16;
  uint64_t lanes[kLanes] = {};
  for (int64_t i = 0; i < count; i += kLanes) {
    __builtin_prefetch(words + i + 512);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += words[i + lane];
    }
  }
  uint64_t total = 0;
  for (uint64_t lane : lanes) {
    total += lane;
  }
  return total;
}

}  // namespace

double measure_read_bandwidth(ThreadPool& pool) {
  std::byte* data = os::reserve_memory(kBytes);
  auto* words = reinterpret_cast<uint64_t*>(data);
  std::fill(words, words + kBytes / 8, uint64_t{1});
  std::atomic<uint64_t> total = 0;
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    double start = os::now();
    pool.parallel_for(kBytes, kPiece, [&](int64_t begin, int64_t end) {
      total += sum(words + begin / 8, (end - begin) / 8);
    });
    best = std::max(best, static_cast<double>(kBytes) / (os::now() - start));
  }
  os::release_memory(data, kBytes);
  // The sum is used, so that the reads can't be optimised away.
  return total == 0 ? 0 : best;
}

}  // namespace mlxcel::apps
