#pragma once

#include <cstdint>

namespace mlxcel {

enum class DeviceKind : uint8_t { cpu, metal, cuda, rocm };

/// What a load policy may know of the device that runs. Policies are pure
/// functions of it, so that they can be tested for devices that aren't here.
struct DeviceFacts {
  DeviceKind kind = DeviceKind::cpu;
  /// CUDA: 10 * major + minor of the compute capability, 0 if unknown.
  int compute_capability = 0;
};

}  // namespace mlxcel
