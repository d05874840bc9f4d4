#pragma once

#include "mlxcel/models/language_model.h"
#include "mlxcel/nn/spec.h"
#include "mlxcel/nn/tensors.h"

namespace mlxcel::models {

/// A model that is nothing but an nn::Decoder of `spec`.
std::unique_ptr<LanguageModel> build_decoder(
    const nn::DecoderSpec& spec,
    const nn::TensorNames& names,
    const BuildInput& input
);

/// The registry's view of a family that is described by a function from
/// config to spec and uses the common tensor names.
template <nn::DecoderSpec (*Describe)(const Json&)>
constexpr Family decoder_family() {
  return {
      [](const Json& config) { return nn::decoder_tensors(Describe(config)); },
      [](const BuildInput& input) {
        return build_decoder(Describe(input.config), {}, input);
      },
  };
}

}  // namespace mlxcel::models
