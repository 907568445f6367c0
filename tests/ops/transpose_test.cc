#include "symbind/ops/transpose.h"

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
  EXPECT_EQ(infer_shape(elemwise_add(transpose(x), y), {{"y", {2, 4}}}).args[0], (std::vector<int64_t>{4, 2}));
  EXPECT_TRUE(fails_with([] { infer_shape(transpose(x, {.axes = {0, 0}}, "t"), {{"x", {2, 3}}}); }, "t", "once"));
}

TEST(Transpose, GradientsAgreeWithFiniteDifferences) {
  const auto data = random_array({2, 3, 4}, 1, -1, 1, DType::float64);
  for (const auto& f : {transpose(square(x)), transpose(square(x), {.axes = {2, 0, 1}}),
                        transpose(square(x), {.axes = {-1, 0, 1}}), swap_axis(square(x), {.dim1 = 0, .dim2 = 2})})
    EXPECT_TRUE(check_gradient(f, {{"x", data}}));
}

}  // namespace
}  // namespace symbind::testing
