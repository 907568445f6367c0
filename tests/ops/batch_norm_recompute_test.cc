#include "symbind/ops/batch_norm_recompute.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/activation.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// What BatchNorm gives in training, and its operands with the statistics it left.
struct FirstTime {
  NDArray output;
  std::vector<NDArray> operands;  // of the second time
};

FirstTime first_time(const BatchNorm& params, const Shape& shape, DType dtype) {
  BatchNorm shown = params;
  shown.output_mean_var = true;
  auto executor =
      simple_bind(batch_norm(Symbol::variable("x"), shown, "bn"), cpu(), {{"x", shape}}, {.type_dict = {{"x", dtype}}});
  std::vector<NDArray> operands;
  for (size_t i = 0; i < 3; ++i) {
    NDArray operand = executor->arg_arrays()[i];
    random_array(operand.shape(), i + 1, i == 1 ? 0.5 : -1, 1.5, operand.dtype()).copyto(operand);
    operands.push_back(operand);
  }
  const std::vector<NDArray> outputs = executor->forward(true);
  operands.push_back(outputs[1].copy());
  operands.push_back(outputs[2].copy());
  return {outputs[0].copy(), operands};
}

TEST(BatchNormRecompute, GivesWhatBatchNormGave) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16}) {
    for (const bool fix_gamma : {true, false}) {
      for (const auto& [shape, axis] : {std::pair<Shape, int64_t>{{3, 5, 4, 6}, 1}, {{3, 4, 5}, -1}, {{7, 5}, 1}}) {
        SCOPED_TRACE(join(shape, " ", dtype, fix_gamma ? " with gamma one" : ""));
        const FirstTime before = first_time({.fix_gamma = fix_gamma, .axis = axis}, shape, dtype);
        const NDArray recomputed =
            invoke(batch_norm_recompute, before.operands, {.fix_gamma = fix_gamma, .axis = axis})[0];
        EXPECT_TRUE(all_close(recomputed, before.output, tolerance_of(dtype)));
      }
    }
  }
}

TEST(BatchNormRecompute, FusesRelu) {
  const FirstTime before = first_time({.fix_gamma = false}, {3, 5, 4, 6}, DType::float32);
  const NDArray alone = invoke(batch_norm_recompute, before.operands, {.fix_gamma = false})[0];
  const NDArray both = invoke(batch_norm_recompute, before.operands, {.fix_gamma = false, .relu = true})[0];
  std::vector<float> expected = alone.to_vector<float>();
  for (float& value : expected) value = value < 0 ? 0 : value;
  EXPECT_EQ(both.to_vector<float>(), expected);
}

// The sum of a norm and an array, or of two norms, with ReLU.
TEST(BatchNormRecompute, EndsAResidualUnit) {
  for (const bool fix_gamma : {true, false})
    for (const auto& [shape, axis] : {std::pair<Shape, int64_t>{{3, 5, 4, 6}, 1}, {{3, 4, 5}, -1}}) {
      const FirstTime first = first_time({.fix_gamma = fix_gamma, .axis = axis}, shape, DType::float32);
      const std::vector<NDArray>& in = first.operands;  // data, gamma, beta, mean, var
      const NDArray other = random_array(shape, 7, -1, 1);
      std::vector<NDArray> second{other};
      for (size_t i = 1; i < in.size(); ++i) second.push_back(random_array(in[i].shape(), 8 + i, 0.5, 1.5));
      const BatchNormRecompute norm{.fix_gamma = fix_gamma, .axis = axis};
      const BatchNormAddReluRecompute params{.fix_gamma = fix_gamma, .axis = axis};
      const auto relu_of_sum = [&](const NDArray& added) {
        return invoke(activation, {invoke(batch_norm_recompute, in, norm)[0] + added}, {.act_type = "relu"})[0];
      };
      EXPECT_TRUE(
          all_close(invoke(batch_norm_add_relu_recompute, {in[0], in[1], in[2], other, in[3], in[4]}, params)[0],
                    relu_of_sum(other)));
      BatchNormAddReluRecompute pair = params;
      pair.pair = true;
      EXPECT_TRUE(all_close(
          invoke(batch_norm_add_relu_recompute,
                 {in[0], in[1], in[2], second[0], second[1], second[2], in[3], in[4], second[3], second[4]}, pair)[0],
          relu_of_sum(symbind::invoke(batch_norm_recompute, second, norm)[0])));
    }
}

TEST(BatchNormRecompute, IsAnOutputOfTheGradientWithRelu) {
  for (const bool with_sum : {false, true}) {
    const FirstTime before = first_time({.fix_gamma = false}, {3, 5, 4, 6}, DType::float32);
    std::vector<NDArray> inputs{random_array({3, 5, 4, 6}, 21, -1, 1)};  // out_grad
    inputs.insert(inputs.end(), before.operands.begin(), before.operands.end());
    if (with_sum) inputs.push_back(random_array({3, 5, 4, 6}, 22, -1, 1));
    const BatchNormReluGrad grad{{.fix_gamma = false}, with_sum};
    const auto expected = symbind::invoke(batch_norm_relu_grad, inputs, grad, {.is_train = true});
    const auto actual = symbind::invoke(batch_norm_relu_grad_output, inputs, {grad}, {.is_train = true});
    ASSERT_EQ(actual.size(), 4u);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(all_close(actual[i], expected[i])) << i;
    EXPECT_TRUE(all_close(
        actual[3], symbind::invoke(batch_norm_recompute, before.operands, {.fix_gamma = false, .relu = true})[0]));
  }
}

TEST(BatchNormRecompute, LeavesInfinitiesAndNaNAsTheyAre) {
  const float infinity = std::numeric_limits<float>::infinity();
  const NDArray one = array(std::vector<float>{1}, {1}), zero = array(std::vector<float>{0}, {1});
  const NDArray data = array(std::vector<float>{-infinity, infinity, std::nanf("")}, {3, 1});
  const auto values = invoke(batch_norm_recompute, {data, one, zero, zero, one}, {})[0].to_vector<float>();
  EXPECT_EQ(values[0], -infinity);
  EXPECT_EQ(values[1], infinity);
  EXPECT_TRUE(std::isnan(values[2]));
}

}  // namespace
}  // namespace symbind::testing
