#include "symbind/ops/concat.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x"), y = Symbol::variable("y"), z = Symbol::variable("z");
using Dims = std::vector<int64_t>;

TEST(Concat, ConcatenatesAlongAnyAxis) {
  const auto a = counted({2, 2}), b = counted({2, 1});
  EXPECT_EQ(invoke(concat, {a, b})[0].to_vector<int>(), (std::vector<int>{1, 2, 1, 3, 4, 2}));
  EXPECT_EQ(invoke(concat, {a, a}, {.dim = 0})[0].shape(), (Shape{4, 2}));
  EXPECT_EQ(invoke(concat, {a, b}, {.dim = -1})[0].shape(), (Shape{2, 3}));
}

TEST(Concat, InfersPartsFromTheWhole) {
  const auto net = concat({x, y});
  EXPECT_EQ(infer_shape_partial(net, {{"x", {2, 4}}}).args[1], (Dims{2, 0}));
  EXPECT_EQ(infer_shape(net, {{"x", {2, 4}}, {"y", {0, 3}}}).outputs[0], (Dims{2, 7}));
  EXPECT_EQ(infer_shape(elemwise_add(net, z), {{"x", {2, 4}}, {"z", {2, 7}}}).args[1], (Dims{2, 3}));
  EXPECT_TRUE(fails_with([&] { infer_shape(concat({x, y}, {.dim = 2}, "c"), {{"x", {2, 4}}}); }, "c", "2"));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {2, 4}}, {"y", {3, 4}}}); }, "(3,4)"));
}

TEST(Concat, GradientsAgreeWithFiniteDifferences) {
  const auto one = random_array({2, 3, 2}, 1, -1, 1, DType::float64),
             other = random_array({2, 1, 2}, 2, -1, 1, DType::float64);
  EXPECT_TRUE(check_gradient(concat({x, y, x}), {{"x", one}, {"y", other}}));
}

}  // namespace
}  // namespace symbind::testing
