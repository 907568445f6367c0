#include "symbind/ops/slice.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x"), y = Symbol::variable("y");
constexpr std::nullopt_t none = std::nullopt;

TEST(Slice, TakesRegularParts) {
  const auto data = counted({3, 4});
  EXPECT_EQ(slice(data, {.begin = {1}, .end = {3}}).to_vector<int>(), (std::vector<int>{5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(slice(data, {.begin = {none, 1}, .end = {none, 3}}).to_vector<int>(),
            (std::vector<int>{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(slice(data, {.begin = {none, none}, .end = {none, none}, .step = {-2, -3}}).to_vector<int>(),
            (std::vector<int>{12, 9, 4, 1}));
  EXPECT_EQ(slice(data, {.begin = {-1, 0}, .end = {10, 4}, .step = {1, 2}}).to_vector<int>(),
            (std::vector<int>{9, 11}));
}

TEST(Slice, StopsAtTheEndsOfAnAxis) {
  const auto data = counted({5});
  const auto part = [&](std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step = 1) {
    return slice(data, {.begin = {begin}, .end = {end}, .step = {step}}).to_vector<int>();
  };
  EXPECT_EQ(part(-6, 3), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(part(4, 7), (std::vector<int>{5}));
  EXPECT_EQ(part(3, -6, -1), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(part(7, none, -2), (std::vector<int>{5, 3, 1}));
}

TEST(Slice, IsNeverEmpty) {
  const auto with = [](OptionalTuple begin, OptionalTuple end, OptionalTuple step = {}) {
    return [=] { infer_shape(slice(x, {.begin = begin, .end = end, .step = step}, "part"), {{"x", {4, 5}}}); };
  };
  EXPECT_TRUE(fails_with(with({3, 0}, {3, 4}), "part", "axis 0"));
  EXPECT_TRUE(fails_with(with({4, 0}, {5, 4}), "part", "axis 0"));
  EXPECT_TRUE(fails_with(with({0, 0}, {4}), "equally long"));
  EXPECT_TRUE(fails_with(with({0}, {4}, {0}), "step"));
}

TEST(SliceAssign, PutsPartsIn) {
  const auto data = counted({2, 3});
  EXPECT_EQ(
      slice_assign(data, array(std::vector<int>{8, 9}, {2, 1}), {.begin = {0, 1}, .end = {2, 2}}).to_vector<int>(),
      (std::vector<int>{1, 8, 3, 4, 9, 6}));
  EXPECT_EQ(slice_assign_scalar(data, {.scalar = 7, .begin = {1}, .end = {2}}).to_vector<int>(),
            (std::vector<int>{1, 2, 3, 7, 7, 7}));
  EXPECT_EQ(slice_assign_scalar(data, {.scalar = 7, .begin = {1}, .end = {1}}).to_vector<int>(), data.to_vector<int>());
  EXPECT_EQ(data.to_vector<int>(), (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

TEST(Slice, GradientsAgreeWithFiniteDifferences) {
  const auto data = random_array({4, 5}, 1, -1, 1, DType::float64);
  EXPECT_TRUE(check_gradient(slice(x, {.begin = {1, none}, .end = {3, none}, .step = {none, -2}}), {{"x", data}}));
  EXPECT_TRUE(check_gradient(slice_assign(x, y, {.begin = {0, 1}, .end = {2, 4}}),
                             {{"x", data}, {"y", random_array({2, 3}, 2, -1, 1, DType::float64)}}));
  EXPECT_TRUE(check_gradient(slice_assign_scalar(x, {.scalar = 2, .begin = {1}, .end = {2}}), {{"x", data}}));
}

}  // namespace
}  // namespace symbind::testing
