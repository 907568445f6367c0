// LayerNorm, GroupNorm and InstanceNorm, as templates over an instruction set's vectors (see row_vectors.h).
//
// With x' = (x - mean) / deviation and g = dy · gamma: dx = (g - mean(g) - x'·mean(g·x')) / deviation; gamma's gradient
// is the sum of dy·x', beta's that of dy.
#pragma once

#include "symbind/backend/cpu/row_vectors.h"

namespace symbind::cpu_backend::vectors {

struct Statistics {
  double mean, deviation;
};

// ---- Statistics -----------------------------------------------------------------------------------------------------

// The variance of cache-sized parts of a row is computed about their own means; the statistics of two parts are then
// combined.
template <class V, class T>
[[gnu::always_inline]] inline Statistics statistics_of_long(const T* x, int64_t length, double eps) {
  using Float = typename V::Float;
  constexpr int64_t chunk = chunk_vectors * V::width;
  double mean = 0, squares = 0, count = 0;
  for (int64_t begin = 0; begin < length; begin += chunk) {
    const int64_t some_count = begin + chunk < length ? chunk : length - begin;
    const T* const from = x + begin;
    const auto more = static_cast<double>(some_count), all = count + more;
    const float own = static_cast<float>(
        sum_of<V>(
            some_count, [=](int64_t k, auto some) __attribute__((always_inline)) { return some.load(from + k); }) /
        more);
    const Sums away = sums_of<V>(
        some_count, [=](int64_t k, auto some, Float& squares_of, Float& rest) __attribute__((always_inline)) {
          const Float value = some.or_else(some.load(from + k) - own, 0);
          squares_of += value * value;
          rest += value;
        });
    const double shift = away.second / more;  // the rounding error of the mean
    const double between = static_cast<double>(own) + shift - mean;
    mean += between * (more / all);
    squares += (away.first - shift * shift * more) + between * between * (count * more / all);
    count = all;
  }
  const double variance = squares > 0 || squares != squares ? squares / count : 0;
  return {mean, __builtin_sqrt(variance + eps)};
}

// Numbers minus their mean, with more precision than a float.
template <class V>
struct Middle {
  float mean, rest;
  explicit Middle(double value)
      : mean(static_cast<float>(value)), rest(static_cast<float>(value - static_cast<double>(mean))) {}
  [[gnu::always_inline]] typename V::Float from(typename V::Float value) const { return (value - mean) - rest; }
};

// The row then holds x minus its mean, followed by zeros. The rounding error of the mean is subtracted too: with a
// large mean it would affect the gradient of gamma, which is a sum over many rows.
template <class V, int count>
[[gnu::always_inline]] inline Statistics centre(ShortRow<V, count>& row, int64_t length, double eps) {
  const int64_t last = length - (count - 1) * V::width;
  const float each = 1 / static_cast<float>(length);
  const float mean = row.sum() * each;
  row = short_row<V, count>([&](int i) __attribute__((always_inline)) { return row.at[i] - mean; });
  row.end_with(last, 0);
  const float rest = row.sum() * each;
  row = short_row<V, count>([&](int i) __attribute__((always_inline)) { return row.at[i] - rest; });
  row.end_with(last, 0);
  const ShortRow<V, count> squares =
      short_row<V, count>([&](int i) __attribute__((always_inline)) { return row.at[i] * row.at[i]; });
  return {static_cast<double>(mean) + static_cast<double>(rest),
          static_cast<double>(__builtin_sqrtf(squares.sum() * each + static_cast<float>(eps)))};
}

template <class V, class T>
[[gnu::always_inline]] inline void show(const Statistics& statistics, int64_t row, T* mean, T* deviation) {
  if (mean) V::store(mean + row, V::same(static_cast<float>(statistics.mean)), 1);
  if (deviation) V::store(deviation + row, V::same(static_cast<float>(statistics.deviation)), 1);
}

// ---- Forward --------------------------------------------------------------------------------------------------------

template <class V, int count, class T>
void norm_short_rows(const NormSize& size, int64_t begin, int64_t end, const T* x, const T* gamma, const T* beta, T* y,
                     T* mean, T* deviation) {
  using Row = ShortRow<V, count>;
  const int64_t last = size.length - (count - 1) * V::width;
  Row scales{}, shifts{};
  if (size.channels == 0) scales = Row::load(gamma, last), shifts = Row::load(beta, last);
  for (int64_t row = begin; row < end; ++row) {
    Row values = Row::load(x + row * size.length, last);
    const Statistics statistics = centre(values, size.length, size.eps);
    const float narrow = 1 / static_cast<float>(statistics.deviation);
    if (size.channels == 0) {
      short_row<V, count>([&](int i) __attribute__((always_inline)) {
        return values.at[i] * narrow * scales.at[i] + shifts.at[i];
      }).store(y + row * size.length, last);
    } else {
      const float scale = number_at<V>(gamma + row % size.channels) * narrow;
      const float shift = number_at<V>(beta + row % size.channels);
      short_row<V, count>([&](int i) __attribute__((always_inline)) {
        return values.at[i] * scale + shift;
      }).store(y + row * size.length, last);
    }
    show<V>(statistics, row, mean, deviation);
  }
}

template <class V, class T>
void norm_long_rows(const NormSize& size, int64_t begin, int64_t end, const T* x, const T* gamma, const T* beta, T* y,
                    T* mean, T* deviation) {
  for (int64_t row = begin; row < end; ++row) {
    const T* const from = x + row * size.length;
    T* const to = y + row * size.length;
    const Statistics statistics = statistics_of_long<V>(from, size.length, size.eps);
    const float middle = static_cast<float>(statistics.mean), narrow = static_cast<float>(1 / statistics.deviation);
    if (size.channels == 0) {
      each_vector<V>(
          0, size.length, [=](int64_t k, auto some) __attribute__((always_inline)) {
            some.store(to + k, (some.load(from + k) - middle) * narrow * some.load(gamma + k) + some.load(beta + k));
          });
    } else {
      const float scale = number_at<V>(gamma + row % size.channels) * narrow;
      const float shift = number_at<V>(beta + row % size.channels);
      each_vector<V>(
          0, size.length, [=](int64_t k, auto some) __attribute__((always_inline)) {
            some.store(to + k, (some.load(from + k) - middle) * scale + shift);
          });
    }
    show<V>(statistics, row, mean, deviation);
  }
}

template <class V, class T>
void norm_forward(const NormSize& size, int64_t begin, int64_t end, const T* x, const T* gamma, const T* beta, T* y,
                  T* mean, T* deviation) {
  by_length<V>(
      size.length,
      [=](auto count) {
        norm_short_rows<V, decltype(count)::value>(size, begin, end, x, gamma, beta, y, mean, deviation);
      },
      [=] { norm_long_rows<V>(size, begin, end, x, gamma, beta, y, mean, deviation); });
}

// ---- Backward with a scale for each row -----------------------------------------------------------------------------

template <class V, int count, class T>
void norm_short_rows_grad(const NormSize& size, int64_t begin, int64_t end, const T* dy, const T* x, const T* gamma,
                          T* dx, NormSums* sums) {
  using Row = ShortRow<V, count>;
  const int64_t last = size.length - (count - 1) * V::width;
  const float each = 1 / static_cast<float>(size.length);
  for (int64_t row = begin; row < end; ++row) {
    Row values = Row::load(x + row * size.length, last);
    const Row grads = Row::load(dy + row * size.length, last);
    const float narrow = 1 / static_cast<float>(centre(values, size.length, size.eps).deviation);
    const Row terms =
        short_row<V, count>([&](int i) __attribute__((always_inline)) { return grads.at[i] * values.at[i]; });
    const float sum = grads.sum(), product = terms.sum() * narrow;
    sums[row] = {static_cast<double>(product), static_cast<double>(sum)};
    const float scale = number_at<V>(gamma + row % size.channels) * narrow;
    const float less = sum * each, slope = product * each * narrow;
    short_row<V, count>([&](int i) __attribute__((always_inline)) {
      return (grads.at[i] - less - values.at[i] * slope) * scale;
    }).store(dx + row * size.length, last);
  }
}

template <class V, class T>
void norm_long_rows_grad(const NormSize& size, int64_t begin, int64_t end, const T* dy, const T* x, const T* gamma,
                         T* dx, NormSums* sums) {
  using Float = typename V::Float;
  const double each = 1 / static_cast<double>(size.length);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * size.length;
    const Statistics statistics = statistics_of_long<V>(x + at, size.length, size.eps);
    const Middle<V> middle(statistics.mean);
    const float narrow = static_cast<float>(1 / statistics.deviation);
    const Sums of_dy = sums_of<V>(
        size.length, [=](int64_t k, auto some, Float& sum_to, Float& product_to) __attribute__((always_inline)) {
          const Float grad = some.load(dy + at + k);
          sum_to += grad;
          product_to += grad * middle.from(some.load(x + at + k));
        });
    const double sum = of_dy.first, product = of_dy.second * static_cast<double>(narrow);
    sums[row] = {product, sum};
    const float scale = number_at<V>(gamma + row % size.channels) * narrow;
    const float less = static_cast<float>(sum * each), slope = static_cast<float>(product * each) * narrow;
    each_vector<V>(
        at, at + size.length, [=](int64_t i, auto some) __attribute__((always_inline)) {
          some.store(dx + i, (some.load(dy + i) - less - middle.from(some.load(x + i)) * slope) * scale);
        });
  }
}

