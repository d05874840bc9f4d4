#include "mlxcel/backend/cpu/row_kernels.h"
#include "mlxcel/backend/cpu/simd_generic.h"

namespace mlxcel::backend::cpu {

const RowKernels kGenericRowKernels = RowOperations<SimdGeneric>::table();

}  // namespace mlxcel::backend::cpu
