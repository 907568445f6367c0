#include "symbind/backend/cpu/half.h"

#include "symbind/backend/cpu/loops.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace symbind::cpu_backend {
namespace {

#if defined(__x86_64__) && defined(__GNUC__)
// Returns how many numbers it converted.
[[gnu::target("arch=x86-64-v3")]] int64_t widen_vectors(const float16* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  return i;
}
#else
int64_t widen_vectors(const float16*, float*, int64_t) { return 0; }
#endif

}  // namespace

void widen(const float16* from, float* to, int64_t count) {
  for (int64_t i = instruction_set() >= InstructionSet::avx2 ? widen_vectors(from, to, count) : 0; i < count; ++i)
    to[i] = widened(from[i]);
}

}  // namespace symbind::cpu_backend
