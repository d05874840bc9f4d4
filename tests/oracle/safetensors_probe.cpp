// What tests/oracle/test_safetensors_differential.py asks of the SafeTensors
// reader: one JSON line per file, {"error": MESSAGE} or {"tensors": [[NAME,
// DTYPE, SHAPE, BEGIN, END], ...]}.
//
//   safetensors_probe headers < FRAMES   files in memory, each after its length
//                                        (4 bytes, little-endian)
//   safetensors_probe load < PATHS       files on disk, one path a line, by
//                                        load_safetensors(); the bytes in
//                                        hexadecimal instead of BEGIN, END

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/weights/safetensors.h"

namespace {

using namespace mlxcel;
using Line = nlohmann::json;

constexpr int kStandardInput = 0;
constexpr size_t kMostInput = size_t{1} << 30;

void put(const Line& line) {
  std::puts(line.dump().c_str());
}

Line header(std::span<const std::byte> file) {
  Line tensors = Line::array();
  for (const auto& entry : read_safetensors_header(file, "file")) {
    tensors.push_back(
        {entry.name,
         dtype_name(entry.dtype),
         entry.shape,
         entry.begin,
         entry.end}
    );
  }
  return {{"tensors", tensors}};
}

Line loaded(const std::string& path) {
  WeightMap weights;
  load_safetensors(path, weights);
  Line tensors = Line::array();
  for (const auto& [name, weight] : weights) {
    std::string bytes;
    for (std::byte byte : weight.bytes()) {
      bytes += fmt::format("{:02x}", static_cast<unsigned>(byte));
    }
    tensors.push_back({name, dtype_name(weight.dtype), weight.shape, bytes});
  }
  return {{"tensors", tensors}};
}

template <typename Answer>
void answer(Answer&& give) {
  try {
    put(give());
  } catch (const Error& error) {
    put({{"error", error.message()}});
  }
}

int headers(const std::string& frames) {
  for (size_t at = 0; at < frames.size();) {
    size_t size = load_le<uint32_t>(frames.data() + at);
    at += sizeof(uint32_t);
    // A copy of its own, so that a sanitizer sees what is read beside it.
    std::vector<char> file(
        frames.begin() + static_cast<ptrdiff_t>(at),
        frames.begin() + static_cast<ptrdiff_t>(at + size)
    );
    answer([&] { return header(std::as_bytes(std::span(file))); });
    at += size;
  }
  return 0;
}

int load(const std::string& paths) {
  for (size_t at = 0; at < paths.size();) {
    size_t end = paths.find('\n', at);
    answer([&] { return loaded(paths.substr(at, end - at)); });
    at = end + 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string mode = argc > 1 ? argv[1] : "";
    std::string input =
        os::read_stream(kStandardInput, kMostInput, "standard input");
    if (mode == "headers") {
      return headers(input);
    }
    if (mode == "load") {
      return load(input);
    }
    fmt::print(stderr, "unknown mode {}\n", mode);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  return 1;
}
