#include "symbind/ops/reshape.h"

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

TEST(Reshape, GradientsAgreeWithFiniteDifferences) {
  const auto data = random_array({2, 3, 4}, 1, -1, 1, DType::float64);
  for (const auto& f : {flatten(square(x)), reshape(square(x), {.shape = {-1}})})
    EXPECT_TRUE(check_gradient(f, {{"x", data}}));
}

}  // namespace
}  // namespace symbind::testing
