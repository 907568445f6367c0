// L2Normalization along rows and columns, as templates over an instruction set's vectors (see row_vectors.h):
// x / length with length = √(eps + Σ x²), and its gradient dy / length - x · Σ dy·x / length³.
#pragma once

#include "symbind/backend/cpu/row_vectors.h"

namespace symbind::cpu_backend::vectors {

template <class V, class T>
void l2_rows(const T* x, T* y, int64_t rows, int64_t length, double eps) {
  for (int64_t at = 0; at < rows * length; at += length) {
    const double squares = sum_of<V>(
        length, [=](int64_t k, auto some) __attribute__((always_inline)) {
          const typename V::Float value = some.load(x + at + k);
          return value * value;
        });
    const float scale = static_cast<float>(1 / __builtin_sqrt(squares + eps));
    each_vector<V>(
        at, at + length, [=](int64_t i, auto some) __attribute__((always_inline)) {
          some.store(y + i, some.load(x + i) * scale);
        });
  }
}

template <class V, class T>
void l2_rows_grad(const T* dy, const T* x, T* dx, int64_t rows, int64_t length, double eps) {
  using Float = typename V::Float;
  for (int64_t at = 0; at < rows * length; at += length) {
    const Sums sums = sums_of<V>(
        length, [=](int64_t k, auto some, Float& squares, Float& products) __attribute__((always_inline)) {
          const Float value = some.load(x + at + k);
          squares += value * value;
          products += value * some.load(dy + at + k);
        });
    const double scale = 1 / __builtin_sqrt(sums.first + eps);
    const float own = static_cast<float>(scale), other = static_cast<float>(sums.second * scale * scale * scale);
    each_vector<V>(
        at, at + length, [=](int64_t i, auto some) __attribute__((always_inline)) {
          some.store(dx + i, some.load(dy + i) * own - some.load(x + i) * other);
        });
  }
}

template <class V, class T>
void l2_columns(const T* x, T* y, int64_t columns, int64_t length, int64_t step, double eps) {
  each_columns<V>(
      columns, [=](int64_t j, auto count, auto some) __attribute__((always_inline)) {
        constexpr int vectors = decltype(count)::value;
        typename V::Float scales[vectors];
        sum_columns<V>(
            length, scales, [=](int64_t k, int i) __attribute__((always_inline)) {
              const typename V::Float value = some.load(x + j + k * step + i * V::width);
              return value * value;
            });
        for (int i = 0; i < vectors; ++i) scales[i] = 1 / V::root(scales[i] + static_cast<float>(eps));
        for (int64_t k = 0; k < length; ++k)
#pragma GCC unroll 4
          for (int i = 0; i < vectors; ++i) {
            const int64_t at = j + k * step + i * V::width;
            some.store(y + at, some.load(x + at) * scales[i]);
          }
      });
}

template <class V, class T>
void l2_columns_grad(const T* dy, const T* x, T* dx, int64_t columns, int64_t length, int64_t step, double eps) {
  using Float = typename V::Float;
  each_columns<V>(
      columns, [=](int64_t j, auto count, auto some) __attribute__((always_inline)) {
        constexpr int vectors = decltype(count)::value;
        Float own[vectors], other[vectors];
        const auto at = [=](int64_t k, int i) __attribute__((always_inline)) { return j + k * step + i * V::width; };
        sum_columns<V>(
            length, own, [=](int64_t k, int i) __attribute__((always_inline)) {
              const Float value = some.load(x + at(k, i));
              return value * value;
            });
        sum_columns<V>(
            length, other, [=](int64_t k, int i) __attribute__((always_inline)) {
              return some.load(x + at(k, i)) * some.load(dy + at(k, i));
            });
        for (int i = 0; i < vectors; ++i) {
          own[i] = 1 / V::root(own[i] + static_cast<float>(eps));
          other[i] = other[i] * own[i] * own[i] * own[i];
        }
        for (int64_t k = 0; k < length; ++k)
#pragma GCC unroll 4
          for (int i = 0; i < vectors; ++i)
            some.store(dx + at(k, i), some.load(dy + at(k, i)) * own[i] - some.load(x + at(k, i)) * other[i]);
      });
}

template <class V, class T>
constexpr L2Kernels<T> l2_kernels_of() {
  return {l2_rows<V, T>, l2_rows_grad<V, T>, l2_columns<V, T>, l2_columns_grad<V, T>};
}

}  // namespace symbind::cpu_backend::vectors
