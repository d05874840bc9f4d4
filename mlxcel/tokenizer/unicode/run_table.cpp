#include "mlxcel/tokenizer/unicode/run_table.h"

#include <map>

namespace mlxcel::unicode {

namespace {
constexpr uint32_t code_points = 0x110000;
constexpr uint32_t block_size = 256;
}  // namespace

RunTable::RunTable(std::span<const Run> runs)
    : blocks_(code_points / block_size) {
  std::map<uint16_t, uint32_t> uniform;  // value -> where its block is
  size_t run = 0;
  auto run_end = [&](size_t r) {
    return r + 1 < runs.size() ? runs[r + 1].first : code_points;
  };
  for (uint32_t block = 0; block < blocks_.size(); ++block) {
    uint32_t first = block * block_size;
    while (run_end(run) <= first) {
      ++run;
    }
    blocks_[block] = static_cast<uint32_t>(cells_.size());
    if (run_end(run) >= first + block_size) {
      auto [known, added] =
          uniform.try_emplace(runs[run].value, blocks_[block]);
      blocks_[block] = known->second;
      if (added) {
        cells_.insert(cells_.end(), block_size, runs[run].value);
      }
      continue;
    }
    for (uint32_t c = first; c < first + block_size; ++c) {
      if (run_end(run) <= c) {
        ++run;
      }
      cells_.push_back(runs[run].value);
    }
  }
}

}  // namespace mlxcel::unicode
