#include "mlxcel/backend/cpu/attention_operations.h"
#include "mlxcel/backend/cpu/kernels.h"
#include "mlxcel/backend/cpu/simd_avx2.h"

namespace mlxcel::backend::cpu {

const AttentionKernels kAvx2AttentionKernels =
    AttentionOperations<SimdAvx2>::table();

}  // namespace mlxcel::backend::cpu
