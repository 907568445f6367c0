#include "symbind/ops/pad.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

TEST(Pad, ShowsAnElementInBordersOnBothSides) {
  const NDArray row = counted({1, 3}), one = counted({1, 1});
  const auto padded = [](const NDArray& data, const char* mode, const Tuple& width) {
    return pad(data, {.mode = mode, .pad_width = width, .constant_value = 9}).to_vector<int>();
  };
  EXPECT_EQ(padded(row, "reflect", {0, 0, 2, 2}), (std::vector<int>{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(padded(row, "edge", {0, 1, 2, 1}), (std::vector<int>{1, 1, 1, 2, 3, 3, 1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(padded(row, "constant", {1, 0, 0, 2}), (std::vector<int>{9, 9, 9, 9, 9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(padded(one, "edge", {1, 0, 1, 1}), (std::vector<int>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(padded(zeros({1, 0}), "constant", {0, 0, 1, 1}), (std::vector<int>{9, 9}));
}

TEST(Pad, GradientsAgreeWithFiniteDifferences) {
  const NDArray data = random_array({3, 4}, 1, -1, 1, DType::float64), one = data.slice(0, 1);
  for (const char* mode : {"constant", "edge", "reflect"})
    EXPECT_TRUE(check_gradient(pad(x, {.mode = mode, .pad_width = {1, 2, 3, 1}}), {{"x", data}})) << mode;
  EXPECT_TRUE(check_gradient(pad(x, {.mode = "edge", .pad_width = {2, 3, 0, 1}}), {{"x", one}}));
}

TEST(Pad, RefusesExtentsThatCannotBeCounted) {
  const auto with = [](int64_t before, int64_t after) {
    return [=] { pad(ones({2, 3}), {.mode = "constant", .pad_width = {0, 0, before, after}}); };
  };
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(fails_with(with(most, most), "[Pad]", "too long"));
  EXPECT_TRUE(fails_with(with(most - 2, 0), "[Pad]", "too long"));
  EXPECT_TRUE(fails_with(with(int64_t{1} << 50, 0), "bytes")) << "more memory than there is";
  const auto net = pad(x, {.mode = "edge", .pad_width = {0, 0, int64_t{1} << 50, 0}});
  EXPECT_TRUE(fails_with([&] { simple_bind(net, cpu(), {{"x", {2, 3}}})->forward(true); }, "bytes"));
}

}  // namespace
}  // namespace symbind::testing
