#include "mlxcel/weights/transform/conv_layout.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "mlxcel/core/thread_pool.h"
#include "mlxcel/weights/transform/lazy_planes.h"
#include "mlxcel/weights/transform/planes_beside.h"

namespace mlxcel {

namespace {

void require_rank(const std::string& name, const Weight& weight, size_t rank) {
  if (weight.shape.size() != rank) {
    reject_plane(
        "convolution", name, weight, fmt::format("expected {} dimensions", rank)
    );
  }
}

// [N, A, B] -> [N, B, A] for elements of any size.
Weight swap_last_two(const Weight& weight, std::array<int64_t, 3> sizes) {
  auto size = static_cast<int64_t>(dtype_size(weight.dtype));
  int64_t count = sizes[0];
  int64_t rows = sizes[1];
  int64_t cols = sizes[2];
  auto make = [=](const std::vector<Weight>& inputs,
                  const std::vector<std::byte*>& planes) {
    const std::byte* from = inputs[0].bytes().data();
    auto swap = [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const std::byte* in = from + n * rows * cols * size;
        std::byte* out = planes[0] + n * rows * cols * size;
        for (int64_t c = 0; c < cols; ++c) {
          for (int64_t r = 0; r < rows; ++r) {
            const std::byte* value = in + (r * cols + c) * size;
            std::memcpy(out, value, static_cast<size_t>(size));
            out += size;
          }
        }
      }
    };
    ThreadPool::instance().parallel_for(count, 1, swap);
  };
  int64_t bytes = count * rows * cols * size;
  Weight swapped = weight;
  swapped.source = lazy_planes({weight}, {bytes}, make)[0];
  return swapped;
}

}  // namespace

bool is_channel_last_conv2d(std::span<const int64_t> shape) {
  return shape.size() == 4 && shape[0] >= shape[1] && shape[0] >= shape[2] &&
         shape[1] == shape[2];
}

bool is_channel_last_depthwise_conv1d(std::span<const int64_t> shape) {
  return shape.size() == 3 && shape[2] == 1 && shape[1] > 1;
}

Weight channel_last_conv2d(const std::string& name, const Weight& weight) {
  require_rank(name, weight, 4);
  if (is_channel_last_conv2d(weight.shape)) {
    return weight;
  }
  const std::vector<int64_t>& s = weight.shape;
  Weight last = swap_last_two(weight, {s[0], s[1], s[2] * s[3]});
  last.shape = {s[0], s[2], s[3], s[1]};
  return last;
}

Weight channel_last_depthwise_conv1d(
    const std::string& name, const Weight& weight
) {
  require_rank(name, weight, 3);
  if (is_channel_last_depthwise_conv1d(weight.shape)) {
    return weight;
  }
  const std::vector<int64_t>& s = weight.shape;
  Weight last = swap_last_two(weight, {s[0], s[1], s[2]});
  last.shape = {s[0], s[2], s[1]};
  return last;
}

}  // namespace mlxcel
