// Shared by the row kernels, as templates over an instruction set's vectors. Included by one source for each
// instruction set, which compiles everything here for it: so nothing but such templates, and nothing from the standard
// library, may be defined here.
//
// V is a struct with
//   width, Float, Int                vectors of `width` floats and int32s
//   registers                        how many of them the processor has
//   load(from), store(to, value)     from and to any of the element types
//   load(from, count), store(to, value, count)   the first `count` elements; the others are zero
//   first(count, value, otherwise)   `value` in the first `count` lanes
//   same(number), root(value), greater(a, b), largest(value), sum(value)
#pragma once

#include <type_traits>

#include "symbind/backend/cpu/row_kernels.h"

namespace symbind::cpu_backend::vectors {

// Vectors of a sum in float: few enough terms per lane that no precision is lost.
inline constexpr int64_t chunk_vectors = 256;

// A whole vector of a row, and the remainder at its end.
template <class V>
struct Whole {
  using Float = typename V::Float;
  template <class T>
  [[gnu::always_inline]] static Float load(const T* from) {
    return V::load(from);
  }
  template <class T>
  [[gnu::always_inline]] static void store(T* to, Float value) {
    V::store(to, value);
  }
  [[gnu::always_inline]] static Float or_else(Float value, float) { return value; }
};
template <class V>
struct Part {
  using Float = typename V::Float;
  int64_t count;
  template <class T>
  [[gnu::always_inline]] Float load(const T* from) const {
    return V::load(from, count);
  }
  template <class T>
  [[gnu::always_inline]] void store(T* to, Float value) const {
    V::store(to, value, count);
  }
  [[gnu::always_inline]] Float or_else(Float value, float otherwise) const {
    return V::first(count, value, V::same(otherwise));
  }
};

// One number of any element type. (The types' own conversions must not be used in this file.)
template <class V, class T>
[[gnu::always_inline]] inline float number_at(const T* from) {
  return V::load(from, 1)[0];
}

// Calls visit(index of the first element, Whole or Part) for the vectors of elements [begin, end).
template <class V, class Visit>
[[gnu::always_inline]] inline void each_vector(int64_t begin, int64_t end, const Visit& visit) {
  int64_t k = begin;
  for (; k + V::width <= end; k += V::width) visit(k, Whole<V>{});
  if (k < end) visit(k, Part<V>{end - k});
}

// Two sums over the same elements.
struct Sums {
  double first, second;
};

// add(index, Whole or Part, first, second) adds the terms of a vector to two vectors of sums; missing lanes must
// contribute nothing.
template <class V, class Add>
[[gnu::always_inline]] inline Sums sums_of(int64_t count, const Add& add) {
  using Float = typename V::Float;
  constexpr int64_t chunk = chunk_vectors * V::width;
  Sums total{0, 0};
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t end = begin + chunk < count ? begin + chunk : count;
    Float first[4] = {}, second[4] = {};
    int64_t k = begin;
    for (; k + 4 * V::width <= end; k += 4 * V::width)
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) add(k + i * V::width, Whole<V>{}, first[i], second[i]);
    each_vector<V>(
        k, end, [&](int64_t at, auto some) __attribute__((always_inline)) { add(at, some, first[0], second[0]); });
    total.first += static_cast<double>(V::sum((first[0] + first[1]) + (first[2] + first[3])));
    total.second += static_cast<double>(V::sum((second[0] + second[1]) + (second[2] + second[3])));
  }
  return total;
}

// Σ term(index, Whole or Part); a term must be zero in missing lanes.
template <class V, class Term>
[[gnu::always_inline]] inline double sum_of(int64_t count, const Term& term) {
  using Float = typename V::Float;
  return sums_of<V>(
             count, [&](int64_t k, auto some, Float& sum, Float&)
                        __attribute__((always_inline)) { sum += term(k, some); })
      .first;
}

// A row of at most `count` vectors in registers; `last` elements are in the last one, and zeros after them.
template <class V, int count>
struct ShortRow {
  typename V::Float at[count];

  template <class T>
  [[gnu::always_inline]] static ShortRow load(const T* from, int64_t last) {
    ShortRow row;
#pragma GCC unroll 4
    for (int i = 0; i < count - 1; ++i) row.at[i] = V::load(from + i * V::width);
    row.at[count - 1] = V::load(from + (count - 1) * V::width, last);
    return row;
  }
  template <class T>
  [[gnu::always_inline]] void store(T* to, int64_t last) const {
#pragma GCC unroll 4
    for (int i = 0; i < count - 1; ++i) V::store(to + i * V::width, at[i]);
    V::store(to + (count - 1) * V::width, at[count - 1], last);
  }
  // Fills the lanes after the last element.
  [[gnu::always_inline]] void end_with(int64_t last, float otherwise) {
    at[count - 1] = V::first(last, at[count - 1], V::same(otherwise));
  }
  [[gnu::always_inline]] float sum() const {
    typename V::Float sums = at[0];
#pragma GCC unroll 4
    for (int i = 1; i < count; ++i) sums += at[i];
    return V::sum(sums);
  }
  [[gnu::always_inline]] float largest() const {
    typename V::Float most = at[0];
#pragma GCC unroll 4
    for (int i = 1; i < count; ++i) most = V::greater(most, at[i]);
    return V::largest(most);
  }
};