template <class V, class T>
void norm_backward(const NormSize& size, int64_t begin, int64_t end, const T* dy, const T* x, const T* gamma, T* dx,
                   NormSums* sums) {
  by_length<V>(
      size.length,
      [=](auto count) { norm_short_rows_grad<V, decltype(count)::value>(size, begin, end, dy, x, gamma, dx, sums); },
      [=] { norm_long_rows_grad<V>(size, begin, end, dy, x, gamma, dx, sums); });
}

// ---- Backward with a scale for each column --------------------------------------------------------------------------
// The columns are summed in float over a few rows, while these are in registers or in the cache.

inline constexpr int64_t chunk_rows = 64;

template <class V, int count, class T>
void norm_short_columns_grad(const NormSize& size, int64_t begin, int64_t end, const T* dy, const T* x, const T* gamma,
                             T* dx, double* by_gamma, double* by_beta, float* partial) {
  using Row = ShortRow<V, count>;
  const int64_t last = size.length - (count - 1) * V::width;
  const float each = 1 / static_cast<float>(size.length);
  const Row scales = Row::load(gamma, last);
  for (int64_t first = begin; first < end; first += chunk_rows) {
    Row products{}, sums{};
    const int64_t chunk_end = first + chunk_rows < end ? first + chunk_rows : end;
    for (int64_t row = first; row < chunk_end; ++row) {
      Row values = Row::load(x + row * size.length, last);
      Row grads = Row::load(dy + row * size.length, last);
      const float narrow = 1 / static_cast<float>(centre(values, size.length, size.eps).deviation);
      values = short_row<V, count>([&](int i) __attribute__((always_inline)) { return values.at[i] * narrow; });
      products = short_row<V, count>([&](int i) __attribute__((always_inline)) {
        return products.at[i] + grads.at[i] * values.at[i];
      });
      sums = short_row<V, count>([&](int i) __attribute__((always_inline)) { return sums.at[i] + grads.at[i]; });
      grads = short_row<V, count>([&](int i) __attribute__((always_inline)) { return grads.at[i] * scales.at[i]; });
      const Row terms =
          short_row<V, count>([&](int i) __attribute__((always_inline)) { return grads.at[i] * values.at[i]; });
      const float less = grads.sum() * each, slope = terms.sum() * each;
      short_row<V, count>([&](int i) __attribute__((always_inline)) {
        return (grads.at[i] - less - values.at[i] * slope) * narrow;
      }).store(dx + row * size.length, last);
    }
    products.store(partial, last);
    for (int64_t k = 0; k < size.length; ++k) by_gamma[k] += static_cast<double>(partial[k]);
    sums.store(partial, last);
    for (int64_t k = 0; k < size.length; ++k) by_beta[k] += static_cast<double>(partial[k]);
  }
}

