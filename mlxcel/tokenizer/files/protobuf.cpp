#include "mlxcel/tokenizer/files/protobuf.h"

#include <fmt/format.h>

#include <bit>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/utf8.h"

namespace mlxcel::tokenizer {

ProtoReader::ProtoReader(
    std::string_view bytes, std::string name, std::string where
)
    : rest_(bytes), name_(std::move(name)), where_(std::move(where)) {}

void ProtoReader::reject(const std::string& reason) const {
  fail(
      ErrorCode::invalid_input,
      fmt::format("[{}] {} field {}: {}", name_, where_, field_, reason)
  );
}

bool ProtoReader::next() {
  if (rest_.empty()) {
    return false;
  }
  uint64_t tag = read_varint();
  if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) {
    reject("a tag that is none: this is no protocol buffer");
  }
  field_ = static_cast<uint32_t>(tag >> 3);
  wire_ = static_cast<Wire>(tag & 7);
  switch (wire_) {
    case Wire::varint:
      number_ = read_varint();
      break;
    case Wire::fixed64:
      number_ = read_fixed(8);
      break;
    case Wire::fixed32:
      number_ = read_fixed(4);
      break;
    case Wire::bytes: {
      uint64_t size = read_varint();
      if (size > rest_.size()) {
        reject(fmt::format(
            "{} bytes are declared, {} are left", size, rest_.size()
        ));
      }
      bytes_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
      break;
    }
    default:
      reject(fmt::format("wire type {} is not supported", tag & 7));
  }
  return true;
}

uint64_t ProtoReader::read_varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) {
      reject("the bytes end within a number");
    }
    auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  reject("a number has more than ten bytes");
}

uint64_t ProtoReader::read_fixed(size_t size) {
  if (rest_.size() < size) {
    reject("the bytes end within a number");
  }
  uint64_t value = size == 8 ? load_le<uint64_t>(rest_.data())
                             : load_le<uint32_t>(rest_.data());
  rest_.remove_prefix(size);
  return value;
}

void ProtoReader::expect(Wire wire) const {
  if (wire_ != wire) {
    reject(fmt::format(
        "expected wire type {}, got {}",
        static_cast<int>(wire),
        static_cast<int>(wire_)
    ));
  }
}

uint64_t ProtoReader::as_varint() const {
  expect(Wire::varint);
  return number_;
}

float ProtoReader::as_float() const {
  expect(Wire::fixed32);
  return std::bit_cast<float>(static_cast<uint32_t>(number_));
}

std::string_view ProtoReader::as_bytes() const {
  expect(Wire::bytes);
  return bytes_;
}

std::string ProtoReader::as_text() const {
  std::string text(as_bytes());
  if (find_invalid_utf8(text)) {
    reject("not UTF-8");
  }
  return text;
}

}  // namespace mlxcel::tokenizer
