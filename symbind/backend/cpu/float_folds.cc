// Converting floats to double takes longer than multiplying them, unless every vector of doubles is converted from
// memory: from a register it takes a shuffle as well. Compilers load eight floats and convert both halves of the
// register, so the vectors are explicit here. Vectors of eight doubles are no faster.
#include "symbind/backend/cpu/float_folds.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

// Nothing that other sources share may be included below: it would be compiled for this instruction set, and the linker
// might use that version everywhere.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi2"))), apply_to = function)
#else
#pragma GCC target("arch=x86-64-v3")
#endif

namespace symbind::cpu_backend {
namespace {

using Doubles = __m256d;

// The arithmetic of folds.h. `start` is also an element that changes nothing.
struct Product {
  static constexpr float start = 1;
  static Doubles take(Doubles a, Doubles x) { return a * x; }
  static Doubles join(Doubles a, Doubles b) { return a * b; }
};
struct ProductOfNumbers : Product {
  static Doubles take(Doubles a, Doubles x) { return x == x ? a * x : a; }
};
struct Norm1 {
  static constexpr float start = 0;
  static Doubles take(Doubles a, Doubles x) { return a + _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }
  static Doubles join(Doubles a, Doubles b) { return a + b; }
};
struct Norm2 : Norm1 {
  static Doubles take(Doubles a, Doubles x) { return a + x * x; }
};

constexpr int vectors = 8, width = 4, lanes = vectors * width;

template <class F>
[[gnu::always_inline]] inline void take_lanes(Doubles (&parts)[vectors], const float* from) {
#pragma GCC unroll 8
  for (int i = 0; i < vectors; ++i) parts[i] = F::take(parts[i], _mm256_cvtps_pd(_mm_loadu_ps(from + i * width)));
}

template <class F>
double fold_floats(const float* row, int64_t length) {
  Doubles parts[vectors];
  for (Doubles& part : parts) part = _mm256_set1_pd(F::start);
  int64_t i = 0;
  for (; i + lanes <= length; i += lanes) take_lanes<F>(parts, row + i);
  if (i < length) {
    float rest[lanes];
    for (int j = 0; j < lanes; ++j) rest[j] = i + j < length ? row[i + j] : F::start;
    take_lanes<F>(parts, rest);
  }
#pragma GCC unroll 4
  for (int half = vectors / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) parts[j] = F::join(parts[j], parts[j + half]);
  const Doubles total = parts[0];
  const Doubles pairs = F::join(total, Doubles{total[2], total[3]});
  return F::join(pairs, Doubles{pairs[1]})[0];
}

}  // namespace

FloatFold avx2_float_fold(Fold fold) {
  switch (fold) {
    case Fold::product:
      return fold_floats<Product>;
    case Fold::product_of_numbers:
      return fold_floats<ProductOfNumbers>;
    case Fold::norm1:
      return fold_floats<Norm1>;
    case Fold::norm2:
      return fold_floats<Norm2>;
    default:
      return nullptr;
  }
}

}  // namespace symbind::cpu_backend

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

namespace symbind::cpu_backend {
FloatFold avx2_float_fold(Fold) { return nullptr; }
}  // namespace symbind::cpu_backend

#endif
