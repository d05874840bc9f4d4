// config.json of strangers: repair, parsing, typed access and detection by the
// config alone. Anything but an Error is a fault.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mlxcel/config/config.h"
#include "mlxcel/config/fields.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/policy.h"
#include "mlxcel/weights/quantization.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace mlxcel;
using fuzz::attempt;

void read_all(const Json& config) {
  attempt([&] { text_config(config); });
  attempt([&] { context_window(config); });
  attempt([&] { eos_token_ids(config); });
  attempt([&] { rank_or_auto(config, "time_step_rank"); });
  attempt([&] { time_step_limit(config); });
  attempt([&] { layer_pattern(config); });
  attempt([&] { declares_quantization(config); });
  attempt([&] { detector_image_size(config); });
  attempt([&] { labels(config); });
  attempt([&] { lift_drafter_fields(config); });
  attempt([&] { QuantConfig::from_config(config); });
}

void detect_all(const Json& config) {
  for (Task task :
       {Task::automatic, Task::embed, Task::rerank, Task::find_objects}) {
    attempt([&] {
      Detection detection = detect_model("", config, task);
      require_sub_configs(detection.type, config);
      require_generation(detection, "DIR");
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    Json config = parse_config(text, "config.json");
    read_all(config);
    detect_all(config);
  });
  return 0;
}
