#include "mlxcel/backend/factory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"

namespace mlxcel::backend {

namespace {

// Best first. "gpu" is whichever of the others is there.
constexpr std::array<std::string_view, 4> kDevices = {
    "cuda", "metal", "gpu", "cpu"};
constexpr std::string_view kReference = "graph";

bool serves(std::string_view offered, std::string_view wanted) {
  return offered == wanted || (wanted == "gpu" && offered != "cpu");
}

// MLXCEL_REFERENCE: 1 is on, 0 and empty are off.
bool reference_wanted(const BackendChoice& choice) {
  const char* variable = os::environment("MLXCEL_REFERENCE");
  std::string_view value = variable != nullptr ? variable : "";
  if (value != "" && value != "0" && value != "1") {
    fail(
        ErrorCode::usage,
        fmt::format("MLXCEL_REFERENCE: expected 0 or 1, got {}", quote(value))
    );
  }
  return choice.reference || value == "1";
}

struct Wanted {
  std::string device;  // empty: any
  std::string source;  // for messages
};

Wanted wanted_device(const BackendChoice& choice) {
  Wanted wanted{choice.device, "--device"};
  if (wanted.device.empty()) {
    const char* variable = os::environment("MLXCEL_DEVICE");
    wanted = {variable != nullptr ? variable : "", "MLXCEL_DEVICE"};
  }
  if (!wanted.device.empty() &&
      std::find(kDevices.begin(), kDevices.end(), wanted.device) ==
          kDevices.end()) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "{}: unknown device {} (cpu, gpu, metal, cuda)",
            wanted.source,
            quote(wanted.device)
        )
    );
  }
  return wanted;
}

struct Found {
  BackendFactory factory;
  std::string device;
};

// The first that serves the choice. Throws Error(usage) if none does.
Found find_backend(const BackendChoice& choice) {
  bool reference = reference_wanted(choice);
  Wanted wanted = wanted_device(choice);
  std::vector<std::string> offered;
  std::vector<BackendFactory> backends = built_backends();
  for (std::string_view device : kDevices) {
    for (const BackendFactory& backend : backends) {
      if (reference && backend.name != kReference) {
        continue;
      }
      for (const std::string& own : backend.devices()) {
        if (own != device) {
          continue;
        }
        if (wanted.device.empty() || serves(own, wanted.device)) {
          return {backend, own};
        }
        offered.push_back(own);
      }
    }
  }
  if (reference && offered.empty() && wanted.device.empty()) {
    fail(
        ErrorCode::usage,
        "--reference: this program was built without the graph backend"
    );
  }
  offered.erase(std::unique(offered.begin(), offered.end()), offered.end());
  fail(
      ErrorCode::usage,
      fmt::format(
          "{}: nothing in this program{} serves {} here ({})",
          wanted.source,
          reference ? " with --reference" : "",
          quote(wanted.device),
          offered.empty() ? "no device is there"
                          : fmt::format("{} is there", fmt::join(offered, ", "))
      )
  );
}

}  // namespace

std::unique_ptr<Backend> make_backend(const BackendChoice& choice) {
  Found found = find_backend(choice);
  return found.factory.create(found.device, choice.numerics);
}

std::unique_ptr<Meter> make_meter(const BackendChoice& choice) {
  Found found = find_backend(choice);
  return found.factory.meter == nullptr ? nullptr
                                        : found.factory.meter(choice.numerics);
}

}  // namespace mlxcel::backend
