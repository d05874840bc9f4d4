#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mlxcel/backend/backend.h"
#include "mlxcel/backend/meter.h"

namespace mlxcel::backend {

/// A backend that was built into this program.
struct BackendFactory {
  std::string name;
  /// Devices it can run on here; empty if the host lacks them.
  std::vector<std::string> (*devices)();
  std::unique_ptr<Backend> (*create
  )(const std::string& device, const Numerics& numerics);
  /// One line for --version: library version, instruction sets, device.
  std::string (*describe)();
  /// Its meter; null if what it allocates isn't known beforehand.
  std::unique_ptr<Meter> (*meter)(const Numerics& numerics) = nullptr;
};

/// In order of preference for a device. Generated from the folders built.
std::vector<BackendFactory> built_backends();

struct BackendChoice {
  /// "cpu", "gpu", "metal", "cuda"; empty: MLXCEL_DEVICE, else the best here.
  std::string device;
  /// Force `graph`, the definition; also MLXCEL_REFERENCE=1.
  bool reference = false;
  Numerics numerics;
};

/// Throws Error(usage) naming the device if nothing built serves it.
std::unique_ptr<Backend> make_backend(const BackendChoice& choice);

/// The meter of the backend that make_backend() would take; null if it has
/// none. Throws as make_backend().
std::unique_ptr<Meter> make_meter(const BackendChoice& choice);

}  // namespace mlxcel::backend
