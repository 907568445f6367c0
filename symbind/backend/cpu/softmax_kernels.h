// Softmax along rows and columns, as templates over an instruction set's vectors (see row_vectors.h).
#pragma once

#include "symbind/backend/cpu/row_vectors.h"
#include "symbind/backend/vector_math.h"

namespace symbind::cpu_backend::vectors {

inline constexpr float lowest = -__builtin_inff();

// Exponentials of half types are stored in float until their sum is known: up to this many; longer rows compute them
// twice.
inline constexpr int64_t most_powers = 8192;

// ---- Rows -----------------------------------------------------------------------------------------------------------

template <class V, int count, bool logarithm, class T>
void softmax_short_rows(const T* x, T* y, int64_t rows, int64_t length, float factor) {
  using Row = ShortRow<V, count>;
  const int64_t last = length - (count - 1) * V::width;
  for (int64_t row = 0; row < rows; ++row, x += length, y += length) {
    const Row loaded = Row::load(x, last);
    Row values = short_row<V, count>([&](int i) __attribute__((always_inline)) { return loaded.at[i] * factor; });
    values.end_with(last, lowest);
    const float most = values.largest();
    values = short_row<V, count>([&](int i) __attribute__((always_inline)) { return values.at[i] - most; });
    Row powers = short_row<V, count>([&](int i) __attribute__((always_inline)) { return exp_of<V>(values.at[i]); });
    powers.end_with(last, 0);
    const float sum = powers.sum();
    if constexpr (logarithm) {
      const float shift = vector_math::log(sum);
      short_row<V, count>([&](int i) __attribute__((always_inline)) { return values.at[i] - shift; }).store(y, last);
    } else {
      const float scale = 1 / sum;
      short_row<V, count>([&](int i) __attribute__((always_inline)) { return powers.at[i] * scale; }).store(y, last);
    }
  }
}

template <class V, class T>
[[gnu::always_inline]] inline float largest_in_row(const T* x, int64_t length, float factor) {
  typename V::Float most[4] = {V::same(lowest), V::same(lowest), V::same(lowest), V::same(lowest)};
  int64_t k = 0;
  for (; k + 4 * V::width <= length; k += 4 * V::width)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) most[i] = V::greater(most[i], V::load(x + k + i * V::width) * factor);
  each_vector<V>(
      k, length, [&](int64_t at, auto some) __attribute__((always_inline)) {
        most[0] = V::greater(most[0], some.or_else(some.load(x + at) * factor, lowest));
      });
  return V::largest(V::greater(V::greater(most[0], most[1]), V::greater(most[2], most[3])));
}

template <class V, bool logarithm, class T>
void softmax_long_row(const T* x, T* y, int64_t length, float factor) {
  const float most = largest_in_row<V>(x, length, factor);
  const auto power = [=](int64_t k, auto some) __attribute__((always_inline)) {
    return exp_of<V>(some.load(x + k) * factor - most);
  };
  if constexpr (logarithm) {
    const double sum = sum_of<V>(
        length, [=](int64_t k, auto some) __attribute__((always_inline)) { return some.or_else(power(k, some), 0); });
    const float shift = vector_math::log(static_cast<float>(sum));
    each_vector<V>(
        0, length, [=](int64_t k, auto some) __attribute__((always_inline)) {
          some.store(y + k, (some.load(x + k) * factor - most) - shift);
        });
    return;
  }
  float narrow[sizeof(T) == sizeof(float) ? 1 : most_powers];
  float* powers = narrow;
  if constexpr (sizeof(T) == sizeof(float)) powers = y;
  const bool kept = sizeof(T) == sizeof(float) || length <= most_powers;
  const double sum = sum_of<V>(
      length, [=](int64_t k, auto some) __attribute__((always_inline)) {
        const typename V::Float value = some.or_else(power(k, some), 0);
        if (kept) some.store(powers + k, value);
        return value;
      });
  const float scale = static_cast<float>(1 / sum);
  each_vector<V>(
      0, length, [=](int64_t k, auto some) __attribute__((always_inline)) {
        some.store(y + k, (kept ? some.load(powers + k) : power(k, some)) * scale);
      });
}

