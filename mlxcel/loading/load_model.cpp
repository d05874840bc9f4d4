#include "mlxcel/loading/load_model.h"

#include <fmt/format.h>

#include <future>
#include <new>
#include <system_error>

#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"
#include "mlxcel/loading/config_backed.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/materialize.h"
#include "mlxcel/loading/nonstandard.h"
#include "mlxcel/loading/policy.h"
#include "mlxcel/loading/special.h"
#include "mlxcel/loading/vlm.h"
#include "mlxcel/weights/shards.h"

namespace mlxcel {

namespace {

std::unique_ptr<LanguageModel> build_from_dir(
    const ModelLoadPolicy& policy, const LoadRequest& request
) {
  switch (policy.directory_route) {
    case DirectoryRoute::config_backed:
      return load_config_backed_from_dir(request);
    case DirectoryRoute::nonstandard:
      return load_nonstandard_from_dir(request);
    case DirectoryRoute::vlm:
      return load_vlm_from_dir(request);
    case DirectoryRoute::mistral3_dynamic:
    case DirectoryRoute::detector:
      break;
  }
  fail(
      ErrorCode::internal,
      fmt::format(
          "[loading] no loader for {} ({})",
          request.entry.display_name,
          request.entry.id
      )
  );
}

std::unique_ptr<LanguageModel> build_from_weights(
    const ModelLoadPolicy& policy, const LoadRequest& request, WeightMap weights
) {
  switch (policy.weight_route) {
    case WeightRoute::config_backed:
    case WeightRoute::llama_family:
      return load_config_backed_from_weights(request, std::move(weights));
    case WeightRoute::special:
      return load_special_from_weights(request, std::move(weights));
    case WeightRoute::none:
      break;
  }
  fail(ErrorCode::unsupported, "[adapters] " + policy.adapter_refusal);
}

struct Unhonoured {
  const char* variable;
  const char* why;
};

constexpr Unhonoured kUnhonoured[] = {
    {"MLXCEL_SURGERY", "this build does not edit weights by a file of rules"},
    {"MLXCEL_PLE_IO", "this build keeps embedding tables in memory"},
    {"MLXCEL_PLE_CACHE_BYTES", "this build keeps embedding tables in memory"},
    {"MLXCEL_EXPERT_STREAM", "this build keeps all experts in memory"},
    {"MLXCEL_EXPERT_ARENA_BYTES", "this build keeps all experts in memory"},
    {"MLXCEL_DISABLE_FUSED_GLOBAL_SCALE",
     "the global scale of nvfp4 has one form in this build"},
};

// What is set and can't be honoured is not ignored.
void refuse_variables() {
  for (const Unhonoured& one : kUnhonoured) {
    if (os::environment(one.variable) != nullptr) {
      fail(
          ErrorCode::usage,
          fmt::format("{}: {}; unset it", one.variable, one.why)
      );
    }
  }
}

LoadRequest detect(const std::string& directory, const LoadOptions& options) {
  refuse_variables();
  Json config = read_config(directory);
  Detection detection = detect_model(directory, config);
  require_generation(detection, directory);
  require_sub_configs(detection.type, config);
  require_built(detection.type, directory);
  if (!detection.tower_reason.empty()) {
    log_info(fmt::format("{}: text only, {}", directory, detection.tower_reason)
    );
  }
  return {
      directory,
      config,
      descriptor(detection.type),
      make_backend(options.backend),
      options.edits,
  };
}

[[noreturn]] void out_of_memory(const std::string& path) {
  fail(ErrorCode::out_of_memory, "[loading] " + path + ": out of memory");
}

void report_load(
    const backend::Backend& backend,
    const std::string& directory,
    double total,
    const MaterializeReport& report
) {
  log_debug(fmt::format("{} on {}", directory, backend.describe()));
  if (os::environment("MLXCEL_PROFILE_TTFT") == nullptr) {
    return;
  }
  log_info(fmt::format(
      "[TTFT] load total={:.1f}ms construct={:.1f}ms materialize={:.1f}ms "
      "bytes={} tensors={} mode={}",
      1e3 * total,
      1e3 * report.construct,
      1e3 * report.materialize,
      report.resident.bytes,
      report.resident.tensors,
      report.mode == Materialization::lazy ? "lazy" : "eager"
  ));
}

}  // namespace

std::string model_directory(const std::string& path) {
  if (path.ends_with(".gguf") && !directory_exists(path)) {
    fail(
        ErrorCode::unsupported,
        fmt::format(
            "[loading] {}: models don't run from GGUF files; `mlxcel convert "
            "FILE.gguf OUT_DIR` makes a model directory of one",
            path
        )
    );
  }
  if (file_exists(path)) {
    return parent_path(path);
  }
  if (!directory_exists(path)) {
    fail(
        ErrorCode::not_found,
        fmt::format(
            "[loading] {}: no such model directory (it needs a config.json)",
            path
        )
    );
  }
  return path;
}

Checkpoint load_model(const std::string& path, const LoadOptions& options) try {
  double start = os::now();
  std::string directory = model_directory(path);
  LoadRequest request = detect(directory, options);
  // Reading a tokenizer takes as long as binding the weights: do both at once.
  std::shared_future<std::shared_ptr<const Tokenizer>> tokenizer;
  if (options.tokenizer) {
    tokenizer = std::async(std::launch::async, [&directory] {
                  return Tokenizer::load(directory);
                }).share();
  }
  if (options.before_weights) {
    options.before_weights(request, [&]() -> const Tokenizer& {
      return *tokenizer.get();
    });
  }
  ModelLoadPolicy policy = model_load_policy(request.entry.type);
  MaterializeReport report;
  std::unique_ptr<LanguageModel> model = with_weight_materialization(
      *request.backend, [&] { return build_from_dir(policy, request); }, report
  );
  Checkpoint checkpoint{
      LoadedModel{
          request.entry.type,
          directory,
          request.config,
          request.backend,
          std::move(model),
      },
      tokenizer.valid() ? tokenizer.get() : nullptr,
      GenerationDefaults{},
      mlxcel::context_window(request.config),
      0,
  };
  checkpoint.defaults = read_generation_defaults(
      directory, request.config, checkpoint.tokenizer.get()
  );
  checkpoint.load_seconds = os::now() - start;
  report_load(*request.backend, directory, checkpoint.load_seconds, report);
  return checkpoint;
} catch (const std::bad_alloc&) {
  out_of_memory(path);
} catch (const std::system_error& error) {
  fail(
      ErrorCode::out_of_memory,
      fmt::format("[loading] {}: cannot start a thread: {}", path, error.what())
  );
}

LoadedModel load_model_from_weights(
    const std::string& path, WeightMap weights, const LoadOptions& options
) try {
  std::string directory = model_directory(path);
  LoadRequest request = detect(directory, options);
  ModelLoadPolicy policy = model_load_policy(request.entry.type);
  MaterializeReport report;
  std::unique_ptr<LanguageModel> model = with_weight_materialization(
      *request.backend,
      [&] { return build_from_weights(policy, request, std::move(weights)); },
      report
  );
  return {
      request.entry.type,
      directory,
      request.config,
      request.backend,
      std::move(model),
  };
} catch (const std::bad_alloc&) {
  out_of_memory(path);
}

}  // namespace mlxcel
