#include <algorithm>
#include <cstring>

#include "mlxcel/backend/cpu/matmul_plan.h"
#include "mlxcel/backend/cpu/unroll.h"
#include "mlxcel/core/numbers.h"

/// Many rows of activations: two panels of weight rows are unpacked once and
/// multiplied with all of them.
namespace mlxcel::backend::cpu {

namespace {

constexpr int64_t kTileCols = 2 * kPanelRows;
// Rows of x whose results are stored together: a multiple of what the kernels
// hold in registers.
constexpr int64_t kStoredRows = 24;
// Rows of x that unpacking the weights once more is little work beside.
constexpr int64_t kRangeRows = 128;

// Two panels; for a gate the same rows of both parts.
struct Unit {
  Block blocks[2];
};

// The panels of all parts in order; for a gate those of both parts alternate.
class Panels {
 public:
  explicit Panels(const MatmulJob& job) : job_(job) {
    for (int i = 0; i < job.parts(); ++i) {
      count_ += ceil_div(job.part(i).rows, kPanelRows);
    }
  }

  int64_t units() const {
    return ceil_div(count_, 2);
  }

  Unit unit(int64_t index) const {
    return {{block(2 * index), block(2 * index + 1)}};
  }

 private:
  Block block(int64_t index) const {
    if (index >= count_) {
      return {};
    }
    int part = 0;
    if (job_.epilogue.gate) {
      part = static_cast<int>(index % 2);
      index /= 2;
    }
    while (index >= ceil_div(job_.part(part).rows, kPanelRows)) {
      index -= ceil_div(job_.part(part).rows, kPanelRows);
      ++part;
    }
    int64_t first = index * kPanelRows;
    return {part, first, std::min(kPanelRows, job_.part(part).rows - first)};
  }

  const MatmulJob& job_;
  int64_t count_ = 0;
};

class Prefill {
 public:
  explicit Prefill(const MatmulJob& job) : job_(job) {
    int64_t cols = std::min(kPanelCols, job.weight.cols);
    code_bytes_ = round_up(cols, 64) * kPanelRows * 4;
    int64_t group = 32;
    for (int i = 0; i < job.parts(); ++i) {
      group = job.format(i).group == 16 ? 16 : group;
    }
    scale_bytes_ = cols / group * kPanelRows * 4;
    panel_bytes_ = code_bytes_ + 2 * round_up(scale_bytes_, 64);
  }

  int64_t memory(int64_t rows) const {
    return 2 * panel_bytes_ + rows * kTileCols * 4 +
           kernel_scratch(job_.weight.cols);
  }

  // Rows [begin, end) of x times the blocks of a unit.
  void run(const Unit& unit, int64_t begin, int64_t end, std::byte* memory)
      const {
    auto* tile = reinterpret_cast<float*>(memory + 2 * panel_bytes_);
    std::byte* scratch =
        memory + 2 * panel_bytes_ + (end - begin) * kTileCols * 4;
    Panel panels[2] = {panel_at(memory), panel_at(memory + panel_bytes_)};
    int64_t cols = job_.weight.cols;
    for (int64_t from = 0; from < cols; from += kPanelCols) {
      int64_t width = std::min(kPanelCols, cols - from);
      for (int i = 0; i < 2 && unit.blocks[i].rows > 0; ++i) {
        pack(unit.blocks[i], from, width, panels[i], scratch);
      }
      // Results are stored while the next ones are computed.
      bool last = from + width == cols;
      for (int64_t t = begin; t < end; t += kStoredRows) {
        int64_t stop = std::min(end, t + kStoredRows);
        float* rows = tile + (t - begin) * kTileCols;
        if (last) {
          fetch_outputs(unit, t, stop);
        }
        multiply(unit, panels, from, width, t, stop, rows);
        if (last) {
          store(unit, t, stop, rows);
        }
      }
    }
  }

 private:
  // Has the lines that the results go to brought near while they are
  // computed.
  void fetch_outputs(const Unit& unit, int64_t begin, int64_t end) const {
    int blocks = job_.epilogue.gate ? 1 : 2;
    for (int i = 0; i < blocks && unit.blocks[i].rows > 0; ++i) {
      const Block& block = unit.blocks[i];
      int64_t column = job_.part(block.part).first + block.first;
      for (int64_t t = begin; t < end; ++t) {
        fetch_for_write(job_.y + t * job_.ldy + column, block.rows * 4);
        if (job_.epilogue.residual != nullptr) {
          __builtin_prefetch(
              job_.epilogue.residual + t * job_.epilogue.ld_residual + column
          );
        }
      }
    }
  }

  Panel panel_at(std::byte* memory) const {
    auto* scales = reinterpret_cast<float*>(memory + code_bytes_);
    return {memory, scales, scales + round_up(scale_bytes_, 64) / 4};
  }

