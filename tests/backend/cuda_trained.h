// Networks of convolutions and BatchNorms, trained for a few steps in two ways that are compared.
#pragma once

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind::testing {

// Its moving statistics are those of the last batch.
inline Symbol norm(const Symbol& data, const std::string& name) {
  return batch_norm(data, {.momentum = 0, .fix_gamma = false}, name);
}

// Without tuning the first kernel that suits is used, whether it is the fastest or not, and the same in every network.
inline Convolution untuned(int64_t filters, int64_t kernel = 1, int64_t stride = 1) {
  Convolution p;
  p.kernel = {kernel, kernel};
  p.pad = {kernel / 2, kernel / 2};
  p.stride = {stride, stride};
  p.num_filter = filters;
  p.no_bias = true;
  p.cudnn_tune = "off";
  return p;
}

struct Trained {
  ExecutorPtr executor;
  std::string plan;
};
// With a shift, data and the weight of conv1 are close to it.
inline Trained trained(const Symbol& symbol, const Shape& data, Context context, DType dtype,
                       const CompileOptions& options, double shift = 0) {
  auto executor = simple_bind(symbol, context, {{"data", data}}, {.type_dict = {{"data", dtype}}, .options = options});
  set_values(*executor, 0);
  if (shift != 0)
    for (auto [name, array] : executor->arg_dict())
      if (name == "data" || name == "conv1_weight")
        random_array(array.shape(), 5, shift, shift + 0.0625, array.dtype(), context).copyto(array);
  for (int run = 0; run < 3; ++run) {  // the third is a captured one
    executor->forward(true);
    executor->backward(out_grads_for(*executor));
  }
  return {executor, executor->debug_str()};
}

inline double length(const NDArray& array) {
  double sum = 0;
  for (const double value : array.as_copy_in(cpu()).to_vector<double>()) sum += value * value;
  return std::sqrt(sum);
}

// Differences relative to the largest element of each array, and for gradients to the norm: an element that two engines
// round differently may be on two sides of a ReLU, which changes the gradients of a few elements by any amount.
inline void expect_close(const Executor& actual, const Executor& expected, double most) {
  const auto compare = [&](const std::string& name, const NDArray& a, const NDArray& b) {
    EXPECT_TRUE(all_close(a.as_copy_in(cpu()).astype(DType::float32), b.as_copy_in(cpu()).astype(DType::float32),
                          {most, 0, most}))
        << name;
  };
  compare("output", actual.outputs()[0], expected.outputs()[0]);
  for (const auto& [name, state] : expected.aux_dict()) compare(name, actual.aux_dict().at(name), state);
  for (const auto& [name, gradient] : expected.grad_dict()) {
    const NDArray wanted = gradient.astype(DType::float64), other = actual.grad_dict().at(name).astype(DType::float64);
    EXPECT_LE(length(other.as_copy_in(cpu()) - wanted.as_copy_in(cpu())), 5 * most * length(wanted)) << name;
  }
}

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace symbind::testing
