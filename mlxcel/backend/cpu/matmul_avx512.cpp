#include "mlxcel/backend/cpu/matmul_kernels.h"

namespace mlxcel::backend::cpu {

const MatmulKernels& avx512_matmul_kernels() {
  return generic_matmul_kernels();
}

}  // namespace mlxcel::backend::cpu
