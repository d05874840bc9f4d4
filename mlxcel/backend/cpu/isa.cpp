#include "mlxcel/backend/cpu/isa.h"

#include <algorithm>
#include <array>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mlxcel::backend::cpu {

namespace {

constexpr std::array kAll = {Isa::generic, Isa::avx2, Isa::avx512};

#if defined(__x86_64__)

// clang 14 doesn't know the feature by name.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// The compiler's run-time library reads CPUID and asks XGETBV whether the
// system saves the registers.
bool runs(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             has_f16c() && __builtin_cpu_supports("bmi2");
    case Isa::avx512:
      return runs(Isa::avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vnni") &&
             __builtin_cpu_supports("avx512vbmi");
  }
  return false;
}

#else

bool runs(Isa isa) {
  return isa == Isa::generic;
}

#endif

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return "generic";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "";
}

std::vector<Isa> available_isas() {
  std::vector<Isa> found;
  std::copy_if(kAll.begin(), kAll.end(), std::back_inserter(found), runs);
  return found;
}

Isa chosen_isa() {
  std::vector<Isa> available = available_isas();
  const char* wanted = os::environment("MLXCEL_CPU_ISA");
  if (wanted == nullptr) {
    return available.back();
  }
  std::string names;
  for (Isa isa : available) {
    if (isa_name(isa) == wanted) {
      return isa;
    }
    names += (names.empty() ? "" : ", ");
    names += isa_name(isa);
  }
  fail(
      ErrorCode::usage,
      "MLXCEL_CPU_ISA: " + quote(wanted) +
          " is no instruction set that this processor runs; it runs " + names
  );
}

}  // namespace mlxcel::backend::cpu
