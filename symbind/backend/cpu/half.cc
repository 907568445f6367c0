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
// The processor preserves payload bits of a NaN that half_of() does not.
[[gnu::target("arch=x86-64-v3")]] int64_t narrow_vectors(const float* from, float16* to, int64_t count) {
  const __m128i sign = _mm_set1_epi16(static_cast<int16_t>(0x8000)), quiet = _mm_set1_epi16(0x7e00);
  const __m128i infinity = _mm_set1_epi16(0x7c00);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    const __m128i signs = _mm_and_si128(halves, sign), magnitudes = _mm_andnot_si128(sign, halves);
    const __m128i canonical = _mm_or_si128(signs, quiet), is_nan = _mm_cmpgt_epi16(magnitudes, infinity);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_blendv_epi8(halves, canonical, is_nan));
  }
  return i;
}
#else
int64_t widen_vectors(const float16*, float*, int64_t) { return 0; }
int64_t narrow_vectors(const float*, float16*, int64_t) { return 0; }
#endif

}  // namespace

void widen(const float16* from, float* to, int64_t count) {
  for (int64_t i = instruction_set() >= InstructionSet::avx2 ? widen_vectors(from, to, count) : 0; i < count; ++i)
    to[i] = widened(from[i]);
}

void narrow(const float* from, float16* to, int64_t count) {
  for (int64_t i = instruction_set() >= InstructionSet::avx2 ? narrow_vectors(from, to, count) : 0; i < count; ++i)
    to[i] = narrowed<float16>(from[i]);
}

}  // namespace symbind::cpu_backend
