#include "mlxcel/weights/convert/gguf/gguf_dequant.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/affine_groups.h"

namespace mlxcel::convert {

namespace {

const std::map<std::string, GgmlType> kNames = {
    {"F32", GgmlType::f32},
    {"F16", GgmlType::f16},
    {"BF16", GgmlType::bf16},
    {"Q4_0", GgmlType::q4_0},
    {"Q4_1", GgmlType::q4_1},
    {"Q5_0", GgmlType::q5_0},
    {"Q5_1", GgmlType::q5_1},
    {"Q8_0", GgmlType::q8_0},
    {"Q4_K", GgmlType::q4_k},
    {"Q5_K", GgmlType::q5_k},
    {"Q6_K", GgmlType::q6_k},
};

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::vector<float> as_floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

const std::byte* as_bytes(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

struct Case {
  std::string name;
  GgmlType type;
  std::string blocks;
  std::vector<float> values;
};

// Blocks and values that the `gguf` package decodes from them.
std::vector<Case> read_cases() {
  std::ifstream in(
      std::string(MLXCEL_TEST_DATA) + "/unit/convert/data/gguf_blocks.txt"
  );
  std::vector<Case> cases;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') {
      continue;
    }
    std::istringstream words(line);
    std::string name;
    std::string blocks;
    std::string values;
    words >> name >> blocks >> values;
    cases.push_back(
        {name, kNames.at(name), from_hex(blocks), as_floats(from_hex(values))}
    );
  }
  return cases;
}

std::vector<float> unpack(const std::byte* packed, int bits) {
  std::vector<float> codes;
  for (int i = 0; i < kGroup; ++i) {
    int code = 0;
    for (int b = 0; b < bits; ++b) {
      int at = i * bits + b;
      code |= (std::to_integer<int>(packed[at / 8]) >> (at % 8) & 1) << b;
    }
    codes.push_back(static_cast<float>(code));
  }
  return codes;
}

}  // namespace

TEST(GgufDequant, EveryTypeDecodesAsTheOfficialPackageDoes) {
  std::vector<Case> cases = read_cases();
  ASSERT_EQ(cases.size(), kNames.size());
  for (const Case& c : cases) {
    std::vector<float> values(c.values.size());
    dequantize(
        c.type,
        as_bytes(c.blocks),
        static_cast<int64_t>(values.size()),
        values.data()
    );
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], c.values[i]) << c.name << " element " << i;
    }
  }
}

TEST(GgufDequant, PackedAffineGroupsGiveTheSameValues) {
  for (const Case& c : read_cases()) {
    if (!is_affine(c.type)) {
      continue;
    }
    const BlockLayout& layout = block_layout(c.type);
    int bits = affine_bits(c.type);
    for (size_t at = 0; at < c.values.size(); at += layout.elements) {
      AffineGroup groups[8];
      decode_groups(
          c.type,
          as_bytes(c.blocks) +
              static_cast<int64_t>(at) / layout.elements * layout.bytes,
          groups
      );
      for (int64_t g = 0; g < layout.elements / kGroup; ++g) {
        std::byte packed[kGroup];
        pack_codes(groups[g].codes, bits, packed);
        std::vector<float> codes = unpack(packed, bits);
        for (size_t i = 0; i < kGroup; ++i) {
          float value = groups[g].scale * codes[i] + groups[g].bias;
          ASSERT_EQ(value, c.values[at + static_cast<size_t>(g) * kGroup + i])
              << c.name;
        }
      }
    }
  }
}

TEST(GgufDequant, CodesPackAsMlxReadsThem) {
  uint8_t codes[kGroup];
  std::byte packed[kGroup] = {};
  for (int i = 0; i < kGroup; ++i) {
    codes[i] = static_cast<uint8_t>(i % 8);
  }
  pack_codes(codes, 4, packed);
  EXPECT_EQ(load_le<uint32_t>(packed), 0x76543210u);
  EXPECT_EQ(load_le<uint32_t>(packed + 12), 0x76543210u);

  for (int i = 0; i < kGroup; ++i) {
    codes[i] = static_cast<uint8_t>(i);
  }
  pack_codes(codes, 5, packed);
  const uint32_t five[] = {
      0x8a418820, 0xc5a92839, 0xca307b9a, 0x38bdab49, 0xffbbcdeb};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(load_le<uint32_t>(packed + 4 * i), five[i]) << i;
  }
  codes[0] = 1;
  codes[1] = 2;
  codes[2] = 3;
  codes[3] = 255;
  pack_codes(codes, 8, packed);
  EXPECT_EQ(load_le<uint32_t>(packed), 0xff030201u);
}

TEST(GgufDequant, FittedGroupIsWithinHalfAStep) {
  float values[kGroup];
  for (int i = 0; i < kGroup; ++i) {
    values[i] = 0.3f * static_cast<float>((i * 37) % 32) - 2.5f;
  }
  for (bool half : {false, true}) {
    AffineGroup group;
    fit_group(values, half, group);
    if (half) {
      EXPECT_EQ(group.scale, f16_to_float(float_to_f16(group.scale)));
      EXPECT_EQ(group.bias, f16_to_float(float_to_f16(group.bias)));
    }
    for (int i = 0; i < kGroup; ++i) {
      float written = group.scale * group.codes[i] + group.bias;
      EXPECT_LE(std::abs(written - values[i]), 0.6f * group.scale) << i;
    }
  }
}

TEST(GgufDequant, FittedGroupOfEqualValuesKeepsThem) {
  float values[kGroup];
  std::fill(values, values + kGroup, -0.75f);
  AffineGroup group;
  fit_group(values, true, group);
  float written[kGroup];
  expand(group, written);
  EXPECT_EQ(written[0], -0.75f);
  EXPECT_EQ(written[31], -0.75f);
}

}  // namespace mlxcel::convert
