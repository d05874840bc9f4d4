#include <algorithm>

#include "mlxcel/backend/cpu/matmul_plan.h"
#include "mlxcel/core/numbers.h"

/// Few rows of activations: what counts is that the weights stream at the
/// speed of memory. A thread reads two runs of rows that lie far apart, since
/// that keeps more of the memory system busy than one run does.
namespace mlxcel::backend::cpu {

namespace {

// A block is one cache line of outputs per row of activations or a multiple.
constexpr int64_t kBlockRows = 16;
constexpr int64_t kMaxBlockBytes = 32 << 10;
// Pieces that each thread has on average, so that one can help another.
constexpr int64_t kPieces = 12;

int64_t row_bytes(const RowFormat& format) {
  return format.code_bytes + 2 * format.scale_bytes;
}

// The blocks of the outputs: of all parts, for a gate of the first only.
void cut_blocks(MatmulJob& job) {
  std::vector<Block>& blocks = job.scratch.blocks;
  blocks.clear();
  int64_t total = 0;
  for (size_t i = 0; i < job.weight.parts.size(); ++i) {
    total += job.weight.parts[i].rows * row_bytes(job.scratch.formats[i]);
  }
  int64_t wanted = std::clamp<int64_t>(
      total / (2 * kPieces * job.pool.size()), 1, kMaxBlockBytes
  );
  size_t parts = job.epilogue.gate ? 1 : job.weight.parts.size();
  for (size_t i = 0; i < parts; ++i) {
    int64_t rows = job.weight.parts[i].rows;
    int64_t step =
        std::max<int64_t>(
            1, wanted / row_bytes(job.scratch.formats[i]) / kBlockRows
        ) *
        kBlockRows;
    for (int64_t first = 0; first < rows; first += step) {
      blocks.push_back(
          {static_cast<int>(i), first, std::min(step, rows - first)}
      );
    }
  }
}

class Decoder {
 public:
  explicit Decoder(const MatmulJob& job) : job_(job), plain_(job.plain()) {}

  // Multiplies two blocks; the second may be empty.
  void piece(Block a, Block b, std::byte* memory) const {
    int64_t ld = a.rows;
    auto* staged = reinterpret_cast<float*>(memory);
    std::byte* scratch = memory + staged_bytes(a.rows, b.rows);
    RowSpan spans[2] = {span_of(a), span_of(b)};
    int64_t offset = 0;
    for (int i = 0; i < 2; ++i) {
      const Block& block = i == 0 ? a : b;
      if (plain_) {
        spans[i].out = job_.y + job_.part(block.part).first + block.first;
        spans[i].ld_out = job_.ldy;
      } else {
        spans[i].out = staged + offset;
        spans[i].ld_out = block.rows;
        offset += job_.count * round_up(ld, kBlockRows);
      }
    }
    multiply(a, b, spans, scratch);
    if (!plain_) {
      finish(a, b, spans);
    }
  }

  int64_t memory(int64_t block_rows) const {
    return staged_bytes(block_rows, block_rows) +
           kernel_scratch(job_.weight.cols);
  }

 private:
  int64_t staged_bytes(int64_t a, int64_t b) const {
    int64_t rows = round_up(std::max(a, b), kBlockRows);
    return plain_ ? 0 : round_up(2 * job_.count * rows * 4, 64);
  }

  RowSpan span_of(const Block& block) const {
    return part_rows(
        job_.part(block.part), job_.format(block.part), block.first, block.rows
    );
  }

  void multiply(
      const Block& a, const Block& b, const RowSpan* spans, std::byte* scratch
  ) const {
    if (job_.same_kernel(a.part, b.part)) {
      call(a.part, spans, scratch);
      return;
    }
    RowSpan alone[2] = {spans[0], {}};
    call(a.part, alone, scratch);
    alone[0] = spans[1];
    call(b.part, alone, scratch);
  }

  void call(int part, const RowSpan* spans, std::byte* scratch) const {
    if (job_.is_int8(part)) {
      job_.kernels.decode_int8(
          job_.format(part), spans, job_.int8_rows(part), job_.count, scratch
      );
    } else {
      job_.kernels.decode_float(
          job_.format(part), spans, job_.x, job_.ldx, job_.count, scratch
      );
    }
  }

  void finish(const Block& a, const Block& b, const RowSpan* spans) const {
    for (int64_t t = 0; t < job_.count; ++t) {
      const float* first = spans[0].out + t * spans[0].ld_out;
      const float* second = spans[1].out + t * spans[1].ld_out;
      if (job_.epilogue.gate) {
        job_.store(t, a, first, second);
        continue;
      }
      job_.store(t, a, first, nullptr);
      if (b.rows > 0) {
        job_.store(t, b, second, nullptr);
      }
    }
  }

  const MatmulJob& job_;
  bool plain_;
};

}  // namespace

void run_decode(MatmulJob& job) {
  job.quantize(job.kernels.decode_order);
  cut_blocks(job);
  const std::vector<Block>& blocks = job.scratch.blocks;
  if (blocks.empty()) {
    return;
  }
  Decoder decoder(job);
  int64_t largest = 0;
  for (const Block& block : blocks) {
    largest = std::max(largest, block.rows);
  }
  for (Buffer& buffer : job.scratch.threads) {
    buffer.get(decoder.memory(largest));
  }
  int threads = job.pool.size();
  Queue* queues = job.scratch.queues_for(threads);
  auto share = [&](int thread) {
    return std::ssize(blocks) * thread / threads;
  };
  bool gate = job.epilogue.gate.has_value();
  for (int i = 0; i < threads; ++i) {
    int64_t own = share(i + 1) - share(i);
    queues[i].next.store(0, std::memory_order_relaxed);
    queues[i].end = gate ? own : ceil_div(own, 2);
  }
  auto run_queue = [&](int owner, std::byte* memory) {
    int64_t begin = share(owner);
    int64_t own = share(owner + 1) - begin;
    Queue& queue = queues[owner];
    while (true) {
      int64_t i = queue.next.fetch_add(1, std::memory_order_relaxed);
      if (i >= queue.end) {
        return;
      }
      Block a = blocks[static_cast<size_t>(begin + i)];
      Block b{a.part, 0, 0};
      if (gate) {
        b = {1, a.first, a.rows};
      } else if (queue.end + i < own) {
        b = blocks[static_cast<size_t>(begin + queue.end + i)];
      }
      decoder.piece(a, b, memory);
    }
  };
  auto work = [&](int thread, int count) {
    std::byte* memory = job.scratch.threads[static_cast<size_t>(thread)].data();
    for (int i = 0; i < count; ++i) {
      run_queue((thread + i) % count, memory);
    }
  };
  if (blocks.size() == 1 || threads == 1) {
    for (int i = 0; i < threads; ++i) {
      run_queue(i, job.scratch.threads[0].data());
    }
  } else {
    job.pool.run(work);
  }
}

}  // namespace mlxcel::backend::cpu
