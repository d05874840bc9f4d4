#include "mlxcel/backend/cpu/row_kernels.h"
#include "mlxcel/backend/cpu/simd_avx2.h"

namespace mlxcel::backend::cpu {

const RowKernels kAvx2RowKernels = RowOperations<SimdAvx2>::table();

}  // namespace mlxcel::backend::cpu
