#include "mlxcel/loading/estimate/recommend_quant.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/config/config.h"
#include "mlxcel/loading/estimate/weight_summary.h"

namespace mlxcel {

namespace {

constexpr int kDense = 0;
constexpr int kBits[] = {kDense, 8, 6, 5, 4, 3, 2};
constexpr int kGroup = 64;

QuantChoice describe(int bits) {
  QuantChoice choice;
  WeightFormat format;
  format.dtype = DType::bf16;
  choice.convert = "--dequantize --dtype bfloat16";
  if (bits != kDense) {
    format.mode = QuantMode::affine;
    format.bits = bits;
    format.group = kGroup;
    choice.convert = fmt::format("--q-bits {} --q-group-size {}", bits, kGroup);
  }
  choice.format = format.describe();
  return choice;
}

}  // namespace

std::vector<QuantChoice> quant_choices(
    const CheckpointOutline& checkpoint,
    const MemoryRequest& request,
    const Budget& budget
) {
  std::vector<QuantChoice> choices;
  if (checkpoint.entry.family == nullptr) {
    return choices;
  }
  TensorTable table =
      checkpoint.entry.family->tensors(text_config(checkpoint.config));
  for (int bits : kBits) {
    QuantConfig quantization;
    quantization.declared = bits != kDense;
    quantization.bits = bits;
    quantization.group = kGroup;
    TensorListing listing = imagine_tensors(table, quantization, DType::bf16);
    CheckpointOutline outline{
        checkpoint.entry, checkpoint.config, &listing, ""};
    MemoryEstimate estimate = estimate_memory(outline, request);
    auto net = estimate.net();
    if (!net) {
      return {};
    }
    QuantChoice choice = describe(bits);
    choice.weights = *estimate.weights.bytes;
    choice.net = *net;
    choice.fits = budget.bytes > 0 && *net <= budget.bytes;
    choices.push_back(std::move(choice));
  }
  return choices;
}

const QuantChoice* recommended(const std::vector<QuantChoice>& choices) {
  auto first = std::find_if(
      choices.begin(),
      choices.end(),
      [](const QuantChoice& choice) { return choice.fits; }
  );
  return first == choices.end() ? nullptr : &*first;
}

}  // namespace mlxcel
