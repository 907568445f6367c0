#include "symbind/ops/dot.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x"), y = Symbol::variable("y");

TEST(Dot, MultipliesMatricesAsTheyAre) {
  const auto a = counted({2, 3}), b = counted({3, 2});
  EXPECT_EQ(dot(a, b).to_vector<int>(), (std::vector<int>{22, 28, 49, 64}));
  EXPECT_EQ(dot(a, a, {.transpose_b = true}).to_vector<int>(), (std::vector<int>{14, 32, 32, 77}));
  EXPECT_EQ(dot(b, b, {.transpose_a = true}).to_vector<int>(), (std::vector<int>{35, 44, 44, 56}));
  EXPECT_EQ(dot(counted({3}), counted({3})).shape(), Shape{1});
  EXPECT_EQ(dot(counted({3}, DType::int8), counted({3}, DType::int8)).item(), 14);
}

TEST(Dot, SumsTheLastAxisAgainstTheFirst) {
  EXPECT_EQ(dot(counted({2, 1, 3}), counted({3, 2, 2})).shape(), (Shape{2, 1, 2, 2}));
  EXPECT_EQ(dot(counted({3, 2, 2}), counted({2, 3}), {.transpose_a = true, .transpose_b = true}).shape(),
            (Shape{2, 2, 2}));
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(dot(x, y, {}, "product"), {{"x", {2, 3}}, {"y", {4, 3}}});
      },
      "product", "(2,3)", "(4,3)"));
}

TEST(Dot, GradientsAgreeWithFiniteDifferences) {
  const auto any = [](const Shape& shape, uint64_t seed) { return random_array(shape, seed, -1, 1, DType::float64); };
  const struct {
    Shape lhs, rhs;
    Dot params;
  } cases[] = {{{2, 3}, {3, 4}, {}},
               {{3, 2}, {3, 4}, {.transpose_a = true}},
               {{2, 3}, {4, 3}, {.transpose_b = true}},
               {{3, 2}, {4, 3}, {.transpose_a = true, .transpose_b = true}},
               {{2, 2, 3}, {3, 2, 2}, {}},
               {{3, 2, 2}, {2, 2, 3}, {.transpose_a = true, .transpose_b = true}},
               {{3}, {3}, {}},
               {{3}, {3, 2}, {}}};
  for (const auto& c : cases)
    EXPECT_TRUE(check_gradient(dot(x, y, c.params), {{"x", any(c.lhs, 1)}, {"y", any(c.rhs, 2)}}));
}

}  // namespace
}  // namespace symbind::testing
