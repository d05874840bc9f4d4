#include <fmt/format.h>

#include "mlxcel/backend/cpu/cpu_backend.h"
#include "mlxcel/backend/cpu/cpu_meter.h"
#include "mlxcel/backend/factory.h"

namespace mlxcel::backend::cpu {

BackendFactory factory();

BackendFactory factory() {
  return {
      .name = "cpu",
      .devices = [] { return std::vector<std::string>{"cpu"}; },
      .create = [](const std::string&,
                   const Numerics& numerics) -> std::unique_ptr<Backend> {
        return std::make_unique<CpuBackend>(
            default_options(numerics), ThreadPool::instance()
        );
      },
      .describe =
          [] {
            ThreadPool& pool = ThreadPool::instance();
            return CpuBackend({.isa = chosen_isa()}, pool).describe();
          },
      .meter = [](const Numerics& numerics) -> std::unique_ptr<Meter> {
        return std::make_unique<CpuMeter>(
            default_options(numerics), ThreadPool::instance().size()
        );
      },
  };
}

}  // namespace mlxcel::backend::cpu
