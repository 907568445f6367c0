// The part of a standard library that functions of numbers (functions.h, vector_math.h) need. The same text is compiled
// by the host's compiler, by nvcc, and by NVRTC when a plan is built, which has no standard headers; so functions.h and
// what it includes use nothing else. Only the lines below depend on the compiler.
#pragma once

#ifdef __CUDACC_RTC__
namespace symbind {
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
struct float16 {
  unsigned short bits;
};
struct bfloat16 {
  unsigned short bits;
};
}  // namespace symbind
#else
#include <cstdint>

#include <math.h>  // NOLINT(modernize-deprecated-headers): functions outside of namespace std, as NVRTC has them

#include "symbind/core/dtype.h"
#endif

namespace symbind::freestanding {

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

// Integer types.
template <class T>
inline constexpr bool is_integral = static_cast<T>(0.5) == static_cast<T>(0);
template <>
inline constexpr bool is_integral<bool> = true;

template <bool condition, class Yes, class No>
struct Conditional {
  using type = Yes;
};
template <class Yes, class No>
struct Conditional<false, Yes, No> {
  using type = No;
};
template <bool condition, class Yes, class No>
using conditional = typename Conditional<condition, Yes, No>::type;

// The unsigned type of the same size, for int32_t and int64_t.
template <class T>
using unsigned_of = conditional<sizeof(T) == 8, uint64_t, uint32_t>;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

template <class T>
constexpr T infinity() {
  return static_cast<T>(bit_cast<float>(0x7f800000u));
}
template <class T>
constexpr T quiet_nan() {
  return static_cast<T>(bit_cast<float>(0x7fc00000u));
}

inline constexpr double pi = 3.141592653589793238462643383279502884;
inline constexpr double ln2 = 0.693147180559945309417232121458176568;
inline constexpr double ln10 = 2.302585092994045684017991454684364208;
inline constexpr double sqrt2 = 1.414213562373095048801688724209698079;
inline constexpr double inv_sqrtpi = 0.564189583547756286948079451560772586;

}  // namespace symbind::freestanding

// The functions of <math.h> by one name for float and double. Templates, so that constexpr functions and device code
// may call them.
namespace symbind::libm {

#define SYMBIND_LIBM_1(name)                                 \
  template <class T>                                         \
  constexpr T name(T x) {                                    \
    if constexpr (freestanding::is_same<T, float>)           \
      return ::name##f(x);                                   \
    else                                                     \
      return static_cast<T>(::name(static_cast<double>(x))); \
  }
#define SYMBIND_LIBM_2(name)                                                         \
  template <class T>                                                                 \
  constexpr T name(T x, T y) {                                                       \
    if constexpr (freestanding::is_same<T, float>)                                   \
      return ::name##f(x, y);                                                        \
    else                                                                             \
      return static_cast<T>(::name(static_cast<double>(x), static_cast<double>(y))); \
  }
SYMBIND_LIBM_1(acos)
SYMBIND_LIBM_1(acosh)
SYMBIND_LIBM_1(asin)
SYMBIND_LIBM_1(asinh)
SYMBIND_LIBM_1(atan)
SYMBIND_LIBM_1(atanh)
SYMBIND_LIBM_1(cbrt)
SYMBIND_LIBM_1(ceil)
SYMBIND_LIBM_1(cos)
SYMBIND_LIBM_1(cosh)
SYMBIND_LIBM_1(erf)
SYMBIND_LIBM_1(erfc)
SYMBIND_LIBM_1(exp)
SYMBIND_LIBM_1(expm1)
SYMBIND_LIBM_1(fabs)
SYMBIND_LIBM_1(floor)
SYMBIND_LIBM_1(lgamma)
SYMBIND_LIBM_1(log)
SYMBIND_LIBM_1(log10)
SYMBIND_LIBM_1(log1p)
SYMBIND_LIBM_1(log2)
SYMBIND_LIBM_1(round)
SYMBIND_LIBM_1(sin)
SYMBIND_LIBM_1(sinh)
SYMBIND_LIBM_1(sqrt)
SYMBIND_LIBM_1(tan)
SYMBIND_LIBM_1(tanh)
SYMBIND_LIBM_1(tgamma)
SYMBIND_LIBM_1(trunc)
SYMBIND_LIBM_2(copysign)
SYMBIND_LIBM_2(fmod)
SYMBIND_LIBM_2(hypot)
SYMBIND_LIBM_2(pow)
#undef SYMBIND_LIBM_1
#undef SYMBIND_LIBM_2

}  // namespace symbind::libm
