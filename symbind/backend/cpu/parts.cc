#include "symbind/backend/cpu/lapack.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/core/part_sources.h"

namespace symbind {

std::vector<Part> cpu_parts() {
  using cpu_backend::InstructionSet;
  const InstructionSet widest = cpu_backend::instruction_set();
  const char* const vectors = widest == InstructionSet::avx512 ? "AVX-512"
                              : widest == InstructionSet::avx2 ? "AVX2"
                                                               : "the instructions that every processor has";
  const int threads = available_threads();
  return {{"CPU", true, join(threads, threads == 1 ? " thread, " : " threads, ", vectors)},
          cpu_backend::lapack::part()};
}

}  // namespace symbind
