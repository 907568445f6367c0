#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {

InstructionSet instruction_set() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const InstructionSet best = [] {
    __builtin_cpu_init();
#if defined(__clang__)  // does not support level names before version 17; these features imply the others
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
#else
    const bool v3 = __builtin_cpu_supports("x86-64-v3"), v4 = __builtin_cpu_supports("x86-64-v4");
#endif
    if (v4) return InstructionSet::avx512;
    return v3 ? InstructionSet::avx2 : InstructionSet::baseline;
  }();
  return best;
#else
  return InstructionSet::baseline;
#endif
}

}  // namespace symbind::cpu_backend
