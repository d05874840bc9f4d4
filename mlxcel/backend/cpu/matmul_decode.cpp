#include <algorithm>
#include <type_traits>

#include "mlxcel/backend/cpu/matmul_plan.h"
#include "mlxcel/core/numbers.h"

/// Few rows of activations: what counts is that the weights stream at the
/// speed of memory. A thread reads two runs of rows that lie far apart, since
/// that keeps more of the memory system busy than one run does.
namespace mlxcel::backend::cpu {

namespace {

// A block is one cache line of outputs per row of activations or a multiple.
constexpr int64_t kBlockRows = 16;
constexpr int64_t kMaxBlockBytes = 24 << 10;
// Pairs of blocks that each thread has at least, so that one can help another.
constexpr int64_t kPieces = 4;

class Decoder {
 public:
  explicit Decoder(const MatmulJob& job)
      : job_(job),
        queues_(job.scratch.start_queues(job.pool.size())),
        plain_(job.plain()),
        gate_(job.epilogue.gate.has_value()),
        threads_(job.pool.size()) {
    int64_t total = 0;
    for (int i = 0; i < job.parts(); ++i) {
      total += job.part(i).rows * row_bytes(i);
    }
    int64_t wanted = std::clamp<int64_t>(
        total / (2 * kPieces * threads_), 1, kMaxBlockBytes
    );
    std::vector<Cut>& cuts = job.slot.cuts;
    cuts.clear();
    for (int i = 0; i < (gate_ ? 1 : job.parts()); ++i) {
      int64_t rows = job.part(i).rows;
      int64_t step =
          round_up(std::max<int64_t>(1, wanted / row_bytes(i)), kBlockRows);
      cuts.push_back({step, ceil_div(rows, step)});
      largest_ = std::max(largest_, std::min(step, rows));
      blocks_ += cuts.back().count;
    }
    cuts_ = cuts.data();
  }

  int64_t blocks() const {
    return blocks_;
  }

  int64_t memory() const {
    return staged_bytes() + kernel_scratch(job_.weight.cols);
  }

  // Own blocks first, then what others have not got to.
  void work(int thread) const {
    std::byte* memory =
        job_.scratch.threads[static_cast<size_t>(thread)].data();
    for (int i = 0; i < threads_; ++i) {
      run_queue((thread + i) % threads_, memory);
    }
  }

 private:
  // What is left of a thread's blocks: those of its first half one by one,
  // each with its match in the second half.
  void run_queue(int owner, std::byte* memory) const {
    int64_t begin = blocks_ * owner / threads_;
    int64_t own = blocks_ * (owner + 1) / threads_ - begin;
    int64_t pieces = gate_ ? own : ceil_div(own, 2);
    while (true) {
      int64_t i = queues_[owner].next.fetch_add(1, std::memory_order_relaxed);
      if (i >= pieces) {
        return;
      }
      Block a = block(begin + i);
      Block b{1, a.first, a.rows};
      if (!gate_) {
        b = pieces + i < own ? block(begin + pieces + i) : halve(a);
      }
      piece(a, b, memory);
    }
  }

  int64_t row_bytes(int part) const {
    const RowFormat& format = job_.format(part);
    return format.code_bytes + 2 * format.scale_bytes;
  }

  Block block(int64_t index) const {
    int part = 0;
    while (index >= cuts_[part].count) {
      index -= cuts_[part++].count;
    }
    int64_t first = index * cuts_[part].step;
    return {
        part, first, std::min(cuts_[part].step, job_.part(part).rows - first)};
  }

  // Takes the second half off a block.
  static Block halve(Block& block) {
    int64_t rows = block.rows / 2;
    block.rows -= rows;
    return {block.part, block.first + block.rows, rows};
  }

  int64_t staged_bytes() const {
    return plain_ ? 0 : 2 * job_.count * round_up(largest_, kBlockRows) * 4;
  }

  // Multiplies two blocks; the second may be empty.
  void piece(const Block& a, const Block& b, std::byte* memory) const {
    RowSpan spans[2] = {span_of(a), span_of(b)};
    auto* staged = reinterpret_cast<float*>(memory);
    int64_t ld = round_up(largest_, kBlockRows);
    for (int i = 0; i < 2; ++i) {
      const Block& block = i == 0 ? a : b;
      if (plain_) {
        spans[i].out = job_.y + job_.part(block.part).first + block.first;
        spans[i].ld_out = job_.ldy;
      } else {
        spans[i].out = staged + i * job_.count * ld;
        spans[i].ld_out = ld;
      }
    }
    multiply(a, b, spans, memory + staged_bytes());
    if (plain_) {
      return;
    }
    if (gate_) {
      job_.store(a, 0, job_.count, spans[0].out, spans[1].out, ld);
      return;
    }
    job_.store(a, 0, job_.count, spans[0].out, nullptr, ld);
    if (b.rows > 0) {
      job_.store(b, 0, job_.count, spans[1].out, nullptr, ld);
    }
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

  MatmulJob job_;
  Queue* queues_;
  bool plain_;
  bool gate_;
  int threads_;
  const Cut* cuts_ = nullptr;
  int64_t largest_ = 0;
  int64_t blocks_ = 0;
};

}  // namespace

void run_decode(MatmulJob& job) {
  static_assert(std::is_trivially_destructible_v<Decoder>);
  const Decoder& decoder =
      *new (job.slot.call.get(sizeof(Decoder))) Decoder(job);
  if (decoder.blocks() == 0) {
    return;
  }
  job.quantize(job.kernels.decode_order);
  for (Buffer& buffer : job.scratch.threads) {
    buffer.get(decoder.memory());
  }
  if (decoder.blocks() == 1) {
    for (int i = 0; i < job.pool.size(); ++i) {
      decoder.work(i);
    }
  } else {
    job.pool.run([&](int thread, int) { decoder.work(thread); });
  }
  job.scratch.fetch_next_slot();
}

}  // namespace mlxcel::backend::cpu
