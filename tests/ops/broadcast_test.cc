#include "symbind/ops/broadcast.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x"), y = Symbol::variable("y");

// The sum, element by element.
std::vector<double> plain_sum(const NDArray& a, const NDArray& b) {
  const Shape out = broadcast(a.shape(), b.shape(), "test");
  const auto left = a.to_vector<double>(), right = b.to_vector<double>();
  const auto offset = [&](const Shape& shape, int64_t at) {
    int64_t result = 0;
    const auto strides = shape.strides();
    for (int axis = out.rank() - 1; axis >= 0; --axis) {
      const int own = axis - (out.rank() - shape.rank());
      if (own >= 0 && shape[own] != 1) result += at % out[axis] * strides[static_cast<size_t>(own)];
      at /= out[axis];
    }
    return static_cast<size_t>(result);
  };
  std::vector<double> sums;
  for (int64_t i = 0; i < out.size(); ++i) sums.push_back(left[offset(a.shape(), i)] + right[offset(b.shape(), i)]);
  return sums;
}

TEST(Broadcast, AgreesWithAPlainLoopForEveryKindOfShapes) {
  const std::pair<Shape, Shape> cases[] = {{{3, 4}, {3, 4}},
                                           {{3, 4}, {1, 4}},
                                           {{3, 4}, {3, 1}},
                                           {{3, 1}, {1, 4}},
                                           {{1}, {5}},
                                           {{1}, {1}},
                                           {{2, 3, 4}, {4}},
                                           {{2, 3, 4}, {3, 1}},
                                           {{2, 1, 4, 1}, {1, 3, 1, 5}},
                                           {{1, 7}, {300, 1}},
                                           {{2, 3, 1, 5}, {2, 3, 4, 5}},
                                           {{1, 50000}, {3, 50000}},
                                           {{40000, 1}, {40000, 3}}};
  for (const auto& [a, b] : cases)
    for (DType dtype : {DType::float32, DType::float16, DType::int8, DType::int64}) {
      const auto lhs = random_array(a, 1, -9, 9, dtype), rhs = random_array(b, 2, -9, 9, dtype);
      EXPECT_TRUE(all_close(broadcast_add(lhs, rhs).to_vector<double>(), plain_sum(lhs, rhs), tolerance_of(dtype)))
          << a << " and " << b << " of " << dtype;
      EXPECT_TRUE(all_close(broadcast_add(rhs, lhs).to_vector<double>(), plain_sum(rhs, lhs), tolerance_of(dtype)));
    }
}

TEST(Broadcast, GradientsSumOverTheBroadcastAxes) {
  const std::pair<Shape, Shape> cases[] = {
      {{2, 3}, {2, 3}}, {{2, 3}, {1, 3}}, {{2, 1}, {1, 3}}, {{2, 3, 2}, {3, 1}}, {{1}, {2, 2}}};
  for (const auto& [a, b] : cases) {
    const auto lhs = random_array(a, 1, 0.5, 2, DType::float64), rhs = random_array(b, 2, 0.5, 2, DType::float64);
    for (const auto& f :
         {broadcast_add(x, y), broadcast_sub(x, y), broadcast_mul(x, y), broadcast_div(x, y), broadcast_power(x, y)})
      EXPECT_TRUE(check_gradient(f, {{"x", lhs}, {"y", rhs}})) << a << " and " << b;
  }
}

TEST(Broadcast, ResultsMayReplaceAnOperandOfTheirShape) {
  auto a = random_array({200, 300}, 1);
  const auto b = random_array({1, 300}, 2);
  const auto expected = broadcast_mul(a, b);
  invoke(broadcast_mul, {a, b}, {}, {.out = {a}});
  EXPECT_TRUE(same_bits(a, expected));
}

TEST(Broadcast, InfersWhatBothOperandsDetermine) {
  const auto partial = infer_shape_partial(broadcast_add(x, y), {{"x", {2, 3}}, {"y", {0, 3}}});
  EXPECT_EQ(partial.outputs[0], (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(infer_shape_partial(broadcast_add(x, y), {{"x", {2, 3}}}).args[1], std::vector<int64_t>{});
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(broadcast_add(x, y, {}, "sum"), {{"x", {2, 3}}, {"y", {4, 3}}});
      },
      "sum", "(2,3)", "(4,3)"));
}

TEST(Broadcast, TakesArraysWithoutElements) {
  EXPECT_EQ(broadcast_add(zeros({0, 3}), ones({1, 3})).shape(), (Shape{0, 3}));
}

}  // namespace
}  // namespace symbind::testing
