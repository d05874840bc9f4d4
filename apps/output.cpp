#include "apps/output.h"

#include <cstdio>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardOutput = 1;

}  // namespace

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::clearerr(stdout);
    fail(ErrorCode::io, "[output] standard output: cannot be written to");
  }
}

// Not by way of stdio, which gives up where a signal interrupts it.
void write_output(std::string_view text) {
  flush_output();
  os::write_all(kStandardOutput, text.data(), text.size(), "standard output");
}

}  // namespace mlxcel::apps
