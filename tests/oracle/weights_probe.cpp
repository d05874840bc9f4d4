// What tests/oracle/test_weights.py asks of mlxcel/weights.
//
//   weights_probe header FILE...           one JSON line per file
//   weights_probe range NAME DIM...        centre and scale, hexadecimal
//   weights_probe fill NAME SEED CENTRE SCALE COUNT OUT
//   weights_probe synth TABLE.json DIR BITS GROUP DTYPE SEED
//   weights_probe quantize IN ROWS COLS BITS GROUP OUT   codes, scales, biases
//   weights_probe quantize_block MODE IN OUT [DTYPE]     codes, scales
//   weights_probe dequantize DIR PATH ROWS COLS CONFIG.json OUT
//                                      vendor formats and plain types as well
//
// IN and OUT are raw little-endian numbers, float32 unless said otherwise.

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/json.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/safetensors.h"
#include "mlxcel/weights/shards.h"
#include "mlxcel/weights/small_floats.h"
#include "mlxcel/weights/synthetic.h"
#include "mlxcel/weights/transform/vendor.h"

namespace {

using namespace mlxcel;

constexpr uint64_t kLimit = uint64_t{1} << 30;

using Arguments = std::vector<std::string>;

template <typename T>
void put(AtomicFile& file, const std::vector<T>& values) {
  file.write(values.data(), values.size() * sizeof(T));
}

int number(const std::string& text) {
  return static_cast<int>(parse_int(text).value());
}

int header(const Arguments& arguments) {
  for (const std::string& path : arguments) {
    nlohmann::json line;
    try {
      auto file = MappedFile::open(path);
      line["tensors"] = nlohmann::json::array();
      for (const auto& entry : read_safetensors_header(file->bytes(), path)) {
        line["tensors"].push_back(
            {{"name", entry.name},
             {"dtype", dtype_name(entry.dtype)},
             {"shape", entry.shape},
             {"begin", entry.begin},
             {"end", entry.end}}
        );
      }
    } catch (const Error& error) {
      line = {{"error", error.message()}};
    }
    std::puts(line.dump().c_str());
  }
  return 0;
}

int range(const Arguments& arguments) {
  TensorSpec tensor{arguments.at(0), {}};
  for (size_t i = 1; i < arguments.size(); ++i) {
    tensor.shape.push_back(number(arguments[i]));
  }
  SyntheticRange range = synthetic_range(tensor);
  fmt::print("{:a} {:a}\n", range.centre, range.scale);
  return 0;
}

int fill(const Arguments& arguments) {
  SyntheticRange range{
      static_cast<float>(parse_double(arguments.at(2)).value()),
      static_cast<float>(parse_double(arguments.at(3)).value())};
  std::vector<float> values(static_cast<size_t>(number(arguments.at(4))));
  uint64_t seed = std::stoull(arguments.at(1));
  fill_synthetic(arguments.at(0), seed, range, values);
  AtomicFile out(arguments.at(5));
  put(out, values);
  out.commit();
  return 0;
}

int synth(const Arguments& arguments) {
  TensorTable table;
  for (const Json& entry :
       Json::parse_file(arguments.at(0), kLimit).elements()) {
    TensorSpec tensor{entry.at("name").as_string(), {}};
    for (const Json& dim : entry.at("shape").elements()) {
      tensor.shape.push_back(dim.as_int());
    }
    if (tensor.shape.size() < 2) {
      tensor.role = TensorRole::vector;
    }
    table.push_back(std::move(tensor));
  }
  SyntheticOptions options;
  options.bits = number(arguments.at(2));
  options.group = number(arguments.at(3));
  options.dtype = parse_dtype(arguments.at(4)).value();
  options.seed = std::stoull(arguments.at(5));
  write_synthetic(table, arguments.at(1), options);
  return 0;
}

int quantize(const Arguments& arguments) {
  std::string bytes = read_file(arguments.at(0), kLimit);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  AffinePlanes planes = quantize_affine(
      values,
      number(arguments.at(1)),
      number(arguments.at(2)),
      number(arguments.at(3)),
      number(arguments.at(4))
  );
  AtomicFile out(arguments.at(5));
  put(out, planes.codes);
  put(out, planes.scales);
  put(out, planes.biases);
  out.commit();
  return 0;
}

int quantize_block(const Arguments& arguments) {
  std::string bytes = read_file(arguments.at(1), kLimit);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  const std::string& mode = arguments.at(0);
  size_t group = mode == "nvfp4" ? 16 : 32;
  std::vector<std::byte> codes(values.size() / (mode == "mxfp8" ? 1 : 2));
  std::vector<std::byte> scales(values.size() / group);
  auto function = mode == "nvfp4"   ? quantize_nvfp4
                  : mode == "mxfp8" ? quantize_mxfp8
                                    : quantize_mxfp4;
  DType type =
      arguments.size() > 3 ? parse_dtype(arguments[3]).value() : DType::f32;
  function(values, codes.data(), scales.data(), type);
  AtomicFile out(arguments.at(2));
  put(out, codes);
  put(out, scales);
  out.commit();
  return 0;
}

int dequantize_path(const Arguments& arguments) {
  WeightMap weights = load_weights(arguments.at(0));
  Json config = Json::parse_file(arguments.at(4), kLimit);
  convert_vendor_formats(config, weights, {});
  LinearWeight weight = bind_linear(
      weights,
      arguments.at(1),
      number(arguments.at(2)),
      number(arguments.at(3)),
      QuantConfig::from_config(config)
  );
  AtomicFile out(arguments.at(5));
  put(out, dequantize(weight));
  out.commit();
  fmt::print("{}\n", weight.format.describe());
  return 0;
}

int run(const std::string& command, const Arguments& arguments) {
  if (command == "header") {
    return header(arguments);
  }
  if (command == "range") {
    return range(arguments);
  }
  if (command == "fill") {
    return fill(arguments);
  }
  if (command == "synth") {
    return synth(arguments);
  }
  if (command == "quantize") {
    return quantize(arguments);
  }
  if (command == "quantize_block") {
    return quantize_block(arguments);
  }
  if (command == "dequantize") {
    return dequantize_path(arguments);
  }
  fmt::print(stderr, "unknown command {}\n", command);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(
        argc > 1 ? argv[1] : "", {argv + std::min(argc, 2), argv + argc}
    );
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
