#include "mlxcel/weights/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "mlxcel/core/error.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/text.h"
#include "mlxcel/weights/vendor_format.h"

namespace mlxcel {

/// Warns for the first tensors of a load and counts the rest.
class QuantMismatches {
 public:
  ~QuantMismatches() {
    int more = count_ - kShown;
    if (more > 0) {
      log_warning(fmt::format(
          "[mlxcel::quant] {} more tensors are quantised otherwise than the "
          "config says",
          more
      ));
    }
  }
  /// True if this one is to be told.
  bool next() {
    return count_.fetch_add(1, std::memory_order_relaxed) < kShown;
  }

 private:
  static constexpr int kShown = 8;
  std::atomic<int> count_ = 0;
};

namespace {

constexpr int kMaxBits = 32;
constexpr int kMaxGroup = 1 << 20;

struct ModeRow {
  QuantMode mode;
  std::string_view name;
  int bits;
  int group;
};

// MLX's defaults (ops.cpp, quantization_params_from_mode). Those of the block
// formats are also their only values.
constexpr std::array kModes = {
    ModeRow{QuantMode::dense, "dense", 0, 0},
    ModeRow{QuantMode::affine, "affine", 4, 64},
    ModeRow{QuantMode::mxfp4, "mxfp4", 4, 32},
    ModeRow{QuantMode::mxfp8, "mxfp8", 8, 32},
    ModeRow{QuantMode::nvfp4, "nvfp4", 4, 16},
};

const ModeRow& mode_row(QuantMode mode) {
  return kModes[static_cast<size_t>(mode)];
}

QuantMode read_mode(const Json& object) {
  auto field = object.find("mode");
  if (!field) {
    return QuantMode::affine;
  }
  const std::string& name = field->as_string();
  for (const ModeRow& row : kModes) {
    if (row.mode != QuantMode::dense && row.name == name) {
      return row.mode;
    }
  }
  field->reject(
      fmt::format("expected affine, mxfp4, mxfp8 or nvfp4, got {}", quote(name))
  );
}

// Fields of the top level and of an override alike.
QuantConfig::Override read_fields(const Json& object) {
  QuantConfig::Override read;
  read.mode = read_mode(object);
  const ModeRow& row = mode_row(read.mode);
  read.bits = static_cast<int>(object.int_or("bits", row.bits, 1, kMaxBits));
  read.group =
      static_cast<int>(object.int_or("group_size", row.group, 1, kMaxGroup));
  return read;
}

std::optional<Json> find_declaration(const Json& config) {
  for (const char* key : {"quantization", "quantization_config"}) {
    if (auto found = config.find(key)) {
      return found;
    }
  }
  auto text = config.find("text_config");
  return text && text->is_object() ? find_declaration(*text) : std::nullopt;
}

// Exporters write module paths as they were before or after the text model was
// wrapped, so both are compared without these.
std::string_view without_wrapper(std::string_view path) {
  constexpr std::string_view kWrappers[] = {"language_model.", "model."};
  bool again = true;
  while (again) {
    again = false;
    for (std::string_view wrapper : kWrappers) {
      if (path.starts_with(wrapper)) {
        path.remove_prefix(wrapper.size());
        again = true;
      }
    }
  }
  return path;
}

bool less_bare(std::string_view a, std::string_view b) {
  return without_wrapper(a) < without_wrapper(b);
}

}  // namespace

std::string_view quant_mode_name(QuantMode mode) {
  return mode_row(mode).name;
}

std::string WeightFormat::describe() const {
  if (mode == QuantMode::dense) {
    return ascii_lower(dtype_name(dtype));
  }
  return fmt::format("{} {}-bit group {}", quant_mode_name(mode), bits, group);
}

bool is_mlx_format(const WeightFormat& format) {
  constexpr int kBits[] = {1, 2, 3, 4, 5, 6, 8};
  constexpr int kGroups[] = {32, 64, 128};
  switch (format.mode) {
    case QuantMode::dense:
      return is_weight_float(format.dtype);
    case QuantMode::affine:
      return is_weight_float(format.dtype) &&
             std::ranges::find(kBits, format.bits) != std::end(kBits) &&
             std::ranges::find(kGroups, format.group) != std::end(kGroups);
    case QuantMode::mxfp4:
      return format.bits == 4 && format.group == 32;
    case QuantMode::mxfp8:
      return format.bits == 8 && format.group == 32;
    case QuantMode::nvfp4:
      return format.bits == 4 && format.group == 16;
  }
  return false;
}

int64_t WeightFormat::row_bytes(int64_t cols) const {
  if (mode == QuantMode::dense) {
    return cols * dtype_size(dtype);
  }
  int64_t planes = mode == QuantMode::affine ? 2 : 1;
  return cols * bits / 8 + planes * (cols / group) * dtype_size(dtype);
}

QuantConfig QuantConfig::from_config(const Json& config) {
  QuantConfig result;
  result.mismatches = std::make_shared<QuantMismatches>();
  auto object = find_declaration(config);
  if (!object) {
    return result;
  }
  switch (vendor_format(config)) {
    case VendorFormat::none:
      break;
    case VendorFormat::fp8_blocks:
      if (!config.find("quantization")) {
        result.declare(QuantMode::mxfp8);
        return result;
      }
      break;
    case VendorFormat::packed_mxfp4:
      result.declare(QuantMode::mxfp4);
      return result;
    case VendorFormat::modelopt_nvfp4:
    case VendorFormat::bitnet:
      return result;  // the planes tell
  }
  auto members = object->items();
  Override top = read_fields(*object);
  result.declared = true;
  result.mode = top.mode;
  result.bits = top.bits;
  result.group = top.group;
  for (const auto& [path, value] : members) {
    if (value.is_object()) {
      result.overrides.push_back(read_fields(value));
    } else if (value.is_bool()) {
      result.overrides.push_back(top);
      result.overrides.back().dense = !value.as_bool();
    } else {
      continue;
    }
    result.overrides.back().path = path;
  }
  std::stable_sort(
      result.overrides.begin(),
      result.overrides.end(),
      [](const Override& a, const Override& b) {
        return less_bare(a.path, b.path);
      }
  );
  return result;
}

void QuantConfig::declare(QuantMode of) {
  declared = true;
  mode = of;
  bits = mode_row(of).bits;
  group = mode_row(of).group;
}

QuantConfig::Override QuantConfig::for_module(const std::string& path) const {
  auto begin = std::lower_bound(
      overrides.begin(),
      overrides.end(),
      path,
      [](const Override& a, const std::string& b) {
        return less_bare(a.path, b);
      }
  );
  auto end = begin;
  for (; end != overrides.end() && !less_bare(path, end->path); ++end) {
    if (end->path == path) {
      return *end;
    }
  }
  Override found;
  if (begin != end) {
    found = *begin;
  } else {
    found.mode = mode;
    found.bits = bits;
    found.group = group;
  }
  found.path = path;
  return found;
}

namespace {

/// The tensors of one module while they are checked.
struct Binding {
  const std::string& path;
  int64_t rows;
  int64_t cols;
  const Weight& codes;
  const Weight* scales;
  const Weight* biases;

