// The row kernels in vectors of 8.
#include "symbind/backend/cpu/row_kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <type_traits>

#include <immintrin.h>

#include "symbind/backend/vector_math.h"

// Nothing that other sources share may be included below: it would be compiled for this instruction set, and the linker
// might use that version everywhere.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), apply_to = function)
#else
#pragma GCC target("arch=x86-64-v3")
#endif

#include "symbind/backend/cpu/channel_kernels.h"
#include "symbind/backend/cpu/dot_kernels.h"
#include "symbind/backend/cpu/l2_kernels.h"
#include "symbind/backend/cpu/norm_kernels.h"
#include "symbind/backend/cpu/softmax_kernels.h"

namespace symbind::cpu_backend {
namespace {

struct Avx2 {
  static constexpr int64_t width = 8, registers = 16;
  using Float = __m256;
  using Int [[gnu::vector_size(32)]] = int32_t;

  static __m256i lanes(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Float same(float value) { return _mm256_set1_ps(value); }
  static Float root(Float value) { return _mm256_sqrt_ps(value); }
  static Float greater(Float a, Float b) { return _mm256_max_ps(a, b); }
  static float largest(Float value) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  static float sum(Float value) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static Float first(int64_t count, Float value, Float otherwise) {
    return _mm256_blendv_ps(otherwise, value, _mm256_castsi256_ps(lanes(count)));
  }

  static Float of_bfloat16(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  // To nearest even; NaN is preserved.
  static __m128i to_bfloat16(Float value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
  }
  static __m128i to_float16(Float value) { return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT); }
  // There are no masks for 16 bits.
  template <class T>
  static __m128i load_bits(const T* from, int64_t count) {
    T bits[width] = {};
    for (int64_t i = 0; i < count; ++i) bits[i].bits = from[i].bits;
    return _mm_loadu_si128((const __m128i*)bits);
  }
  template <class T>
  static void store_bits(T* to, __m128i value, int64_t count) {
    T bits[width];
    _mm_storeu_si128((__m128i*)bits, value);
    for (int64_t i = 0; i < count; ++i) to[i].bits = bits[i].bits;
  }

  static Float load(const float* from) { return _mm256_loadu_ps(from); }
  static Float load(const float16* from) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from)); }
  static Float load(const bfloat16* from) { return of_bfloat16(_mm_loadu_si128((const __m128i*)from)); }
  static Float load(const float* from, int64_t count) { return _mm256_maskload_ps(from, lanes(count)); }
  static Float load(const float16* from, int64_t count) { return _mm256_cvtph_ps(load_bits(from, count)); }
  static Float load(const bfloat16* from, int64_t count) { return of_bfloat16(load_bits(from, count)); }

  static void store(float* to, Float value) { _mm256_storeu_ps(to, value); }
  static void store(float16* to, Float value) { _mm_storeu_si128((__m128i*)to, to_float16(value)); }
  static void store(bfloat16* to, Float value) { _mm_storeu_si128((__m128i*)to, to_bfloat16(value)); }
  static void store(float* to, Float value, int64_t count) { _mm256_maskstore_ps(to, lanes(count), value); }
  static void store(float16* to, Float value, int64_t count) { store_bits(to, to_float16(value), count); }
  static void store(bfloat16* to, Float value, int64_t count) { store_bits(to, to_bfloat16(value), count); }
};

}  // namespace

template <class T>
const RowKernels<T>* avx2_row_kernels() {
  static constexpr RowKernels<T> kernels{vectors::softmax_kernels_of<Avx2, T>(), vectors::norm_kernels_of<Avx2, T>(),
                                         vectors::channel_kernels_of<Avx2, T>(), vectors::l2_kernels_of<Avx2, T>(),
                                         vectors::dot_kernels_of<Avx2, T>()};
  return &kernels;
}

}  // namespace symbind::cpu_backend

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

namespace symbind::cpu_backend {
template <class T>
const RowKernels<T>* avx2_row_kernels() {
  return nullptr;
}
}  // namespace symbind::cpu_backend

#endif

namespace symbind::cpu_backend {
template const RowKernels<float>* avx2_row_kernels();
template const RowKernels<float16>* avx2_row_kernels();
template const RowKernels<bfloat16>* avx2_row_kernels();
}  // namespace symbind::cpu_backend
