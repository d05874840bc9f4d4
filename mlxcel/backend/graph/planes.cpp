#include "mlxcel/backend/graph/planes.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "mlxcel/backend/graph/device_copy.h"
#include "mlxcel/core/error.h"

namespace mlxcel::backend::graph {

namespace {

mx::Shape plane_shape(const Weight& weight, const std::string& name) {
  mx::Shape shape;
  for (int64_t size : weight.shape) {
    shape.push_back(dimension(size, name));
  }
  return shape;
}

// The allocator of a CPU-only MLX puts a size word before the data, which a
// Buffer points to (mlx/backend/no_gpu/allocator.cpp). Data with a deleter is
// not owned, so MLX never donates it to an output.
mx::array borrow(
    const std::byte* bytes,
    const mx::Shape& shape,
    mx::Dtype dtype,
    std::shared_ptr<const WeightSource> source
) {
  mx::array result(shape, dtype, nullptr, {});
  void* word = const_cast<std::byte*>(bytes) - sizeof(size_t);
  result.set_data(mx::allocator::Data(
      mx::allocator::Buffer(word),
      [held = std::move(source)](mx::allocator::Buffer) {}
  ));
  result.set_status(mx::array::Status::available);
  return result;
}

mx::array copy(
    std::span<const std::byte> bytes, const mx::Shape& shape, mx::Dtype dtype
) {
  mx::allocator::Data data = mx::allocator::malloc(bytes.size());
  void* target = data.buffer().raw_ptr();
  if (target == nullptr) {
    throw std::bad_alloc();
  }
  std::memcpy(target, bytes.data(), bytes.size());
  return mx::array(std::move(data), shape, dtype);
}

bool check_borrowing() {
  if (mx::is_available(mx::Device(mx::Device::gpu))) {
    return false;
  }
  mx::allocator::Data own = mx::allocator::malloc(sizeof(size_t));
  mx::allocator::Buffer buffer = own.buffer();
  if (buffer.raw_ptr() !=
      static_cast<std::byte*>(buffer.ptr()) + sizeof(size_t)) {
    return false;
  }
  constexpr size_t words = 2;
  alignas(size_t) std::array<float, words + 3> memory = {0, 0, 1, 2, 4};
  const float* values = memory.data() + words;
  mx::Stream stream = mx::new_thread_unsafe_stream(mx::Device::cpu);
  mx::array borrowed = borrow(
      reinterpret_cast<const std::byte*>(values), {3}, mx::float32, nullptr
  );
  mx::array sum = mx::sum(mx::add(borrowed, borrowed, stream), false, stream);
  bool right = sum.item<float>() == 14.0F;
  return right && borrowed.data<float>() == values && values[0] == 1.0F &&
         values[1] == 2.0F && values[2] == 4.0F;
}

}  // namespace

mx::Dtype plane_dtype(DType dtype, const std::string& name) {
  switch (dtype) {
    case DType::f32:
      return mx::float32;
    case DType::f16:
      return mx::float16;
    case DType::bf16:
      return mx::bfloat16;
    case DType::u32:
      return mx::uint32;
    case DType::u8:
    case DType::f8_e8m0:
    case DType::f8_e4m3:
      return mx::uint8;
    default:
      fail(
          ErrorCode::unsupported,
          fmt::format(
              "{}: the graph backend has no planes of type {}",
              name,
              dtype_name(dtype)
          )
      );
  }
}

mx::ShapeElem dimension(int64_t size, const std::string& name) {
  if (size < 0 || size > std::numeric_limits<mx::ShapeElem>::max()) {
    fail(
        ErrorCode::unsupported,
        fmt::format("{}: a dimension of {} is beyond 31 bits", name, size)
    );
  }
  return static_cast<mx::ShapeElem>(size);
}

bool can_borrow() {
  static const bool result = check_borrowing();
  return result;
}

mx::array plane(const Weight& weight, const std::string& name) {
  mx::Dtype dtype = plane_dtype(weight.dtype, name);
  mx::Shape shape = plane_shape(weight, name);
  std::span<const std::byte> bytes = weight.bytes();
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (can_borrow() && address % mx::size_of(dtype) == 0) {
    return borrow(bytes.data(), shape, dtype, weight.source);
  }
  if (auto there = copy_to_device(bytes, shape, dtype)) {
    return *there;
  }
  return copy(bytes, shape, dtype);
}

}  // namespace mlxcel::backend::graph
