#include "apps/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/downloader.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/thread_pool.h"

namespace mlxcel::apps {

namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

CLI::Option* add_models_dir(CLI::App& command, std::string& models_dir) {
  return command
      .add_option(
          "--models-dir",
          models_dir,
          "Root of the model store (MLXCEL_MODELS_DIR)"
      )
      ->type_name("PATH");
}

void ModelReference::add_to(CLI::App& command, const std::string& names) {
  command
      .add_option(
          names, text, "Model directory, OWNER/NAME of a repository, or NAME"
      )
      ->type_name("MODEL");
  add_models_dir(command, models_dir)->group("Model");
  command
      .add_option(
          "--revision",
          revision,
          "Branch, tag or commit of the repository; default: main"
      )
      ->type_name("REV")
      ->group("Model");
  command
      .add_flag(
          "--offline", offline, "Never use the network (MLXCEL_OFFLINE=1)"
      )
      ->group("Model");
}

void ModelReference::require() const {
  if (text.empty()) {
    fail(ErrorCode::usage, "[command line] no model: give -m MODEL");
  }
}

hub::ResolveRequest ModelReference::request() const {
  require();
  hub::ResolveRequest request;
  request.reference = text;
  request.revision = revision;
  request.store = models_dir;
  request.offline = offline;
  return request;
}

std::string ModelReference::directory() const {
  hub::ResolveRequest wanted = request();
  wanted.announce = [](const std::string& words) {
    fmt::print(stderr, "{}\n", words);
  };
  std::unique_ptr<hub::Downloader> downloader = make_downloader();
  return hub::resolve(wanted, downloader.get()).directory;
}

void ModelOptions::add_to(CLI::App& command) {
  model.add_to(command, "-m,--model,model");
  command
      .add_option("--device", device, "cpu, gpu, metal or cuda (MLXCEL_DEVICE)")
      ->group("Device");
  command
      .add_option(
          "--threads", threads, "CPU threads; default: one per usable core"
      )
      ->check(CLI::Range(1, kMaxThreads))
      ->group("Device");
  command
      .add_flag(
          "--reference",
          reference,
          "Run the plain graph of MLX operations (MLXCEL_REFERENCE=1)"
      )
      ->group("Device");
  command
      .add_flag(
          "--exact,!--no-exact",
          exact,
          "float32 activations, cache and sums instead of the fast ones"
      )
      ->group("Device");
}

LoadOptions ModelOptions::load_options() const {
  if (threads > 0) {
    ThreadPool::instance().resize(threads);
  }
  LoadOptions options;
  options.backend.device = device;
  options.backend.reference = reference;
  options.backend.numerics.exact = exact;
  return options;
}

void SamplingOptions::add_to(CLI::App& command) {
  auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->group("Sampling");
  };
  add("-t,--temp,--temperature",
      temperature,
      "Temperature; 0 takes the most probable token. Default: the "
      "checkpoint's, else 0");
  add("--top-k", top_k, "Keep the k most probable tokens; 0: off");
  add("--top-p", top_p, "Keep the most probable tokens up to this mass; 1: off"
  );
  add("--min-p", min_p, "Keep tokens with this share of the best; 0: off");
  add("--repetition-penalty",
      repetition_penalty,
      "Divides logits of recent "
      "tokens; 1: off");
  add("--repeat-last-n",
      repeat_last_n,
      "Tokens that the penalty looks at; negative: all, 0: off");
  add("--seed", seed, "Seed of the draw; negative: a new one each time");
  add("--stop", stop, "End the reply before this text (repeatable)")
      ->allow_extra_args(false);
  command
      .add_option(
          "-n,--max-tokens,--n-predict",
          max_tokens,
          "Tokens to generate at most; -1: until the context is full"
      )
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 40));
  command
      .add_option(
          "-c,--ctx-size",
          context,
          "Tokens of prompt and reply together; 0: the model's window"
      )
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
}

GenerateParams SamplingOptions::params(const Checkpoint& checkpoint) const {
  const GenerationDefaults& defaults = checkpoint.defaults;
  GenerateParams params;
  SamplerParams& sampler = params.sampler;
  sampler.temperature = temperature.value_or(defaults.temperature.value_or(0));
  sampler.top_p = top_p.value_or(defaults.top_p.value_or(1));
  sampler.top_k = top_k.value_or(defaults.top_k.value_or(0));
  sampler.min_p = min_p;
  sampler.repetition_penalty = repetition_penalty;
  sampler.repeat_last_n = repeat_last_n;
  sampler.seed = seed;
  params.max_tokens = max_tokens;
  params.context = resolve_context(checkpoint, context);
  params.stop_strings = stop;
  params.stop_ids = defaults.stop_ids;
  params.sampler.check();
  return params;
}

int64_t resolve_context(const Checkpoint& checkpoint, int64_t asked) {
  return resolve_context(checkpoint.context_window, asked);
}

int64_t resolve_context(int64_t window, int64_t asked) {
  if (asked == 0) {
    return window > 0 ? window : kDefaultContext;
  }
  if (window > 0 && asked > window) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[command line] --ctx-size {}: the model's window is {} tokens",
            asked,
            window
        )
    );
  }
  return asked;
}

}  // namespace mlxcel::apps
