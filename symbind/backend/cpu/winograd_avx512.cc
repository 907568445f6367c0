// The Winograd kernels in vectors of 16.
#include "symbind/backend/cpu/winograd.h"

#if defined(__x86_64__) && defined(__GNUC__)

// Nothing that other sources share may be included below: it would be compiled for this instruction set, and the linker
// might use that version everywhere.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512cd,avx2,fma,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#endif

#include "symbind/backend/cpu/winograd_kernels.h"

namespace symbind::cpu_backend::winograd {
const Kernels* avx512_kernels() {
  static constexpr Kernels kernels = kernels_of<16>();
  return &kernels;
}
}  // namespace symbind::cpu_backend::winograd

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

namespace symbind::cpu_backend::winograd {
const Kernels* avx512_kernels() { return nullptr; }
}  // namespace symbind::cpu_backend::winograd

#endif
