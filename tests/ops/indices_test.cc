#include "symbind/ops/indices.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(ShapeArray, IsTheShapeOfAnyArray) {
  EXPECT_EQ(invoke(shape_array, {zeros({2, 0, 3})})[0].to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 3}));
  EXPECT_EQ(invoke(size_array, {zeros({2, 2, 3})})[0].to_vector<int64_t>(), (std::vector<int64_t>{12}));
}

TEST(UnravelIndex, TakesNumbersThatAreNone) {
  const NDArray indices = array(std::vector<double>{std::numeric_limits<double>::quiet_NaN(), 1e30}, {2});
  EXPECT_EQ(invoke(unravel_index, {indices}, {.shape = {3, 4}})[0].shape(), Shape({2, 2}));
  EXPECT_EQ(invoke(ravel_multi_index, {array(std::vector<double>{1e30, 1e30}, {2, 1})}, {.shape = {3, 4}})[0].shape(),
            Shape({1}));
}

TEST(RavelMultiIndex, MultipliesByAnyExtents) {
  const NDArray indices = array(std::vector<int>{1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(invoke(ravel_multi_index, {indices}, {.shape = {7, 0}})[0].to_vector<int>(), (std::vector<int>{3, 4}));
  EXPECT_EQ(invoke(ravel_multi_index, {indices}, {.shape = {7, -3}})[0].to_vector<int>(), (std::vector<int>{0, -2}));
}

TEST(UnravelIndex, SaysWhatIsWrong) {
  const auto x = Symbol::variable("x");
  EXPECT_TRUE(fails_with([&] { unravel_index(x, {.shape = {3, 0}}); }, "shape", "(3, 0)"));
  EXPECT_TRUE(fails_with([&] { unravel_index(x, {.shape = {}}); }, "shape"));
  const auto indices = unravel_index(x, {.shape = {3, 4}}, "indices");
  EXPECT_TRUE(fails_with([&] { infer_shape(indices, {{"x", {2, 2}}}); }, "[_unravel_index indices]", "(2,2)"));
}

}  // namespace
}  // namespace symbind::testing
