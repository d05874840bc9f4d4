#include "mlxcel/backend/cpu/attention_operations.h"
#include "mlxcel/backend/cpu/kernels.h"
#include "mlxcel/backend/cpu/simd_avx512.h"

namespace mlxcel::backend::cpu {

const AttentionKernels kAvx512AttentionKernels =
    AttentionOperations<SimdAvx512>::table();

}  // namespace mlxcel::backend::cpu
