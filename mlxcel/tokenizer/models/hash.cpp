#include "mlxcel/tokenizer/models/hash.h"

#include <cstring>
#include <random>

namespace mlxcel::tokenizer {

namespace {

uint64_t random_word() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

const uint64_t secret_a = random_word() | 1;
const uint64_t secret_b = random_word() | 1;

/// Both halves of the product (the mixing step of Wang Yi's wyhash).
uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t load8(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, 8);
  return value;
}

uint64_t load4(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, 4);
  return value;
}

}  // namespace

uint64_t hash_text(std::string_view text) {
  const char* p = text.data();
  size_t size = text.size();
  uint64_t h = secret_a ^ size;
  while (size > 16) {
    h = mix(load8(p) ^ secret_b, load8(p + 8) ^ h);
    p += 16;
    size -= 16;
  }
  uint64_t low = 0;
  uint64_t high = 0;
  if (size >= 8) {
    low = load8(p);
    high = load8(p + size - 8);
  } else if (size >= 4) {
    low = load4(p);
    high = load4(p + size - 4);
  } else if (size > 0) {
    auto byte = [p](size_t i) { return static_cast<unsigned char>(p[i]); };
    low = static_cast<uint64_t>(byte(0)) << 16 |
          static_cast<uint64_t>(byte(size / 2)) << 8 | byte(size - 1);
  }
  return mix(mix(low ^ secret_b, high ^ h), secret_a);
}

uint64_t hash_pair(uint32_t a, uint32_t b) {
  return mix((static_cast<uint64_t>(a) << 32 | b) ^ secret_a, secret_b);
}

}  // namespace mlxcel::tokenizer
