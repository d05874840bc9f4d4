#include <span>

#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/safetensors.h"
#include "tests/fuzz/fuzz.h"

// A SafeTensors file. What is accepted keeps the contract: extents without
// holes that are as large as dtype and shape say.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mlxcel;
  fuzz::attempt([&] {
    auto bytes = std::as_bytes(std::span(data, size));
    auto entries = read_safetensors_header(bytes, "file");
    uint64_t at = entries.empty() ? size : entries.front().begin;
    for (const TensorEntry& entry : entries) {
      fuzz::require(entry.begin == at && entry.end >= at && entry.end <= size);
      auto count = checked_product(entry.shape);
      fuzz::require(count && *count >= 0);
      at = entry.end;
    }
    fuzz::require(at == size);
  });
  return 0;
}
