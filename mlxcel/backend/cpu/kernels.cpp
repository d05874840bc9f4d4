#include "mlxcel/backend/cpu/kernels.h"

namespace mlxcel::backend::cpu {

const Kernels& kernels(Isa isa) {
  static const Kernels generic = {kGenericRowKernels, kGenericAttentionKernels};
  static const Kernels avx2 = {kAvx2RowKernels, kAvx2AttentionKernels};
  static const Kernels avx512 = {kAvx512RowKernels, kAvx512AttentionKernels};
  switch (isa) {
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx512;
    case Isa::generic:
      return generic;
  }
  return generic;
}

}  // namespace mlxcel::backend::cpu
