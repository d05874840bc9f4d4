#include "apps/npy.h"

#include <fmt/format.h>

#include "mlxcel/core/file.h"

namespace mlxcel::apps {

void write_npy(
    const std::string& path,
    std::span<const float> values,
    int64_t rows,
    int64_t cols
) {
  std::string header = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
      rows,
      cols
  );
  // Magic, version and length are 10 bytes; the whole is padded to 64.
  size_t padded = (10 + header.size() + 1 + 63) / 64 * 64;
  header.resize(padded - 11, ' ');
  header += '\n';
  auto length = static_cast<uint16_t>(header.size());
  std::string preamble = "\x93NUMPY\x01";
  preamble += '\0';
  preamble += static_cast<char>(length & 0xff);
  preamble += static_cast<char>(length >> 8);
  AtomicFile file(path);
  file.write(preamble);
  file.write(header);
  file.write(values.data(), values.size_bytes());
  file.commit();
}

}  // namespace mlxcel::apps
