// Functions of backend/functions.h that call <math.h>, by formulas that vectorize (wide_math.h), and others by formulas
// that take less time, for the arguments for which these are valid (most); the function itself handles the others.
// Formula<F>::holds(f, arguments…) and Formula<F>::value(f, arguments…), in float.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "symbind/backend/cpu/wide_math.h"
#include "symbind/backend/function_tables.h"

namespace symbind::cpu_backend {

template <class Function>
struct Formula {
  static constexpr bool exists = false;
};

inline bool is_turned_exactly(float x) { return x >= -65536.0f && x <= 65536.0f; }
inline bool is_positive_normal(float x) {
  return x >= std::numeric_limits<float>::min() && x <= std::numeric_limits<float>::max();
}
inline bool is_finite(float x) {
  return x >= -std::numeric_limits<float>::max() && x <= std::numeric_limits<float>::max();
}

// ---- One argument ---------------------------------------------------------------------------------------------------

template <bool (*holds_for)(float), float (*formula)(float)>
struct OfOne {
  static constexpr bool exists = true;
  template <class Function>
  static bool holds(const Function& /*function*/, float x) {
    return holds_for(x);
  }
  template <class Function>
  static float value(const Function& /*function*/, float x) {
    return formula(x);
  }
};
inline bool is_any(float /*x*/) { return true; }
inline float minus_sin(float x) { return -wide_math::sin(x); }
inline float tan_slope(float x) {
  const float y = wide_math::tan(x);
  return 1 + y * y;
}
template <>
struct Formula<functions::floating::Sin> : OfOne<is_turned_exactly, wide_math::sin> {};
template <>
struct Formula<functions::floating::Cos> : OfOne<is_turned_exactly, wide_math::cos> {};
template <>
struct Formula<functions::floating::Tan> : OfOne<is_turned_exactly, wide_math::tan> {};
template <>
struct Formula<functions::floating::CosSlope> : OfOne<is_turned_exactly, minus_sin> {};
template <>
struct Formula<functions::floating::TanSlope> : OfOne<is_turned_exactly, tan_slope> {};
template <>
struct Formula<functions::floating::Gammaln> : OfOne<is_positive_normal, wide_math::log_gamma> {};
template <>
struct Formula<functions::floating::GammalnSlope> : OfOne<is_positive_normal, wide_math::digamma> {};

template <>
struct Formula<functions::Gelu> : OfOne<is_any, wide_math::gelu> {};

template <class Inner>
struct Formula<functions::InFloating<Inner>> : Formula<Inner> {};
template <class Inner>
struct Formula<functions::TimesFunction<Inner>> {
  static constexpr bool exists = Formula<Inner>::exists;
  template <class Function>
  static bool holds(const Function& /*function*/, float /*dy*/, float x) {
    return Formula<Inner>::holds(Inner{}, x);
  }
  template <class Function>
  static float value(const Function& /*function*/, float dy, float x) {
    return dy * Formula<Inner>::value(Inner{}, x);
  }
};

// ---- Several arguments ----------------------------------------------------------------------------------------------

template <>
struct Formula<functions::Power> {
  static constexpr bool exists = true;
  static bool holds(functions::Power, float a, float b) { return is_positive_normal(a) && is_finite(b); }
  static float value(functions::Power, float a, float b) { return wide_math::pow(a, b); }
};
template <>
struct Formula<functions::PowerLhsGrad> {
  static constexpr bool exists = true;
  static bool holds(functions::PowerLhsGrad, float /*dy*/, float a, float b) {
    return is_positive_normal(a) && is_finite(b);
  }
  static float value(functions::PowerLhsGrad, float dy, float a, float b) {
    return dy * (b * wide_math::pow(a, b - 1.0f));
  }
};
template <>
struct Formula<functions::PowerScalarGrad> : Formula<functions::PowerLhsGrad> {
  static bool holds(functions::PowerScalarGrad, float dy, float a, float b) {
    return Formula<functions::PowerLhsGrad>::holds({}, dy, a, b);
  }
  static float value(functions::PowerScalarGrad, float dy, float a, float b) {
    return Formula<functions::PowerLhsGrad>::value({}, dy, a, b);
  }
};
template <>
struct Formula<functions::PowerRhsGrad> {
  static constexpr bool exists = true;
  static bool holds(functions::PowerRhsGrad, float /*dy*/, float a, float b) {
    return is_positive_normal(a) && is_finite(b);
  }
  static float value(functions::PowerRhsGrad, float dy, float a, float b) {
    return dy * (wide_math::pow(a, b) * vector_math::log(a));
  }
};
template <>
struct Formula<functions::Hypot> {
  static constexpr bool exists = true;
  static bool holds(functions::Hypot, float a, float b) { return is_finite(a) && is_finite(b); }
  static float value(functions::Hypot, float a, float b) { return wide_math::hypot(a, b); }
};
template <>
struct Formula<functions::HypotLhsGrad> {
  static constexpr bool exists = true;
  static bool holds(functions::HypotLhsGrad, float /*dy*/, float a, float b) { return is_finite(a) && is_finite(b); }
  static float value(functions::HypotLhsGrad, float dy, float a, float b) { return dy * (a / wide_math::hypot(a, b)); }
};
template <>
struct Formula<functions::HypotRhsGrad> {
  static constexpr bool exists = true;
  static bool holds(functions::HypotRhsGrad, float /*dy*/, float a, float b) { return is_finite(a) && is_finite(b); }
  static float value(functions::HypotRhsGrad, float dy, float a, float b) { return dy * (b / wide_math::hypot(b, a)); }
};

template <class Inner>
struct Formula<functions::Swapped<Inner>> {
  static constexpr bool exists = Formula<Inner>::exists;
  static bool holds(functions::Swapped<Inner>, float a, float b) { return Formula<Inner>::holds(Inner{}, b, a); }
  static float value(functions::Swapped<Inner>, float a, float b) { return Formula<Inner>::value(Inner{}, b, a); }
};
template <class Inner>
struct Formula<functions::WithNumbers<Inner, float, 1>> {
  using Function = functions::WithNumbers<Inner, float, 1>;
  static constexpr bool exists = Formula<Inner>::exists;
  template <class... Arguments>
  static bool holds(const Function& function, Arguments... arguments) {
    return Formula<Inner>::holds(Inner{}, arguments..., function.numbers[0]);
  }
  template <class... Arguments>
  static float value(const Function& function, Arguments... arguments) {
    return Formula<Inner>::value(Inner{}, arguments..., function.numbers[0]);
  }
};

// ---- Functions slower than memory accesses --------------------------------------------------------------------------

template <class Function>
inline constexpr bool is_costly = Formula<Function>::exists;
template <class Inner>
inline constexpr bool is_costly<functions::InFloating<Inner>> = true;
template <class Inner>
inline constexpr bool is_costly<functions::TimesFunction<Inner>> = true;
template <class Inner>
inline constexpr bool is_costly<functions::Swapped<Inner>> = is_costly<Inner>;
template <class Inner, size_t count>
inline constexpr bool is_costly<functions::WithNumbers<Inner, float, count>> = is_costly<Inner>;
template <>
inline constexpr bool is_costly<functions::Sigmoid> = true;
template <>
inline constexpr bool is_costly<functions::Tanh> = true;
template <>
inline constexpr bool is_costly<functions::Exp> = true;
template <>
inline constexpr bool is_costly<functions::Log> = true;
template <>
inline constexpr bool is_costly<functions::SoftRelu> = true;
template <>
inline constexpr bool is_costly<functions::SoftReluGrad> = true;
template <>
inline constexpr bool is_costly<functions::Gelu> = true;
template <>
inline constexpr bool is_costly<functions::GeluGrad> = true;
template <>
inline constexpr bool is_costly<functions::Elu> = true;
template <>
inline constexpr bool is_costly<functions::EluGrad> = true;

// ---- Loops ----------------------------------------------------------------------------------------------------------

// Compilers may round differently in a loop's vector code and in the scalar code for its last elements (they choose
// which product to contract with a sum), and an element's value must not depend on its place in the array, on the
// number of threads, or on its neighbours. So costly functions are always evaluated by loops of a fixed length, which
// are vector code alone.

// Whether the loop's formula is valid for these arguments.
template <class Function, class... C>
[[gnu::always_inline]] inline bool formula_holds(const Function& function, C... arguments) {
  if constexpr (Formula<Function>::exists)
    return Formula<Function>::holds(function, arguments...);
  else
    return true;
}

// out[i] = function(operand(i)…) for i in [0, count), where the formula is valid.
template <int64_t count, class Function, class... Operand>
[[gnu::always_inline]] inline void apply_formula(const Function& function, float* out, const Operand&... operand) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (Formula<Function>::exists)
      out[i] = Formula<Function>::value(function, operand(i)...);
    else
      out[i] = function(operand(i)...);
  }
}

