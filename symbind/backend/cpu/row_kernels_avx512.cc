// The row kernels in vectors of 16.
#include "symbind/backend/cpu/row_kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12 warns about values that its own header leaves undefined on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <type_traits>

#include <immintrin.h>

#include "symbind/backend/vector_math.h"

// Nothing that other sources share may be included below: it would be compiled for this instruction set, and the linker
// might use that version everywhere.
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512cd,avx2,fma,f16c,bmi2"))), apply_to = function)
#else
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#endif

#include "symbind/backend/cpu/channel_kernels.h"
#include "symbind/backend/cpu/dot_kernels.h"
#include "symbind/backend/cpu/l2_kernels.h"
#include "symbind/backend/cpu/norm_kernels.h"
#include "symbind/backend/cpu/softmax_kernels.h"

namespace symbind::cpu_backend {
namespace {

struct Avx512 {
  static constexpr int64_t width = 16, registers = 32;
  using Float = __m512;
  using Int [[gnu::vector_size(64)]] = int32_t;

  static __mmask16 lanes(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
  static Float same(float value) { return _mm512_set1_ps(value); }
  static Float root(Float value) { return _mm512_sqrt_ps(value); }
  static Float greater(Float a, Float b) { return _mm512_max_ps(a, b); }
  static float largest(Float value) { return _mm512_reduce_max_ps(value); }
  static float sum(Float value) { return _mm512_reduce_add_ps(value); }
  static Float first(int64_t count, Float value, Float otherwise) {
    return _mm512_mask_blend_ps(lanes(count), otherwise, value);
  }

  static Float of_bfloat16(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  // To nearest even; NaN is preserved.
  static __m256i to_bfloat16(Float value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i upper = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(upper, 16));
  }
  static __m256i to_float16(Float value) { return _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT); }

  static Float load(const float* from) { return _mm512_loadu_ps(from); }
  static Float load(const float16* from) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from)); }
  static Float load(const bfloat16* from) { return of_bfloat16(_mm256_loadu_si256((const __m256i*)from)); }
  static Float load(const float* from, int64_t count) { return _mm512_maskz_loadu_ps(lanes(count), from); }
  static Float load(const float16* from, int64_t count) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes(count), from));
  }
  static Float load(const bfloat16* from, int64_t count) {
    return of_bfloat16(_mm256_maskz_loadu_epi16(lanes(count), from));
  }

  static void store(float* to, Float value) { _mm512_storeu_ps(to, value); }
  static void store(float16* to, Float value) { _mm256_storeu_si256((__m256i*)to, to_float16(value)); }
  static void store(bfloat16* to, Float value) { _mm256_storeu_si256((__m256i*)to, to_bfloat16(value)); }
  static void store(float* to, Float value, int64_t count) { _mm512_mask_storeu_ps(to, lanes(count), value); }
  static void store(float16* to, Float value, int64_t count) {
    _mm256_mask_storeu_epi16(to, lanes(count), to_float16(value));
  }
  static void store(bfloat16* to, Float value, int64_t count) {
    _mm256_mask_storeu_epi16(to, lanes(count), to_bfloat16(value));
  }
};

}  // namespace

template <class T>
const RowKernels<T>* avx512_row_kernels() {
  static constexpr RowKernels<T> kernels{vectors::softmax_kernels_of<Avx512, T>(),
                                         vectors::norm_kernels_of<Avx512, T>(),
                                         vectors::channel_kernels_of<Avx512, T>(), vectors::l2_kernels_of<Avx512, T>(),
                                         vectors::dot_kernels_of<Avx512, T>()};
  return &kernels;
}

}  // namespace symbind::cpu_backend

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

namespace symbind::cpu_backend {
template <class T>
const RowKernels<T>* avx512_row_kernels() {
  return nullptr;
}
}  // namespace symbind::cpu_backend

#endif

namespace symbind::cpu_backend {
template const RowKernels<float>* avx512_row_kernels();
template const RowKernels<float16>* avx512_row_kernels();
template const RowKernels<bfloat16>* avx512_row_kernels();
}  // namespace symbind::cpu_backend
