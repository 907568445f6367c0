#include "symbind/ops/pad.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/slice.h"

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

TEST(Pad, CutsOffElementsWhereTheWidthIsNegative) {
  // What is cut off is what padding without negative numbers would give there.
  const NDArray data = counted({3, 4});
  for (const char* mode : {"constant", "edge", "reflect"})
    for (const Tuple& width : {Tuple{-1, 0, 0, -2}, Tuple{-2, 2, 3, -4}, Tuple{1, -3, -5, 3}}) {
      Tuple grown = width;
      for (int64_t& each : grown) each = std::max<int64_t>(each, 0);
      const auto cut_begin = [&](size_t axis) { return grown[2 * axis] - width[2 * axis]; };
      const auto end = [&](size_t axis) {
        return cut_begin(axis) + data.shape()[static_cast<int>(axis)] + width[2 * axis] + width[2 * axis + 1];
      };
      const NDArray whole = pad(data, {.mode = mode, .pad_width = grown, .constant_value = 9});
      const NDArray expected = slice(whole, {.begin = {cut_begin(0), cut_begin(1)}, .end = {end(0), end(1)}});
      EXPECT_TRUE(same_bits(pad(data, {.mode = mode, .pad_width = width, .constant_value = 9}), expected))
          << mode << " " << print(width);
    }
}

TEST(Pad, RefusesToCutOffMoreThanThereIs) {
  const auto cut = [](const char* mode, const Tuple& width) {
    return [=] { pad(ones({2, 3}), {.mode = mode, .pad_width = width}); };
  };
  EXPECT_TRUE(fails_with(cut("constant", {0, 0, -2, -2}), "[Pad]", "axis 1 is too short", "(0, 0, -2, -2)"));
  EXPECT_TRUE(fails_with(cut("reflect", {-1, 2, 0, 0}), "[Pad]", "axis 0 is too short for a border of 2"));
  const auto least = std::numeric_limits<int64_t>::min();
  EXPECT_TRUE(fails_with(cut("constant", {0, 0, least, std::numeric_limits<int64_t>::max()}), "pad_width"));
}

TEST(Pad, GradientsAgreeWithFiniteDifferences) {
  const NDArray data = random_array({3, 4}, 1, -1, 1, DType::float64), one = data.slice(0, 1);
  for (const char* mode : {"constant", "edge", "reflect"})
    for (const Tuple& width : {Tuple{1, 2, 3, 1}, Tuple{-1, 2, 1, -3}, Tuple{2, -4, -5, 3}})
      EXPECT_TRUE(check_gradient(pad(x, {.mode = mode, .pad_width = width}), {{"x", data}})) << mode << print(width);
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