template <class V, bool logarithm, class T>
void softmax_rows_of(const T* x, T* y, int64_t rows, int64_t length, float factor) {
  by_length<V>(
      length, [=](auto count) { softmax_short_rows<V, decltype(count)::value, logarithm>(x, y, rows, length, factor); },
      [=] {
        for (int64_t row = 0; row < rows; ++row)
          softmax_long_row<V, logarithm>(x + row * length, y + row * length, length, factor);
      });
}
template <class V, class T>
void softmax_rows(const T* x, T* y, int64_t rows, int64_t length, const SoftmaxSetting& setting) {
  setting.logarithm ? softmax_rows_of<V, true>(x, y, rows, length, setting.factor)
                    : softmax_rows_of<V, false>(x, y, rows, length, setting.factor);
}

// y·(dy - sum of dy·y), and for the logarithm dy - exp(y)·sum of dy.
template <class V, bool logarithm>
[[gnu::always_inline]] inline typename V::Float softmax_slope(typename V::Float dy, typename V::Float y,
                                                              typename V::Float total, float factor) {
  if constexpr (logarithm)
    return factor * (dy - exp_of<V>(y) * total);
  else
    return factor * (y * (dy - total));
}

template <class V, int count, bool logarithm, class T>
void softmax_short_rows_grad(const T* dy, const T* y, T* dx, int64_t rows, int64_t length, float factor) {
  using Row = ShortRow<V, count>;
  const int64_t last = length - (count - 1) * V::width;
  for (int64_t row = 0; row < rows; ++row, dy += length, y += length, dx += length) {
    const Row grads = Row::load(dy, last), values = Row::load(y, last);
    const Row terms = short_row<V, count>([&](int i) __attribute__((always_inline)) {
      return logarithm ? grads.at[i] : grads.at[i] * values.at[i];
    });
    const typename V::Float total = V::same(terms.sum());
    short_row<V, count>([&](int i) __attribute__((always_inline)) {
      return softmax_slope<V, logarithm>(grads.at[i], values.at[i], total, factor);
    }).store(dx, last);
  }
}

template <class V, bool logarithm, class T>
void softmax_rows_grad_of(const T* dy, const T* y, T* dx, int64_t rows, int64_t length, float factor) {
  by_length<V>(
      length,
      [=](auto count) {
        softmax_short_rows_grad<V, decltype(count)::value, logarithm>(dy, y, dx, rows, length, factor);
      },
      [=] {
        for (int64_t at = 0; at < rows * length; at += length) {
          const double sum = sum_of<V>(
              length, [=](int64_t k, auto some) __attribute__((always_inline)) {
                const typename V::Float grad = some.load(dy + at + k);
                return logarithm ? grad : grad * some.load(y + at + k);
              });
          const typename V::Float total = V::same(static_cast<float>(sum));
          each_vector<V>(
              at, at + length, [=](int64_t i, auto some) __attribute__((always_inline)) {
                some.store(dx + i, softmax_slope<V, logarithm>(some.load(dy + i), some.load(y + i), total, factor));
              });
        }
      });
}
template <class V, class T>
void softmax_rows_grad(const T* dy, const T* y, T* dx, int64_t rows, int64_t length, const SoftmaxSetting& setting) {
  setting.logarithm ? softmax_rows_grad_of<V, true>(dy, y, dx, rows, length, setting.factor)
                    : softmax_rows_grad_of<V, false>(dy, y, dx, rows, length, setting.factor);
}

