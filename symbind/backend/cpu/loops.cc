#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {

InstructionSet instruction_set() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const InstructionSet best = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return InstructionSet::avx512;
    return __builtin_cpu_supports("x86-64-v3") ? InstructionSet::avx2 : InstructionSet::baseline;
  }();
  return best;
#else
  return InstructionSet::baseline;
#endif
}

}  // namespace symbind::cpu_backend
