#include "mlxcel/backend/cpu/row_kernels.h"
#include "mlxcel/backend/cpu/simd_avx512.h"

namespace mlxcel::backend::cpu {

const RowKernels kAvx512RowKernels = RowOperations<SimdAvx512>::table();

}  // namespace mlxcel::backend::cpu
