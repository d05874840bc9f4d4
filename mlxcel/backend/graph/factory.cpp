#include "mlxcel/backend/factory.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/backend/graph/graph_backend.h"
#include "mlxcel/core/error.h"

namespace mlxcel::backend::graph {

namespace {

std::vector<std::string> devices() {
  std::vector<std::string> names = {"cpu"};
  if (mx::is_available(mx::Device(mx::Device::gpu))) {
    names.push_back("gpu");
    if (mx::metal::is_available()) {
      names.push_back("metal");
    }
    if (mx::cu::is_available()) {
      names.push_back("cuda");
    }
  }
  return names;
}

// One per device and process; usable from any thread, one at a time.
mx::Stream stream_of(bool gpu) {
  if (gpu) {
    static mx::Stream stream = mx::new_thread_unsafe_stream(mx::Device::gpu);
    return stream;
  }
  static mx::Stream stream = mx::new_thread_unsafe_stream(mx::Device::cpu);
  return stream;
}

std::unique_ptr<Backend> create(
    const std::string& device, const Numerics& numerics
) {
  std::vector<std::string> names = devices();
  if (std::find(names.begin(), names.end(), device) == names.end()) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "{}: no such device for MLX {} here", quote(device), mx::version()
        )
    );
  }
  try {
    return std::make_unique<GraphBackend>(
        device, stream_of(device != "cpu"), numerics
    );
  } catch (...) {
    rethrow("[graph] " + device);
  }
}

std::string describe() {
  return fmt::format("MLX {} on {}", mx::version(), devices().back());
}

}  // namespace

BackendFactory factory() {
  return {"graph", devices, create, describe, nullptr};
}

}  // namespace mlxcel::backend::graph
