#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/policy.h"
#include "mlxcel/weights/synthetic.h"

namespace mlxcel::apps {

namespace {

constexpr uint64_t kConfigLimit = 64 << 20;

struct SynthOptions {
  std::string config;
  std::string output;
  std::string dtype = "bf16";
  std::string mode = "affine";
  int bits = 0;   // 0: those of the mode; affine: dense
  int group = 0;  // 0: that of the mode
  uint64_t seed = 0;
};

constexpr std::pair<const char*, QuantMode> kModes[] = {
    {"affine", QuantMode::affine},
    {"mxfp4", QuantMode::mxfp4},
    {"mxfp8", QuantMode::mxfp8},
    {"nvfp4", QuantMode::nvfp4},
};

QuantMode parse_mode(const std::string& name) {
  for (const auto& [known, mode] : kModes) {
    if (name == known) {
      return mode;
    }
  }
  return QuantMode::affine;  // CLI11 lets no other through
}

SyntheticOptions synthetic_options(const SynthOptions& options) {
  SyntheticOptions synthetic;
  synthetic.mode = parse_mode(options.mode);
  QuantConfig defaults;
  defaults.declare(synthetic.mode);
  bool affine = synthetic.mode == QuantMode::affine;
  if (affine && options.bits == 0 && options.group > 0) {
    fail(ErrorCode::usage, "[synth] --group-size needs --bits or --mode");
  }
  synthetic.bits = options.bits > 0 || affine ? options.bits : defaults.bits;
  synthetic.group = options.group > 0 ? options.group : defaults.group;
  return synthetic;
}

DType parse_float_type(const std::string& name) {
  return name == "f32" ? DType::f32 : name == "f16" ? DType::f16 : DType::bf16;
}

std::string with_quantization(
    const Json& config, const SyntheticOptions& options
) {
  nlohmann::ordered_json out = config.raw();
  out.erase("quantization");
  out.erase("quantization_config");
  if (options.bits > 0) {
    out["quantization"] = {
        {"group_size", options.group},
        {"bits", options.bits},
        {"mode", quant_mode_name(options.mode)},
    };
  }
  return out.dump(2) + "\n";
}

void run(const SynthOptions& options) {
  Json config =
      parse_config(read_file(options.config, kConfigLimit), options.config);
  ModelType type = get_model_type(config);
  require_built(type, options.config);
  TensorTable table = descriptor(type).family->tensors(text_config(config));
  if (file_exists(join_path(options.output, "model.safetensors"))) {
    fail(
        ErrorCode::usage,
        fmt::format("[synth] {} already holds a checkpoint", options.output)
    );
  }
  SyntheticOptions synthetic = synthetic_options(options);
  synthetic.dtype = parse_float_type(options.dtype);
  synthetic.seed = options.seed;
  os::make_directories(options.output);
  write_synthetic(table, options.output, synthetic);
  AtomicFile file(join_path(options.output, "config.json"));
  file.write(with_quantization(config, synthetic));
  file.commit();
  fmt::print(stderr, "wrote {}\n", options.output);
}

}  // namespace

void add_synth(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "synth", "Write a random checkpoint of an architecture"
  );
  command->footer(
      "Example:\n  mlxcel synth config.json /tmp/qwen3 --bits 4 "
      "--group-size 64"
  );
  auto options = std::make_shared<SynthOptions>();
  command->add_option("config", options->config, "config.json of the model")
      ->required()
      ->type_name("CONFIG");
  command->add_option("output", options->output, "Directory to write")
      ->required()
      ->type_name("OUT");
  command
      ->add_option(
          "--mode", options->mode, "affine (with --bits), mxfp4, mxfp8 or nvfp4"
      )
      ->check(CLI::IsMember({"affine", "mxfp4", "mxfp8", "nvfp4"}));
  command
      ->add_option(
          "--bits",
          options->bits,
          "Bits of a code; without it and without --mode: dense"
      )
      ->check(CLI::IsMember({0, 2, 3, 4, 5, 6, 8}));
  command
      ->add_option(
          "--group-size", options->group, "Codes per scale (affine: 64)"
      )
      ->check(CLI::IsMember({16, 32, 64, 128}));
  command
      ->add_option("--dtype", options->dtype, "Type of dense values and scales")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  command->add_option("--seed", options->seed, "Seed of the values");
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
