#pragma once

#include <cstdint>

namespace mlxcel::backend::cpu {

/// 2^x for x <= 127 within 2e-7 of it (relative); 0 below 2^-126, NaN for NaN;
/// exactly 1 at 0. A degree 6 polynomial for the fraction in [-1/2, 1/2], a
/// minimax fit of 2^f with the constant term fixed at 1.
template <class S>
inline typename S::F exp2_of(typename S::F x) {
  x = S::max(S::set(-200.0F), x);
  typename S::F n = S::round(x);
  typename S::F f = x - n;
  typename S::F y = S::set(1.53533618e-04F);
  y = S::fma(y, f, S::set(1.33988744e-03F));
  y = S::fma(y, f, S::set(9.61843736e-03F));
  y = S::fma(y, f, S::set(5.55033247e-02F));
  y = S::fma(y, f, S::set(2.40226479e-01F));
  y = S::fma(y, f, S::set(6.93147203e-01F));
  y = S::fma(y, f, S::set(1.0F));
  return S::scale(y, n);
}

/// tanh within 3e-7 of it (relative). Below 5/8 a degree 11 polynomial, a
/// minimax fit; above, 1 - 2 / (1 + e^2x).
template <class S>
inline typename S::F tanh_of(typename S::F x) {
  typename S::F size = S::max(-x, x);
  typename S::F square = x * x;
  typename S::F small = S::set(-5.6599886e-03F);
  small = S::fma(small, square, S::set(2.0590987e-02F));
  small = S::fma(small, square, S::set(-5.3721067e-02F));
  small = S::fma(small, square, S::set(1.3331127e-01F));
  small = S::fma(small, square, S::set(-3.3333260e-01F));
  small = S::fma(small, square, S::set(1.0F)) * size;
  // 2 / ln 2; from 10 on the result is 1.
  typename S::F bounded = S::less(S::set(10.0F), size, S::set(10.0F), size);
  typename S::F power = exp2_of<S>(bounded * S::set(2.885390082F));
  typename S::F large = S::set(1.0F) - S::set(2.0F) / (S::set(1.0F) + power);
  typename S::F y = S::less(size, S::set(0.625F), small, large);
  return S::less(x, S::set(0), -y, y);
}

/// 2^x of one value, with the bits that exp2_of gives a lane.
template <class S>
inline float exp2_of_one(float x) {
  float lanes[S::kWidth];
  S::store(lanes, exp2_of<S>(S::set(x)));
  return lanes[0];
}

}  // namespace mlxcel::backend::cpu