// One row's dx; adds what it contributes to the columns.
template <class V, class T>
[[gnu::always_inline]] inline void norm_long_column_grad(const NormSize& size, const T* dy, const T* x, const T* gamma,
                                                         T* dx, float* products, float* sums) {
  using Float = typename V::Float;
  const double each = 1 / static_cast<double>(size.length);
  const Statistics statistics = statistics_of_long<V>(x, size.length, size.eps);
  const Middle<V> middle(statistics.mean);
  const float narrow = static_cast<float>(1 / statistics.deviation);
  const Sums of_grads = sums_of<V>(
      size.length, [=](int64_t k, auto some, Float& sum_to, Float& product_to) __attribute__((always_inline)) {
        const Float grad = some.load(dy + k) * some.load(gamma + k);
        sum_to += grad;
        product_to += grad * middle.from(some.load(x + k));
      });
  const float less = static_cast<float>(of_grads.first * each);
  const float slope = static_cast<float>(of_grads.second * each) * narrow;
  each_vector<V>(
      0, size.length, [=](int64_t k, auto some) __attribute__((always_inline)) {
        const Float grad = some.load(dy + k), normal = middle.from(some.load(x + k)) * narrow;
        V::store(products + k, V::load(products + k) + some.or_else(grad * normal, 0));
        V::store(sums + k, V::load(sums + k) + grad);
        some.store(dx + k, (grad * some.load(gamma + k) - less - normal * slope) * narrow);
      });
}

