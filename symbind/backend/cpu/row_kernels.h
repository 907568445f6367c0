// Softmax, norms and dot products in vectors, for float32 and the half types, which are converted in registers. The
// drivers (softmax_rows.cc, norm_rows.cc, batch_norm_rows.cc, l2_rows.cc, row_dots.cc) spread the work over threads;
// the kernels are compiled for several instruction sets and chosen at run time.
//
// Sums run in float over a few thousand numbers, in the lanes of a vector, and in double over these partial sums. A
// variance is computed about the mean.
#pragma once

#include <cstdint>

#include "symbind/backend/visit_types.h"
#include "symbind/core/dtype.h"

namespace symbind::cpu_backend {

// exp(x · factor) / sum of exp(x · factor), or its logarithm. y may be x, and a gradient any of its inputs.
struct SoftmaxSetting {
  float factor;
  bool logarithm;
};

template <class T>
struct SoftmaxKernels {
  // `rows` rows of `length` numbers, one after the other.
  void (*rows)(const T* x, T* y, int64_t rows, int64_t length, const SoftmaxSetting& setting);
  void (*rows_grad)(const T* dy, const T* y, T* dx, int64_t rows, int64_t length, const SoftmaxSetting& setting);
  // `columns` adjacent columns of `length` numbers that are `step` apart.
  void (*columns)(const T* x, T* y, int64_t columns, int64_t length, int64_t step, const SoftmaxSetting& setting);
  void (*columns_grad)(const T* dy, const T* y, T* dx, int64_t columns, int64_t length, int64_t step,
                       const SoftmaxSetting& setting);
};

// Rows and columns as for softmax; y may be x, and a gradient any of its inputs.
template <class T>
struct L2Kernels {
  void (*rows)(const T* x, T* y, int64_t rows, int64_t length, double eps);
  void (*rows_grad)(const T* dy, const T* x, T* dx, int64_t rows, int64_t length, double eps);
  void (*columns)(const T* x, T* y, int64_t columns, int64_t length, int64_t step, double eps);
  void (*columns_grad)(const T* dy, const T* x, T* dx, int64_t columns, int64_t length, int64_t step, double eps);
};

// y[vector · vector_step + row · row_step] = Σ vectors[vector · inner + k] · matrix[row · inner + k] (+ bias[row])
// inner is at least 16.
struct RowDots {
  int64_t vectors, rows, inner;
  int64_t vector_step, row_step;
};

template <class T>
struct DotKernels {
  // With rows [begin, end) of the matrix, and up to four vectors. bias may be null.
  void (*dots)(const RowDots& size, int64_t begin, int64_t end, const float* vectors, const T* matrix,
               const float* bias, float* y);
};

// Rows of `length` numbers, one after the other. With `channels` row r has the scale r % channels, without it (0)
// every column has one.
struct NormSize {
  int64_t length, channels;
  double eps;
};

// What a row contributes to the gradients of gamma and beta.
struct NormSums {
  double gamma, beta;
};

template <class T>
struct NormKernels {
  // Rows [begin, end). mean and deviation may be null.
  void (*forward)(const NormSize& size, int64_t begin, int64_t end, const T* x, const T* gamma, const T* beta, T* y,
                  T* mean, T* deviation);
  // With channels each row's sums go to sums[row].
  void (*backward)(const NormSize& size, int64_t begin, int64_t end, const T* dy, const T* x, const T* gamma, T* dx,
                   NormSums* sums);
  // Without channels the columns' sums over these rows go to by_gamma and by_beta. `partial` is scratch: 2 · length,
  // rounded up to whole vectors.
  void (*backward_columns)(const NormSize& size, int64_t begin, int64_t end, const T* dy, const T* x, const T* gamma,
                           T* dx, double* by_gamma, double* by_beta, float* partial);
};
inline constexpr int64_t widest_vector = 16;

// One channel of an array (outer, channels, inner).
struct Channel {
  int64_t outer, inner;
  int64_t step;  // from one image to the next
};
struct ChannelStatistics {
  double mean, variance;
};
// A number x of a channel becomes (x - mean) · scale + shift, with ReLU never less than zero.
struct ChannelScale {
  float mean, scale, shift;
  bool relu;
};
// dx = scale · (dy - of_mean - (x - mean) · of_deviation) + more
struct ChannelSlope {
  float of_mean, of_deviation;
};

template <class T>
struct ChannelKernels {
  ChannelStatistics (*measure)(const Channel& channel, const T* x);
  void (*normalise)(const Channel& channel, const ChannelScale& scale, const T* x, T* y);
  // The sums of dy · (x - mean) and of dy. With ReLU, dy counts only where the result was above zero.
  NormSums (*sum)(const Channel& channel, const ChannelScale& scale, const T* dy, const T* x);
  // `more` may be null.
  void (*spread)(const Channel& channel, const ChannelScale& scale, const ChannelSlope& slope, const T* dy, const T* x,
                 const T* more, T* dx);
};

// One instruction set's kernels for elements of one type.
template <class T>
struct RowKernels {
  SoftmaxKernels<T> softmax;
  NormKernels<T> norm;
  ChannelKernels<T> channel;
  L2Kernels<T> l2;
  DotKernels<T> dot;
};

// Null if the compiler does not support the instruction set.
template <class T>
const RowKernels<T>* avx512_row_kernels();
template <class T>
const RowKernels<T>* avx2_row_kernels();

// The best kernels for this processor; null: none.
template <class T>
const RowKernels<T>* row_kernels();

// Calls function(type_identity<T>) for the type of the elements, float32 or half.
template <class Function>
decltype(auto) visit_row_type(DType dtype, Function&& function) {
  return visit_types<float, float16, bfloat16>(dtype, function);
}
inline bool has_row_kernels(DType dtype) {
  return (dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16) && row_kernels<float>();
}

}  // namespace symbind::cpu_backend