// ---- Columns --------------------------------------------------------------------------------------------------------
template <class V, int count, bool logarithm, class Some, class T>
void softmax_columns_of(const T* x, T* y, int64_t length, int64_t step, float factor, Some some) {
  using Float = typename V::Float;
  Float most[count], sums[count];
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) most[i] = some.load(x + i * V::width) * factor;
  for (int64_t k = 1; k < length; ++k)
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) most[i] = V::greater(most[i], some.load(x + k * step + i * V::width) * factor);
  const auto above = [&](int64_t k, int i) __attribute__((always_inline)) {
    return some.load(x + k * step + i * V::width) * factor - most[i];
  };
  if constexpr (logarithm) {
    sum_columns<V>(
        length, sums, [&](int64_t k, int i) __attribute__((always_inline)) { return exp_of<V>(above(k, i)); });
    for (int i = 0; i < count; ++i) sums[i] = log_of<V>(sums[i]);
    for (int64_t k = 0; k < length; ++k)
#pragma GCC unroll 4
      for (int i = 0; i < count; ++i) some.store(y + k * step + i * V::width, above(k, i) - sums[i]);
  } else {
    constexpr bool in_result = sizeof(T) == sizeof(float);
    float narrow[in_result ? 1 : most_powers];
    float* powers = narrow;
    if constexpr (in_result) powers = y;
    const int64_t powers_step = in_result ? step : count * V::width;
    const bool kept = in_result || length * powers_step <= most_powers;
    const auto power_at = [=](int64_t k, int i) __attribute__((always_inline)) {
      return powers + k * powers_step + i * V::width;
    };
    sum_columns<V>(
        length, sums, [&](int64_t k, int i) __attribute__((always_inline)) {
          const Float power = exp_of<V>(above(k, i));
          if (kept) some.store(power_at(k, i), power);
          return power;
        });
    for (int i = 0; i < count; ++i) sums[i] = 1 / sums[i];
    for (int64_t k = 0; k < length; ++k)
#pragma GCC unroll 4
      for (int i = 0; i < count; ++i) {
        const Float power = kept ? some.load(power_at(k, i)) : exp_of<V>(above(k, i));
        some.store(y + k * step + i * V::width, power * sums[i]);
      }
  }
}
template <class V, class T>
void softmax_columns(const T* x, T* y, int64_t columns, int64_t length, int64_t step, const SoftmaxSetting& setting) {
  each_columns<V>(
      columns, [=](int64_t j, auto count, auto some) __attribute__((always_inline)) {
        setting.logarithm
            ? softmax_columns_of<V, decltype(count)::value, true>(x + j, y + j, length, step, setting.factor, some)
            : softmax_columns_of<V, decltype(count)::value, false>(x + j, y + j, length, step, setting.factor, some);
      });
}

template <class V, int count, bool logarithm, class Some, class T>
void softmax_columns_grad_of(const T* dy, const T* y, T* dx, int64_t length, int64_t step, float factor, Some some) {
  typename V::Float totals[count];
  sum_columns<V>(
      length, totals, [&](int64_t k, int i) __attribute__((always_inline)) {
        const int64_t at = k * step + i * V::width;
        const typename V::Float grad = some.load(dy + at);
        return logarithm ? grad : grad * some.load(y + at);
      });
  for (int64_t k = 0; k < length; ++k)
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      const int64_t at = k * step + i * V::width;
      some.store(dx + at, softmax_slope<V, logarithm>(some.load(dy + at), some.load(y + at), totals[i], factor));
    }
}
template <class V, class T>
void softmax_columns_grad(const T* dy, const T* y, T* dx, int64_t columns, int64_t length, int64_t step,
                          const SoftmaxSetting& setting) {
  each_columns<V>(
      columns, [=](int64_t j, auto count, auto some) __attribute__((always_inline)) {
        constexpr int vectors = decltype(count)::value;
        setting.logarithm
            ? softmax_columns_grad_of<V, vectors, true>(dy + j, y + j, dx + j, length, step, setting.factor, some)
            : softmax_columns_grad_of<V, vectors, false>(dy + j, y + j, dx + j, length, step, setting.factor, some);
      });
}

template <class V, class T>
constexpr SoftmaxKernels<T> softmax_kernels_of() {
  return {softmax_rows<V, T>, softmax_rows_grad<V, T>, softmax_columns<V, T>, softmax_columns_grad<V, T>};
}

}  // namespace symbind::cpu_backend::vectors
