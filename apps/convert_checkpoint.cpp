#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/convert_flags.h"
#include "apps/output.h"
#include "apps/progress.h"
#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/weights/convert/checkpoint/convert_checkpoint.h"

namespace mlxcel::apps {

namespace {

using convert::CheckpointOptions;

[[noreturn]] void refuse(const std::string& message) {
  fail(ErrorCode::usage, "[convert] " + message);
}

// What mlx-lm's families say of themselves (quant_predicate).
std::vector<convert::LayerRule> family_rules(const Descriptor& family) {
  if (family.category != Category::moe) {
    return {};
  }
  return {{"*mlp.gate", {QuantMode::affine, 8, 64}}};
}

/// The bar of downloads, on a terminal.
class Bar {
 public:
  ~Bar() {
    end();
  }
  void update(const std::string& name, uint64_t done, uint64_t all) {
    double now = os::now();
    if (shown_ == 0) {
      progress_->begin(1, all);
    }
    if (now - shown_ > kSeconds) {
      progress_->update({hub::FileProgress{name, all, done}}, done);
      shown_ = now;
    }
  }
  void end() {
    if (shown_ > 0) {
      progress_->end();
    }
    shown_ = 0;
  }

 private:
  static constexpr double kSeconds = 0.1;
  std::unique_ptr<hub::DownloadProgress> progress_ = make_progress(false);
  double shown_ = 0;
};

QuantMode parse_mode(const std::string& name) {
  for (QuantMode mode :
       {QuantMode::mxfp4, QuantMode::mxfp8, QuantMode::nvfp4}) {
    if (quant_mode_name(mode) == name) {
      return mode;
    }
  }
  return QuantMode::affine;
}

convert::QuantRecipe make_recipe(const CheckpointFlags& flags) {
  convert::QuantRecipe recipe;
  if (flags.preset) {
    if (flags.bits) {
      refuse("--q-bits: --quant-predicate chooses the bits");
    }
    if (flags.mode && *flags.mode != "affine") {
      refuse("--q-mode: the presets of --quant-predicate are affine");
    }
    recipe.preset = convert::find_preset(*flags.preset);
  }
  recipe.base = convert::complete_format(
      parse_mode(flags.mode.value_or("affine")),
      flags.bits,
      flags.group,
      "--q-bits and --q-group-size"
  );
  for (const std::string& text : flags.layers) {
    recipe.rules.push_back(convert::parse_rule(text));
  }
  if (flags.recipe) {
    for (auto& rule : convert::read_rules(*flags.recipe)) {
      recipe.rules.push_back(std::move(rule));
    }
  }
  return recipe;
}

// Empty for an architecture that is not built: names and shapes decide then.
const Descriptor* built_family(const Json& config) {
  if (!config.has("model_type")) {
    return nullptr;
  }
  const Descriptor& found = descriptor(get_model_type(config));
  return found.family != nullptr ? &found : nullptr;
}

CheckpointOptions make_options(
    const std::string& input, const CheckpointFlags& flags
) {
  CheckpointOptions options;
  bool quantize = flags.quantize || flags.bits || flags.group || flags.mode ||
                  flags.preset || !flags.layers.empty() || flags.recipe;
  if (quantize && flags.dequantize) {
    refuse("--dequantize: does not go with flags that quantise");
  }
  if (quantize) {
    options.action = convert::Action::quantize;
    options.recipe = make_recipe(flags);
  } else if (flags.dequantize) {
    options.action = convert::Action::dequantize;
  }
  if (flags.dtype) {
    options.dtype = *flags.dtype == "float32"   ? DType::f32
                    : *flags.dtype == "float16" ? DType::f16
                                                : DType::bf16;
  }
  Json config = read_config(input);
  if (const Descriptor* family = built_family(config)) {
    options.table = family->family->tensors(text_config(config));
    options.recipe.family_rules = family_rules(*family);
  }
  return options;
}

}  // namespace

void CheckpointFlags::add_to(CLI::App& command) {
  constexpr const char* kGroup = "Checkpoint directories";
  command
      .add_flag(
          "-q,--quantize",
          quantize,
          "Quantise linear layers and "
          "embeddings; any --q flag says so too"
      )
      ->group(kGroup);
  command.add_flag("-d,--dequantize", dequantize, "Write dense weights")
      ->group(kGroup);
  command
      .add_option(
          "--q-bits",
          bits,
          "Bits per weight; default of the mode: "
          "affine 4, mxfp8 8, mxfp4 and nvfp4 4"
      )
      ->group(kGroup);
  command
      .add_option(
          "--q-group-size",
          group,
          "Weights per scale; default of "
          "the mode: affine 64, mxfp4 and mxfp8 32, nvfp4 16"
      )
      ->group(kGroup);
  command.add_option("--q-mode", mode, "Kind of quantisation")
      ->check(CLI::IsMember({"affine", "mxfp4", "mxfp8", "nvfp4"}))
      ->group(kGroup);
  command.add_option("--quant-predicate", preset, "Mixed widths")
      ->check(CLI::IsMember({"mixed_2_6", "mixed_3_4", "mixed_3_6", "mixed_4_6"}
      ))
      ->group(kGroup);
  command
      .add_option(
          "--q-layer",
          layers,
          "Format of the modules whose path "
          "matches: dense, BITS, BITS/GROUP, MODE; again for more"
      )
      ->type_name("PATTERN=FORMAT")
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      .add_option(
          "--q-recipe",
          recipe,
          "The same from a JSON file in the "
          "form of config.json's quantization"
      )
      ->type_name("FILE")
      ->group(kGroup);
  command
      .add_option(
          "--dtype",
          dtype,
          "Type of dense weights and affine "
          "scales; default: torch_dtype of config.json"
      )
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}))
      ->group(kGroup);
  command
      .add_option(
          "--report",
          report,
          "Write the error of each tensor as "
          "JSON"
      )
      ->type_name("FILE")
      ->group(kGroup);
}

std::string CheckpointFlags::given() const {
  return quantize          ? "--quantize"
         : dequantize      ? "--dequantize"
         : bits            ? "--q-bits"
         : group           ? "--q-group-size"
         : mode            ? "--q-mode"
         : preset          ? "--quant-predicate"
         : !layers.empty() ? "--q-layer"
         : recipe          ? "--q-recipe"
         : dtype           ? "--dtype"
         : report          ? "--report"
                           : "";
}

void convert_directory(
    const std::string& input,
    const std::string& output,
    const CheckpointFlags& flags,
    bool force
) {
  CheckpointOptions options = make_options(input, flags);
  options.force = force;
  Bar bar;
  options.progress = [&](const std::string& name, uint64_t done, uint64_t all) {
    bar.update(name, done, all);
  };
  convert::CheckpointReport report =
      convert::convert_checkpoint(input, output, options);
  bar.end();
  if (flags.report) {
    AtomicFile file(*flags.report);
    file.write(report.json());
    file.commit();
  }
  write_output(report.describe() + "\n");
}

}  // namespace mlxcel::apps