  void pack(
      const Block& block,
      int64_t from,
      int64_t width,
      const Panel& panel,
      std::byte* scratch
  ) const {
    const RowFormat& format = job_.format(block.part);
    RowSpan span =
        part_rows(job_.part(block.part), format, block.first, block.rows);
    auto function = job_.is_int8(block.part) ? job_.kernels.pack_int8
                                             : job_.kernels.pack_float;
    function(format, span, from, width, panel, scratch);
  }

  void multiply(
      const Unit& unit,
      const Panel* panels,
      int64_t from,
      int64_t width,
      int64_t begin,
      int64_t end,
      float* tile
  ) const {
    const Block& a = unit.blocks[0];
    const Block& b = unit.blocks[1];
    if (b.rows > 0 && job_.same_kernel(a.part, b.part)) {
      call(a.part, panels, 2, from, width, begin, end, tile);
      return;
    }
    call(a.part, panels, 1, from, width, begin, end, tile);
    if (b.rows > 0) {
      float* second = tile + kPanelRows;
      call(b.part, panels + 1, 1, from, width, begin, end, second);
    }
  }

  void call(
      int part,
      const Panel* panels,
      int count,
      int64_t from,
      int64_t width,
      int64_t begin,
      int64_t end,
      float* tile
  ) const {
    const RowFormat& format = job_.format(part);
    if (job_.is_int8(part)) {
      Int8Rows x = job_.int8_rows(part);
      x.q += begin * x.ld_q + from;
      x.scale += begin * x.ld_scale + from / format.group;
      x.sum += begin * x.ld_scale + from / format.group;
      job_.kernels.multiply_int8(
          format,
          panels,
          count,
          width,
          x,
          end - begin,
          from == 0,
          tile,
          kTileCols
      );
    } else {
      job_.kernels.multiply_float(
          panels,
          count,
          width,
          job_.x + begin * job_.ldx + from,
          job_.ldx,
          end - begin,
          from == 0,
          tile,
          kTileCols
      );
    }
  }

  void store(const Unit& unit, int64_t begin, int64_t end, const float* tile)
      const {
    const Block& a = unit.blocks[0];
    const Block& b = unit.blocks[1];
    const float* second = tile + kPanelRows;
    if (job_.epilogue.gate) {
      job_.store(a, begin, end, tile, second, kTileCols);
      return;
    }
    job_.store(a, begin, end, tile, nullptr, kTileCols);
    if (b.rows > 0) {
      job_.store(b, begin, end, second, nullptr, kTileCols);
    }
  }

  const MatmulJob& job_;
  int64_t code_bytes_;
  int64_t scale_bytes_;
  int64_t panel_bytes_;
};

// Copies x so that the same column of several rows does not fall into one set
// of the cache.
void pad_rows(MatmulJob& job) {
  int64_t cols = job.weight.cols;
  int64_t ld = round_up(cols, 16) + 16;
  auto* to =
      reinterpret_cast<float*>(job.scratch.padded.get(job.count * ld * 4));
  const float* from = job.x;
  int64_t ldx = job.ldx;
  job.pool.parallel_for(job.count, 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      std::memcpy(to + t * ld, from + t * ldx, static_cast<size_t>(cols) * 4);
    }
  });
  job.x = to;
  job.ldx = ld;
}

}  // namespace

void run_prefill(MatmulJob& job) {
  job.quantize([](int) { return Order::natural; });
  bool any_float = false;
  for (int i = 0; i < job.parts(); ++i) {
    any_float = any_float || !job.is_int8(i);
  }
  if (any_float) {
    pad_rows(job);
  }
  Panels panels(job);
  Prefill prefill(job);
  int threads = job.pool.size();
  // Each thread keeps to rows of x of its own, as it did when it quantised
  // them, as long as they are worth unpacking the weights for.
  int64_t ranges = std::clamp<int64_t>(job.count / kRangeRows, 1, threads);
  for (Buffer& buffer : job.scratch.threads) {
    buffer.get(prefill.memory(ceil_div(job.count, ranges)));
  }
  Queue* queues = job.scratch.start_queues(threads);
  job.pool.run([&](int thread, int) {
    std::byte* memory = job.scratch.threads[static_cast<size_t>(thread)].data();
    for (int64_t i = 0; i < ranges; ++i) {
      int64_t range = (thread * ranges / threads + i) % ranges;
      int64_t begin = job.count * range / ranges;
      int64_t end = job.count * (range + 1) / ranges;
      while (true) {
        int64_t unit =
            queues[range].next.fetch_add(1, std::memory_order_relaxed);
        if (unit >= panels.units()) {
          break;
        }
        prefill.run(panels.unit(unit), begin, end, memory);
      }
    }
  });
}

}  // namespace mlxcel::backend::cpu