  [[noreturn]] void reject(
      const std::string& plane,
      const std::string& why,
      ErrorCode code = ErrorCode::invalid_input
  ) const {
    std::string shapes = fmt::format(".weight {}", codes.describe());
    if (scales != nullptr) {
      shapes += fmt::format(", .scales {}", scales->describe());
    }
    if (biases != nullptr) {
      shapes += fmt::format(", .biases {}", biases->describe());
    }
    fail(
        code,
        fmt::format(
            "[weights] {}.{}: {} (rows {}, columns {}; {}; in {})",
            path,
            plane,
            why,
            rows,
            cols,
            shapes,
            codes.source->origin()
        )
    );
  }
};

bool is_byte_scale(DType dtype) {
  return dtype == DType::u8 || dtype == DType::f8_e8m0 ||
         dtype == DType::f8_e4m3;
}

bool loadable_bits(int64_t bits) {
  return bits >= 1 && bits <= 8 && bits != 7;
}

std::string declared_text(const QuantConfig::Override& declared) {
  return fmt::format(
      "declared {} bits {} group {}",
      quant_mode_name(declared.mode),
      declared.bits,
      declared.group
  );
}

void check_quantized_shapes(const Binding& b) {
  if (b.codes.dtype != DType::u32) {
    b.reject(
        "weight",
        fmt::format(
            "expected U32 beside .scales, got {}", dtype_name(b.codes.dtype)
        )
    );
  }
  if (b.codes.shape.size() != 2 || b.scales->shape.size() != 2 ||
      b.codes.shape[0] != b.rows || b.scales->shape[0] != b.rows) {
    b.reject(
        "weight",
        fmt::format("expected .weight and .scales with {} rows", b.rows)
    );
  }
  if (b.codes.shape[1] == 0 || b.scales->shape[1] == 0) {
    b.reject("weight", "empty rows");
  }
  if (b.biases != nullptr && b.biases->shape != b.scales->shape) {
    b.reject("biases", "expected the shape of .scales");
  }
}

// 12.3 with the width known: the scales give the group, the words the bits.
WeightFormat infer_widths(
    const Binding& b, const QuantConfig::Override& declared
) {
  int64_t words = b.codes.shape[1];
  int64_t groups = b.scales->shape[1];
  if (b.cols % groups != 0 || b.cols / groups > kMaxGroup) {
    b.reject(
        "scales",
        fmt::format(
            "{} scales do not divide {} columns ({})",
            groups,
            b.cols,
            declared_text(declared)
        )
    );
  }
  if (words > b.cols || words * 32 % b.cols != 0) {
    b.reject(
        "weight",
        fmt::format(
            "no integer bit width: {} words hold {} columns ({})",
            words,
            b.cols,
            declared_text(declared)
        )
    );
  }
  WeightFormat format;
  format.bits = static_cast<int>(words * 32 / b.cols);
  format.group = static_cast<int>(b.cols / groups);
  return format;
}

void finish_affine(
    const Binding& b,
    const QuantConfig::Override& declared,
    WeightFormat& format
) {
  if (!is_weight_float(b.scales->dtype) || b.biases->dtype != b.scales->dtype) {
    b.reject(
        "scales",
        fmt::format(
            "expected .scales and .biases of one type F32, F16 or BF16, got "
            "{} and {}",
            dtype_name(b.scales->dtype),
            dtype_name(b.biases->dtype)
        )
    );
  }
  if (!loadable_bits(format.bits)) {
    b.reject(
        "weight",
        fmt::format(
            "the shapes give {} bits; 1, 2, 3, 4, 5, 6 and 8 can be read ({})",
            format.bits,
            declared_text(declared)
        )
    );
  }
  if (format.group != 32 && format.group != 64 && format.group != 128) {
    b.reject(
        "scales",
        fmt::format(
            "the shapes give groups of {}; 32, 64 and 128 can be read ({})",
            format.group,
            declared_text(declared)
        )
    );
  }
  format.mode = QuantMode::affine;
  format.dtype = b.scales->dtype;
}

void finish_block_float(
    const Binding& b,
    const QuantConfig::Override& declared,
    WeightFormat& format
) {
  format.mode = declared.mode;
  if (declared.mode == QuantMode::affine) {  // nothing said: 12.2
    format.mode = format.bits == 8     ? QuantMode::mxfp8
                  : format.group == 16 ? QuantMode::nvfp4
                                       : QuantMode::mxfp4;
  }
  if (format.bits == 1) {
    b.reject("biases", "missing: 1-bit planes are always affine");
  }
  const ModeRow& row = mode_row(format.mode);
  if (format.bits != row.bits || format.group != row.group) {
    b.reject(
        "weight",
        fmt::format(
            "{} has {} bits in groups of {}, but the shapes give {} and {}",
            row.name,
            row.bits,
            row.group,
            format.bits,
            format.group
        )
    );
  }
  format.dtype = DType::u8;
}

void tell_mismatch(
    const Binding& b,
    const QuantConfig& quantization,
    const QuantConfig::Override& declared,
    const WeightFormat& format
) {
  bool same = declared.mode == format.mode && declared.bits == format.bits &&
              declared.group == format.group;
  if (same || !quantization.declared ||
      (quantization.mismatches && !quantization.mismatches->next())) {
    return;
  }
  log_warning(fmt::format(
      "[mlxcel::quant] {}: {}, but the shapes give {} bits {} group {}. If "
      "an exporter that is not supported (OptiQ, for one) made it, the "
      "output may be degenerate",
      b.path,
      declared_text(declared),
      quant_mode_name(format.mode),
      format.bits,
      format.group
  ));
}

WeightFormat bind_quantized(const Binding& b, const QuantConfig& quantization) {
  check_quantized_shapes(b);
  QuantConfig::Override declared = quantization.for_module(b.path);
  bool block_float = declared.mode != QuantMode::affine;
  if (b.biases != nullptr && block_float) {
    b.reject(
        "biases",
        fmt::format(
            "{} has no biases, but there are some",
            quant_mode_name(declared.mode)
        )
    );
  }
  WeightFormat format = infer_widths(b, declared);
  if (b.biases != nullptr) {
    finish_affine(b, declared, format);
  } else if (is_byte_scale(b.scales->dtype)) {
    finish_block_float(b, declared, format);
  } else if (block_float) {
    b.reject(
        "scales",
        fmt::format(
            "{} has scales of one byte, got {}",
            quant_mode_name(declared.mode),
            dtype_name(b.scales->dtype)
        )
    );
  } else {
    b.reject(
        "biases",
        fmt::format(
            "missing: affine {}-bit planes need it{}",
            format.bits,
            format.bits == 1 ? ", and 1-bit planes are always affine" : ""
        )
    );
  }
  tell_mismatch(b, quantization, declared, format);
  return format;
}

WeightFormat bind_dense(const Binding& b) {
  if (!is_weight_float(b.codes.dtype)) {
    b.reject(
        "weight",
        fmt::format(
            "expected F32, F16 or BF16, or packed U32 with .scales; got {} "
            "without .scales",
            dtype_name(b.codes.dtype)
        )
    );
  }
  if (b.codes.shape != std::vector<int64_t>{b.rows, b.cols}) {
    b.reject("weight", fmt::format("expected [{}, {}]", b.rows, b.cols));
  }
  WeightFormat format;
  format.dtype = b.codes.dtype;
  return format;
}

}  // namespace

LinearWeight bind_linear(
    const WeightMap& weights,
    const std::string& path,
    int64_t rows,
    int64_t cols,
    const QuantConfig& quantization
) {
  const Weight* scales = weights.find(path + ".scales");
  const Weight* biases = weights.find(path + ".biases");
  const Weight* bias = weights.find(path + ".bias");
  Binding binding{
      path, rows, cols, weights.at(path + ".weight"), scales, biases};
  if (rows <= 0 || cols <= 0) {
    binding.reject("weight", "rows and columns must be positive");
  }
  LinearWeight linear;
  linear.path = path;
  linear.rows = rows;
  linear.cols = cols;
  linear.codes = binding.codes;
  if (scales != nullptr) {
    linear.format = bind_quantized(binding, quantization);
    linear.scales = *scales;
    if (biases != nullptr) {
      linear.biases = *biases;
    }
  } else {
    linear.format = bind_dense(binding);
  }
  if (const Weight* global = weights.find(path + ".global_scale")) {
    if (linear.format.mode != QuantMode::nvfp4 || global->dtype != DType::f32 ||
        global->elements() != 1) {
      binding.reject(
          "global_scale",
          fmt::format(
              "expected one F32 beside nvfp4 planes, got {}", global->describe()
          )
      );
    }
    linear.global_scale = to_float(*global)[0];
  }
  if (bias != nullptr) {
    if (!is_weight_float(bias->dtype) ||
        bias->shape != std::vector<int64_t>{rows}) {
      binding.reject(
          "bias",
          fmt::format(
              "expected [{}] F32, F16 or BF16, got {}", rows, bias->describe()
          )
      );
    }
    linear.bias = *bias;
  }
  return linear;
}

}  // namespace mlxcel
