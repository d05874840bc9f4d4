#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlxcel::backend::cpu {

/// Instruction sets that have kernels of their own, weakest first.
enum class Isa { generic, avx2, avx512 };

std::string_view isa_name(Isa isa);
/// Those that this processor and system can run, weakest first.
std::vector<Isa> available_isas();
/// The strongest available one, or MLXCEL_CPU_ISA (an unknown or unavailable
/// name there is an Error(usage)).
Isa chosen_isa();

}  // namespace mlxcel::backend::cpu