template <class V, class T>
void norm_long_columns_grad(const NormSize& size, int64_t begin, int64_t end, const T* dy, const T* x, const T* gamma,
                            T* dx, double* by_gamma, double* by_beta, float* partial) {
  const int64_t padded = (size.length + V::width - 1) / V::width * V::width;
  float *const products = partial, *const sums = partial + padded;
  for (int64_t first = begin; first < end; first += chunk_rows) {
    for (int64_t k = 0; k < padded; ++k) products[k] = sums[k] = 0;
    for (int64_t row = first; row < end && row < first + chunk_rows; ++row)
      norm_long_column_grad<V>(size, dy + row * size.length, x + row * size.length, gamma, dx + row * size.length,
                               products, sums);
    for (int64_t k = 0; k < size.length; ++k) {
      by_gamma[k] += static_cast<double>(products[k]);
      by_beta[k] += static_cast<double>(sums[k]);
    }
  }
}

template <class V, class T>
void norm_backward_columns(const NormSize& size, int64_t begin, int64_t end, const T* dy, const T* x, const T* gamma,
                           T* dx, double* by_gamma, double* by_beta, float* partial) {
  for (int64_t k = 0; k < size.length; ++k) by_gamma[k] = by_beta[k] = 0;
  by_length<V>(
      size.length,
      [=](auto count) {
        norm_short_columns_grad<V, decltype(count)::value>(size, begin, end, dy, x, gamma, dx, by_gamma, by_beta,
                                                           partial);
      },
      [=] { norm_long_columns_grad<V>(size, begin, end, dy, x, gamma, dx, by_gamma, by_beta, partial); });
}

template <class V, class T>
constexpr NormKernels<T> norm_kernels_of() {
  return {norm_forward<V, T>, norm_backward<V, T>, norm_backward_columns<V, T>};
}

}  // namespace symbind::cpu_backend::vectors
