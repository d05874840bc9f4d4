#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mlxcel::tokenizer {

/// Reads the fields of one message in the wire format of protocol buffers
/// (protobuf.dev/programming-guides/encoding). Never reads beyond its bytes.
class ProtoReader {
 public:
  /// `name` is the file, `where` the message, for errors.
  ProtoReader(std::string_view bytes, std::string name, std::string where);

  /// Goes to the next field. Throws Error(invalid_input) where the bytes are
  /// no message.
  bool next();
  uint32_t field() const {
    return field_;
  }
  /// The value of the field; a field of another wire type throws
  /// Error(invalid_input).
  uint64_t as_varint() const;
  bool as_bool() const {
    return as_varint() != 0;
  }
  float as_float() const;
  std::string_view as_bytes() const;
  /// Valid UTF-8.
  std::string as_text() const;

  [[noreturn]] void reject(const std::string& reason) const;

 private:
  enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  uint64_t read_varint();
  uint64_t read_fixed(size_t size);
  void expect(Wire wire) const;

  std::string_view rest_;
  std::string name_;
  std::string where_;
  uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

}  // namespace mlxcel::tokenizer
