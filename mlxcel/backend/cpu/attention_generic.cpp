#include "mlxcel/backend/cpu/attention_operations.h"
#include "mlxcel/backend/cpu/kernels.h"
#include "mlxcel/backend/cpu/simd_generic.h"

namespace mlxcel::backend::cpu {

const AttentionKernels kGenericAttentionKernels =
    AttentionOperations<SimdGeneric>::table();

}  // namespace mlxcel::backend::cpu
