// The arithmetic of reductions, for all devices (cpu/float_folds.cc has some of it in vectors). A fold defines the type
// of a partial result, its initial value, how an element (of type C, see wide.h) is added, how two partial results are
// combined, and the final result. Compiled by g++ and nvcc.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "symbind/backend/functions.h"

namespace symbind::folds {

// Products, sums of numbers and norms of floats are accumulated in double.
template <class C>
using Total = std::conditional_t<std::is_same_v<C, float>, double, C>;

template <class C>
constexpr bool is_nan(C x) {
  return x != x;
}

// NaN wins over every other value.
template <class C>
struct Largest {
  using Part = C;
  static constexpr Part start() {
    return std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
  }
  static constexpr Part take(Part a, C b) { return a > b || is_nan(a) ? a : b; }
  static constexpr Part join(Part a, Part b) { return take(a, b); }
  static constexpr Part finish(Part a) { return a; }
};
template <class C>
struct Smallest {
  using Part = C;
  static constexpr Part start() {
    return std::is_floating_point_v<C> ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();
  }
  static constexpr Part take(Part a, C b) { return a < b || is_nan(a) ? a : b; }
  static constexpr Part join(Part a, Part b) { return take(a, b); }
  static constexpr Part finish(Part a) { return a; }
};
template <class C, bool numbers_alone>
struct Product {
  using Part = Total<C>;
  static constexpr Part start() { return Part(1); }
  static constexpr Part take(Part a, C b) {
    return numbers_alone && is_nan(b) ? a : functions::multiply(a, static_cast<Part>(b));
  }
  static constexpr Part join(Part a, Part b) { return functions::multiply(a, b); }
  static constexpr Part finish(Part a) { return a; }
};
template <class C>
struct SumOfNumbers {
  using Part = Total<C>;
  static constexpr Part start() { return Part(0); }
  static constexpr Part take(Part a, C b) { return is_nan(b) ? a : functions::add(a, static_cast<Part>(b)); }
  static constexpr Part join(Part a, Part b) { return functions::add(a, b); }
  static constexpr Part finish(Part a) { return a; }
};
template <class C, int order>
struct NormOf {
  using Part = double;
  static constexpr Part start() { return 0; }
  static constexpr Part take(Part a, C b) {
    const auto x = static_cast<double>(b);
    return a + (order == 1 ? (x < 0 ? -x : x) : x * x);
  }
  static constexpr Part join(Part a, Part b) { return a + b; }
  static constexpr Part finish(Part a) { return order == 1 ? a : libm::sqrt(a); }
};

// Does `a` replace `b`, which comes before it, as the extremum? The first NaN wins.
template <class C>
constexpr bool beats(C a, C b, bool largest) {
  if (is_nan(b)) return false;
  return is_nan(a) || (largest ? a > b : a < b);
}

}  // namespace symbind::folds
