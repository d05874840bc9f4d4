#pragma once

#include "mlxcel/core/json.h"
#include "mlxcel/loading/preparation.h"
#include "mlxcel/weights/tensor_listing.h"
#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// The tensors of a listing with dtype and shape and without bytes: asking for
/// them is an Error(internal), except for single numbers.
WeightMap hollow_weights(const TensorListing& listing);

/// The same, prepared as a load would (loading/preparation.h), without its
/// remarks. Throws what that throws.
WeightMap prepared_hollow_weights(
    const TensorListing& listing, const Json& config, const Preparation& how
);

/// What a weight map says of its tensors, sizes in place of file offsets. Of
/// tensors that share their bytes, as a tied head, the first counts.
TensorListing outline_of(const WeightMap& weights);

}  // namespace mlxcel
