#pragma once

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

}  // namespace mlxcel::backend::cpu
