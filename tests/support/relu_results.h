// Arrays for the gradients of ReLU and of the BatchNorm before it.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "symbind/core/ndarray.h"

#include "tests/support/arrays.h"

namespace symbind::testing {

// What ReLU may return: positive numbers, infinity, zeros of both signs and NaN.
inline NDArray relu_results(const Shape& shape, DType dtype, unsigned seed = 1) {
  const double special[] = {0, -0.0, NAN, INFINITY, 0.5, 3};
  std::mt19937 random(seed);
  std::vector<double> values(static_cast<size_t>(shape.size()));
  for (double& value : values) value = special[random() % std::size(special)];
  return array(values, shape, cpu(), dtype);
}

// The arrays of a BatchNorm with a sum and ReLU.
struct NormArrays {
  NDArray data, sum, gamma, beta, moving_mean, moving_var, channel_sum, channel_square_sum, out_grad, more_grad;

  explicit NormArrays(const Shape& shape, DType dtype, int axis = 1, Context context = cpu()) {
    const Shape channels{shape[axis < 0 ? axis + shape.rank() : axis]};
    const DType type = dtype == DType::float64 ? DType::float64 : DType::float32;
    const auto make = [&](const Shape& of, uint64_t seed, double low, double high, DType in) {
      return random_array(of, seed, low, high, in).as_copy_in(context);
    };
    data = make(shape, 1, -2, 2, dtype);
    sum = make(shape, 2, -1, 1, dtype);
    gamma = make(channels, 3, 0.5, 2, type);
    beta = make(channels, 4, -1, 1, type);
    moving_mean = make(channels, 5, -1, 1, type);
    moving_var = make(channels, 6, 0.5, 2, type);
    channel_sum = make(channels, 7, -1, 1, type);
    channel_square_sum = make(channels, 8, 100, 200, type);
    out_grad = make(shape, 9, -1, 1, dtype);
    more_grad = make(shape, 10, -1, 1, dtype);
  }

  std::vector<NDArray> forward_inputs(bool given_sums) const {
    std::vector<NDArray> inputs{data, gamma, beta};
    if (given_sums) inputs.insert(inputs.end(), {channel_sum, channel_square_sum});
    // The states are updated.
    inputs.insert(inputs.end(), {sum, moving_mean.copy(), moving_var.copy()});
    return inputs;
  }
  // Of the outputs of forward and either the first of them or the signs.
  std::vector<NDArray> backward_inputs(const std::vector<NDArray>& outputs, const NDArray& results,
                                       bool two_grads) const {
    std::vector<NDArray> inputs{out_grad, results, data, gamma, outputs[1], outputs[2]};
    if (two_grads) inputs.push_back(more_grad);
    return inputs;
  }
};

}  // namespace symbind::testing
