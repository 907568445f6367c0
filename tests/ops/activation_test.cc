#include "symbind/ops/activation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

TEST(Activation, AppliesEachOfItsFunctions) {
  const auto data = array({-1, 0, 2});
  const auto with = [&](const char* type) { return activation(data, {.act_type = type}).to_vector<double>(); };
  constexpr Tolerance close{.relative = 1e-6, .absolute = 1e-7};
  EXPECT_EQ(with("relu"), (std::vector<double>{0, 0, 2}));
  EXPECT_TRUE(all_close(with("sigmoid"), {1 / (1 + std::exp(1.0)), 0.5, 1 / (1 + std::exp(-2.0))}, close));
  EXPECT_TRUE(all_close(with("tanh"), {std::tanh(-1.0), 0, std::tanh(2.0)}, close));
  EXPECT_TRUE(
      all_close(with("softrelu"), {std::log1p(std::exp(-1.0)), std::log(2.0), std::log1p(std::exp(2.0))}, close));
  EXPECT_TRUE(all_close(with("softsign"), {-0.5, 0, 2.0 / 3}, close));
}

TEST(Activation, SoftreluKeepsItsTails) {
  const auto y = activation(array({-50, -20, 20, 100, 1000}), {.act_type = "softrelu"}).to_vector<double>();
  EXPECT_TRUE(all_close(y, {std::exp(-50.0), std::exp(-20.0), 20, 100, 1000}, {.relative = 1e-6}));
}

TEST(Activation, GradientsAgreeWithFiniteDifferences) {
  for (const char* type : act_type::all)
    EXPECT_TRUE(
        check_gradient(activation(x, {.act_type = type}), {{"x", random_array({3, 5}, 1, -3, 3, DType::float64)}}))
        << type;
}

TEST(Activation, NamesItsChoices) {
  EXPECT_TRUE(fails_with([] { activation(x, {.act_type = "gelu"}, "act"); },
                         "[Activation act] act_type must be one of relu, sigmoid, softrelu, softsign, tanh: gelu"));
  EXPECT_TRUE(fails_with([] { activation(x, {}, "act"); }, "act_type must be given"));
}

}  // namespace
}  // namespace symbind::testing
