#include "symbind/backend/cpu/row_kernels.h"

#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {

template <class T>
const RowKernels<T>* row_kernels() {
  if (instruction_set() == InstructionSet::avx512) return avx512_row_kernels<T>();
  if (instruction_set() == InstructionSet::avx2) return avx2_row_kernels<T>();
  return nullptr;
}

template const RowKernels<float>* row_kernels();
template const RowKernels<float16>* row_kernels();
template const RowKernels<bfloat16>* row_kernels();

}  // namespace symbind::cpu_backend
