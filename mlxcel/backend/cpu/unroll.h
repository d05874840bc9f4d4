#pragma once

#include <cstdint>

/// Loops and switches whose index is a constant inside. The compiler keeps an
/// array in registers only if it sees constant indices before it unrolls.
namespace mlxcel::backend::cpu {

template <int Value>
struct Constant {
  static constexpr int value = Value;
};

/// f(Constant<0>()), ..., f(Constant<N - 1>())
template <int N, typename F>
__attribute__((always_inline)) static inline void unroll(F&& f) {
  if constexpr (N > 1) {
    unroll<N - 1>(f);
  }
  f(Constant<N - 1>());
}

/// f of an affine format's bit width.
template <typename F>
__attribute__((always_inline)) static inline void with_bits(int bits, F&& f) {
  switch (bits) {
    case 1:
      return f(Constant<1>());
    case 2:
      return f(Constant<2>());
    case 3:
      return f(Constant<3>());
    case 4:
      return f(Constant<4>());
    case 5:
      return f(Constant<5>());
    case 6:
      return f(Constant<6>());
    default:
      return f(Constant<8>());
  }
}

/// f of an affine format's group size.
template <typename F>
__attribute__((always_inline)) static inline void with_group(int group, F&& f) {
  switch (group) {
    case 32:
      return f(Constant<32>());
    case 64:
      return f(Constant<64>());
    default:
      return f(Constant<128>());
  }
}

/// Has the lines of [p, p + bytes) brought near to be written. Lines that
/// another core has read take long to come, one by one if the stores ask.
__attribute__((always_inline)) static inline void fetch_for_write(
    const void* p, int64_t bytes
) {
  const auto* byte = static_cast<const char*>(p);
  for (int64_t i = 0; i < bytes; i += 64) {
#if defined(__x86_64__)
    // The builtin would only read, unless the file is compiled for more.
    asm volatile("prefetchw %0" : : "m"(byte[i]));
#else
    __builtin_prefetch(byte + i, 1);
#endif
  }
}

}  // namespace mlxcel::backend::cpu
