#include "symbind/ops/matrix.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x"), y = Symbol::variable("y");
using Dims = std::vector<int64_t>;

Shape reshaped(const Shape& from, const Reshape& params) { return reshape(counted(from), params).shape(); }

TEST(Reshape, KnowsItsCodes) {
  EXPECT_EQ(reshaped({2, 3, 4}, {.shape = {4, 0, 2}}), (Shape{4, 3, 2}));
  EXPECT_EQ(reshaped({2, 3, 4}, {.shape = {-3, 0}}), (Shape{6, 4}));
  EXPECT_EQ(reshaped({2, 3, 4}, {.shape = {-4, 1, -1, -2}}), (Shape{1, 2, 3, 4}));
  EXPECT_EQ(reshaped({10, 5, 4}, {.shape = {-1, 0}, .reverse = true}), (Shape{50, 4}));
  EXPECT_EQ(reshaped({2, 3, 4}, {.target_shape = {2, 0}}), (Shape{2, 12}));
  EXPECT_EQ(reshaped({2, 3, 4}, {.target_shape = {5, 0, 6}, .keep_highest = true}), (Shape{2, 2, 6}));
}

TEST(Reshape, SaysWhatDoesNotFit) {
  EXPECT_TRUE(fails_with([] { infer_shape(reshape(x, {.shape = {4, 2}}, "r"), {{"x", {2, 3}}}); }, "r", "(2,3)"));
  EXPECT_TRUE(fails_with([] { reshape(x, {}, "r"); }, "shape"));
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(reshape(x, {.target_shape = {0, 0}}, "r"), {{"x", {2, 3}}});
      },
      "target_shape"));
}

TEST(Reshape, InfersBothWays) {
  const auto net = elemwise_add(reshape(x, {.shape = {2, 4}}), y);
  EXPECT_EQ(infer_shape(net, {{"x", {0, 4}}}).args[0], (Dims{2, 4}));
  EXPECT_EQ(infer_shape_partial(reshape(x, {.shape = {0, -1}}), {{"x", {2, 0, 3}}}).outputs[0], (Dims{2, 0}));
}

TEST(ReshapeLike, TakesSomeAxes) {
  const auto like = zeros({15, 2, 4});
  EXPECT_EQ(reshape_like(counted({30, 7}), like, {.lhs_begin = 0, .lhs_end = 1, .rhs_begin = 0, .rhs_end = 2}).shape(),
            (Shape{15, 2, 7}));
  EXPECT_TRUE(fails_with([&] { reshape_like(counted({7}), like); }, "(7,)", "(15,2,4)"));
}

// Element by element.
std::vector<double> plain_transpose(const NDArray& data, const Tuple& axes) {
  const auto strides = data.shape().strides();
  const auto values = data.to_vector<double>();
  Shape out = Shape::scalar();
  for (int64_t axis : axes) out.push_back(data.shape()[static_cast<int>(axis)]);
  std::vector<double> result;
  for (int64_t i = 0; i < out.size(); ++i) {
    int64_t rest = i, from = 0;
    for (int axis = out.rank() - 1; axis >= 0; --axis) {
      from += rest % out[axis] * strides[static_cast<size_t>(axes[static_cast<size_t>(axis)])];
      rest /= out[axis];
    }
    result.push_back(values[static_cast<size_t>(from)]);
  }
  return result;
}

TEST(Transpose, AgreesWithAPlainLoopForEveryOrder) {
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::uint8}) {
    const auto data = random_array({5, 34, 3, 70}, 1, 0, 100, dtype);
    Tuple axes{0, 1, 2, 3};
    do {
      ASSERT_EQ(transpose(data, {.axes = axes}).to_vector<double>(), plain_transpose(data, axes))
          << comma_separated(axes);
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
  const auto large = random_array({700, 500}, 2);
  EXPECT_EQ(transpose(large).to_vector<double>(), plain_transpose(large, {1, 0}));
  EXPECT_EQ(transpose(zeros({0, 3})).shape(), (Shape{3, 0}));
}

TEST(Transpose, InfersBothWaysAndNamesBadAxes) {
  EXPECT_EQ(infer_shape(elemwise_add(transpose(x), y), {{"y", {2, 4}}}).args[0], (Dims{4, 2}));
  EXPECT_TRUE(fails_with([] { infer_shape(transpose(x, {.axes = {0, 0}}, "t"), {{"x", {2, 3}}}); }, "t", "once"));
}

TEST(Cast, CutsOffFractions) {
  const auto values = array({1.9, -1.9, 300, 0});
  EXPECT_EQ(cast(values, {.dtype = DType::int32}).to_vector<int>(), (std::vector<int>{1, -1, 300, 0}));
  EXPECT_EQ(cast(values, {.dtype = DType::uint8}).to_vector<int>(), (std::vector<int>{1, 255, 44, 0}));
  EXPECT_EQ(cast(values, {.dtype = DType::boolean}).to_vector<int>(), (std::vector<int>{1, 1, 1, 0}));
}

TEST(Matrix, GradientsAgreeWithFiniteDifferences) {
  const auto data = random_array({2, 3, 4}, 1, -1, 1, DType::float64);
  for (const auto& f : {flatten(square(x)), reshape(square(x), {.shape = {-1}}), transpose(square(x)),
                        transpose(square(x), {.axes = {2, 0, 1}}), transpose(square(x), {.axes = {-1, 0, 1}}),
                        square(cast(x, {.dtype = DType::float64}))})
    EXPECT_TRUE(check_gradient(f, {{"x", data}}));
}

}  // namespace
}  // namespace symbind::testing