// The same for up to `lanes` elements of any values: those for which the formula is invalid, or that do not exist,
// repeat one for which it is valid, and the function itself is called for the former.
inline constexpr int64_t lanes = 16;
template <class Function, class... Operand>
[[gnu::always_inline]] inline void apply_to_some(const Function& function, float* out, int64_t count,
                                                 const Operand&... operand) {
  int64_t valid = 0;
  while (valid < count && !formula_holds(function, operand(valid)...)) ++valid;
  std::array<float, lanes> results{};
  if (valid < count) {
    std::array<int64_t, lanes> from;
    for (int64_t i = 0; i < lanes; ++i) from[i] = i < count && formula_holds(function, operand(i)...) ? i : valid;
    const auto gather = [&from](const auto& read) {
      std::array<float, lanes> values;
      for (int64_t i = 0; i < lanes; ++i) values[i] = read(from[i]);
      return values;
    };
    const auto apply_to = [&](const auto&... values) {
      apply_formula<lanes>(function, results.data(), [&values](int64_t i) { return values[i]; }...);
    };
    apply_to(gather(operand)...);
  }
  for (int64_t i = 0; i < count; ++i)
    out[i] = formula_holds(function, operand(i)...) ? results[i] : function(operand(i)...);
}

// out[i] = function(operand(i)…) for i in [begin, end). An operand may read what `out` writes at the same i.
template <class Function, class C, class... Operand>
[[gnu::always_inline]] inline void apply(const Function& function, C* out, int64_t begin, int64_t end,
                                         const Operand&... operand) {
  if constexpr (std::is_same_v<C, float> && is_costly<Function>) {
    const Function own = function;  // a local copy, which `out` cannot alias
    constexpr int64_t block = 128;
    for (int64_t at = begin; at < end; at += block) {
      int others = end - at < block ? 1 : 0;
      if (others == 0)
        for (int64_t i = at; i < at + block; ++i) others |= formula_holds(own, operand(i)...) ? 0 : 1;
      if (others == 0) [[likely]] {
        apply_formula<block>(own, out + at, [&operand, at](int64_t i) { return operand(at + i); }...);
      } else {
        for (int64_t some = at; some < std::min(end, at + block); some += lanes)
          apply_to_some(own, out + some, std::min(lanes, end - some),
                        [&operand, some](int64_t i) { return operand(some + i); }...);
      }
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) out[i] = function(operand(i)...);
  }
}

}  // namespace symbind::cpu_backend
