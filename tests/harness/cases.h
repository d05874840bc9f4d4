#pragma once

#include "tests/harness/harness.h"

namespace mlxcel::test {

/// Bounds, by what rounds in default mode: nothing but float32 sums; a 16-bit
/// KV; 16-bit activations of `graph`; activations of 8 bits per group, where a
/// value that stands out coarsens its neighbours; two such products.
constexpr Bounds kFloat = {1e-5, 1e-5};
constexpr Bounds kHalfState = {1e-5, 3e-3};
constexpr Bounds kHalfRows = {1e-6, 6e-3};
constexpr Bounds kProduct = {1e-5, 2e-2};
constexpr Bounds kGated = {1e-5, 3e-2};
constexpr Bounds kExperts = {1e-5, 5e-2};
constexpr Bounds kSame = {0, 0};

std::vector<Case> affine_cases();
std::vector<Case> block_float_cases();
std::vector<Case> dense_cases();
std::vector<Case> ragged_cases();
std::vector<Case> merged_cases();
std::vector<Case> epilogue_cases();
std::vector<Case> logits_cases();
std::vector<Case> experts_cases();
std::vector<Case> embed_cases();
std::vector<Case> norm_cases();
std::vector<Case> row_cases();
std::vector<Case> argmax_cases();
std::vector<Case> attend_cases();
std::vector<Case> attend_step_cases();

}  // namespace mlxcel::test
