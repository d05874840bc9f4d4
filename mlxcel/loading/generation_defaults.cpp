#include "mlxcel/loading/generation_defaults.h"

#include <algorithm>
#include <cmath>

#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/log.h"
#include "mlxcel/tokenizer/tokenizer.h"

namespace mlxcel {

namespace {

constexpr uint64_t kFileLimit = 4 << 20;

void add_stop_ids(const Json& config, std::vector<int32_t>& stop_ids) {
  for (int64_t id : eos_token_ids(config)) {
    if (id >= 0 && id <= INT32_MAX) {
      stop_ids.push_back(static_cast<int32_t>(id));
    }
  }
}

std::optional<double> finite(const Json& config, const char* key) {
  auto field = config.find(key);
  if (!field || !field->is_number() || !std::isfinite(field->as_double())) {
    return std::nullopt;
  }
  return field->as_double();
}

// A missing or malformed file gives no defaults; a malformed one is told.
void read_file_defaults(
    const std::string& directory, GenerationDefaults& defaults
) {
  std::string path = join_path(directory, "generation_config.json");
  if (!path_exists(path)) {
    return;
  }
  try {
    Json config = parse_config(read_file(path, kFileLimit), path);
    defaults.temperature = finite(config, "temperature");
    defaults.top_p = finite(config, "top_p");
    if (auto top_k = finite(config, "top_k"); top_k && *top_k >= 0) {
      defaults.top_k = static_cast<int64_t>(*top_k);
    }
    if (config.find("do_sample") && !config.bool_or("do_sample", true)) {
      defaults.temperature = 0;
    }
    add_stop_ids(config, defaults.stop_ids);
  } catch (const Error& error) {
    log_warning(error.message() + "; its defaults are not used");
  }
}

}  // namespace

GenerationDefaults read_generation_defaults(
    const std::string& directory, const Json& config, const Tokenizer* tokenizer
) {
  GenerationDefaults defaults;
  read_file_defaults(directory, defaults);
  add_stop_ids(config, defaults.stop_ids);
  add_stop_ids(text_config(config), defaults.stop_ids);
  if (tokenizer != nullptr) {
    if (auto id = tokenizer->eos_id()) {
      defaults.stop_ids.push_back(*id);
    }
  }
  auto& ids = defaults.stop_ids;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return defaults;
}

}  // namespace mlxcel