// map(i) of each of the vectors of a short row.
template <class V, int count, class Map>
[[gnu::always_inline]] inline ShortRow<V, count> short_row(const Map& map) {
  ShortRow<V, count> row;
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) row.at[i] = map(i);
  return row;
}

inline constexpr int64_t most_short_vectors = 4;

// Calls short_rows(integral constant of the vectors) for rows that fit in registers, else long_rows().
template <class V, class Short, class Long>
[[gnu::always_inline]] inline void by_length(int64_t length, const Short& short_rows, const Long& long_rows) {
  const int64_t count = (length + V::width - 1) / V::width;
  if (count == 1) return short_rows(std::integral_constant<int, 1>{});
  if (count == 2) return short_rows(std::integral_constant<int, 2>{});
  if (count == 3) return short_rows(std::integral_constant<int, 3>{});
  if (count == 4) return short_rows(std::integral_constant<int, 4>{});
  long_rows();
}

// Calls visit(first column, integral constant of vectors, Whole or Part) for all columns: a few vectors of adjacent
// ones at a time, so that whole cache lines are read.
template <class V, class Visit>
[[gnu::always_inline]] inline void each_columns(int64_t columns, const Visit& visit) {
  int64_t j = 0;
  for (; j + 4 * V::width <= columns; j += 4 * V::width) visit(j, std::integral_constant<int, 4>{}, Whole<V>{});
  for (; j + V::width <= columns; j += V::width) visit(j, std::integral_constant<int, 1>{}, Whole<V>{});
  if (j < columns) visit(j, std::integral_constant<int, 1>{}, Part<V>{columns - j});
}

// totals[i] = Σ term(k, i) over k < length; chunks are summed separately, which is more accurate.
template <class V, int count, class Term>
[[gnu::always_inline]] inline void sum_columns(int64_t length, typename V::Float (&totals)[count], const Term& term) {
  constexpr int64_t chunk = 64;
  for (auto& total : totals) total = typename V::Float{};
  for (int64_t begin = 0; begin < length; begin += chunk) {
    const int64_t end = begin + chunk < length ? begin + chunk : length;
    typename V::Float sums[count] = {};
    for (int64_t k = begin; k < end; ++k) {
#pragma GCC unroll 4
      for (int i = 0; i < count; ++i) sums[i] += term(k, i);
    }
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) totals[i] += sums[i];
  }
}

// e^x for x up to 88, as in vector_math.h except that subnormal results are zero, as everywhere in a run.
template <class V>
[[gnu::always_inline]] inline typename V::Float exp_of(typename V::Float x) {
  using Float = typename V::Float;
  using Bits [[gnu::vector_size(sizeof(Float))]] = uint32_t;  // below -87.3 the exponent wraps around
  constexpr float shifter = 12582912.0f;  // 1.5 · 2^23: adding it rounds to a whole number, kept in the lowest bits
  const Float shifted = x * 1.44269504f + shifter;
  const Float n = shifted - shifter;
  const Float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Float p = 1.39339094e-3f * r + 8.36335290e-3f;
  p = p * r + 4.16664626e-2f;
  p = p * r + 1.66665759e-1f;
  p = p * r + 5.00000001e-1f;
  p = p * (r * r) + r;
  const Float power = reinterpret_cast<Float>((reinterpret_cast<Bits>(shifted) << 23) + (127u << 23));
  const Float result = p * power + power;
  return x < -87.3365f ? Float{} : result;  // NaN passes
}

// log(x) of a normal number, as in vector_math.h.
template <class V>
[[gnu::always_inline]] inline typename V::Float log_of(typename V::Float x) {
  using Float = typename V::Float;
  using Int = typename V::Int;
  constexpr int root = 0x3f3504f3;  // √½
  const Int from_root = reinterpret_cast<Int>(x) - root;
  const Float n = __builtin_convertvector(from_root >> 23, Float);
  const Float f = reinterpret_cast<Float>((from_root & 0x007fffff) + root) - 1.0f;
  const Float s = f / (2.0f + f);
  const Float z = s * s;
  Float series = 0.222222222f * z + 0.285714286f;
  series = series * z + 0.4f;
  series = series * z + 0.666666667f;
  series = series * z;
  const Float half_square = 0.5f * f * f;
  const Float tail = s * (half_square + series) - n * 2.12194440e-4f;
  const Float result = (tail - half_square) + f + n * 0.693359375f;
  return x < __builtin_inff() ? result : x;  // infinity, and NaN
}

}  // namespace symbind::cpu_backend::vectors
