// Convolutions of channels-last arrays by the kernels of ours, and their results by definition.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "symbind/ops/conv.h"

#include "tests/support/arrays.h"

namespace symbind::testing {

struct Convolved {
  int64_t batch, rows, columns, channels, filters;
  Tuple kernel, stride, pad;
  Tuple dilate = {1, 1};

  Shape data() const { return {batch, rows, columns, channels}; }
  Shape weight() const { return {filters, kernel[0], kernel[1], channels}; }
  Shape output() const {
    const auto extent = [this](int64_t in, size_t axis) {
      return (in + 2 * pad[axis] - dilate[axis] * (kernel[axis] - 1) - 1) / stride[axis] + 1;
    };
    return {batch, extent(rows, 0), extent(columns, 1), filters};
  }
};
inline std::ostream& operator<<(std::ostream& out, const Convolved& c) {
  return out << "data " << c.data() << ", weight " << c.weight() << ", stride " << Shape(c.stride) << ", pad "
             << Shape(c.pad) << ", dilate " << Shape(c.dilate);
}

inline Convolution params_of(const Convolved& c) {
  Convolution p;
  p.kernel = c.kernel;
  p.stride = c.stride;
  p.pad = c.pad;
  p.dilate = c.dilate;
  p.num_filter = c.filters;
  p.no_bias = true;
  p.cudnn_tune = "off";  // a kernel of ours is used, whether it is the fastest or not
  p.layout = "NHWC";
  return p;
}

inline NDArray whole_numbers(const Shape& shape, uint64_t seed, DType dtype) {
  return random_array(shape, seed, -1, 1, DType::int32).astype(dtype);
}

// Calls visit(index of the output's first filter, index in a filter of the weight, index in the data) for every pair of
// an output's position and an element of the kernel that is inside the image.
template <class Visit>
void each_product(const Convolved& c, Visit visit) {
  const Shape output = c.output();
  size_t position = 0;
  for (int64_t image = 0; image < c.batch; ++image)
    for (int64_t row = 0; row < output[1]; ++row)
      for (int64_t column = 0; column < output[2]; ++column, ++position)
        for (int64_t i = 0; i < c.kernel[0]; ++i)
          for (int64_t j = 0; j < c.kernel[1]; ++j) {
            const int64_t y = row * c.stride[0] - c.pad[0] + i * c.dilate[0];
            const int64_t x = column * c.stride[1] - c.pad[1] + j * c.dilate[1];
            if (y < 0 || y >= c.rows || x < 0 || x >= c.columns) continue;
            for (int64_t channel = 0; channel < c.channels; ++channel)
              visit(position * static_cast<size_t>(c.filters),
                    static_cast<size_t>((i * c.kernel[1] + j) * c.channels + channel),
                    static_cast<size_t>(((image * c.rows + y) * c.columns + x) * c.channels + channel));
          }
}

inline std::vector<double> expected_output(const Convolved& c, const NDArray& data, const NDArray& weight) {
  const auto x = data.to_vector<double>(), w = weight.to_vector<double>();
  const auto filters = static_cast<size_t>(c.filters), of_filter = w.size() / filters;
  std::vector<double> by_tap(w.size()), output(static_cast<size_t>(c.output().size()));
  for (size_t i = 0; i < w.size(); ++i) by_tap[i % of_filter * filters + i / of_filter] = w[i];
  each_product(c, [&](size_t first, size_t tap, size_t at) {
    for (size_t f = 0; f < filters; ++f) output[first + f] += x[at] * by_tap[tap * filters + f];
  });
  return output;
}

// The gradient of the weight by definition.
inline std::vector<double> expected_gradient(const Convolved& c, const NDArray& gradient, const NDArray& data) {
  const auto dy = gradient.to_vector<double>(), x = data.to_vector<double>();
  const auto filters = static_cast<size_t>(c.filters);
  std::vector<double> weight(static_cast<size_t>(c.weight().size()));
  const size_t of_filter = weight.size() / filters;
  each_product(c, [&](size_t first, size_t tap, size_t at) {
    for (size_t f = 0; f < filters; ++f) weight[f * of_filter + tap] += dy[first + f] * x[at];
  });
  return weight;
}

inline std::vector<NDArray> on_gpu(std::vector<NDArray> arrays) {
  for (NDArray& array : arrays) array = array.as_copy_in(gpu(0));
  return arrays;
}

}  // namespace symbind::testing
