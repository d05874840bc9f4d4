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
  int bits = 0;
  int group = 64;
  uint64_t seed = 0;
};

DType parse_float_type(const std::string& name) {
  return name == "f32" ? DType::f32 : name == "f16" ? DType::f16 : DType::bf16;
}

std::string with_quantization(const Json& config, const SynthOptions& options) {
  nlohmann::ordered_json out = config.raw();
  out.erase("quantization");
  out.erase("quantization_config");
  if (options.bits > 0) {
    out["quantization"] = {
        {"group_size", options.group},
        {"bits", options.bits},
        {"mode", "affine"},
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
  SyntheticOptions synthetic;
  synthetic.bits = options.bits;
  synthetic.group = options.group;
  synthetic.dtype = parse_float_type(options.dtype);
  synthetic.seed = options.seed;
  os::make_directories(options.output);
  write_synthetic(table, options.output, synthetic);
  AtomicFile file(join_path(options.output, "config.json"));
  file.write(with_quantization(config, options));
  file.commit();
  fmt::print(stderr, "wrote {} tensors to {}\n", table.size(), options.output);
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
          "--bits", options->bits, "Affine quantisation of matrices; 0: dense"
      )
      ->check(CLI::IsMember({0, 2, 3, 4, 5, 6, 8}));
  command->add_option("--group-size", options->group, "Codes per scale")
      ->check(CLI::IsMember({32, 64, 128}));
  command
      ->add_option("--dtype", options->dtype, "Type of dense values and scales")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  command->add_option("--seed", options->seed, "Seed of the values");
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
