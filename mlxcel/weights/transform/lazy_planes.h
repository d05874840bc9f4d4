#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

/// Sources of planes that are made together, once, when one of them is first
/// asked for its bytes. `make` fills what it is given, one buffer per plane of
/// the stated size; it and the inputs are let go afterwards. Throws what it
/// throws, and Error(io) naming the file if an input could not be read.
std::vector<std::shared_ptr<const WeightSource>> lazy_planes(
    std::vector<Weight> inputs,
    std::vector<int64_t> sizes,
    std::function<
        void(const std::vector<Weight>& inputs, std::vector<std::byte*> planes)>
        make
);

}  // namespace mlxcel
