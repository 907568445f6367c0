// The functions of backend/cpu/wide_math.h against <cmath> in double, and that loops use them where they hold.
#include "symbind/backend/cpu/wide_math.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/backend/cpu/formulas.h"

namespace symbind::cpu_backend {
namespace {

// The largest error in units of the last place, over floats of all sizes for which `holds`.
template <class Function, class Exact, class Holds>
double worst_of(Function function, Exact exact, Holds holds) {
  double worst = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 10007) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!holds(x)) continue;
    const float y = function(x);
    const double right = exact(static_cast<double>(x));
    const float rounded = static_cast<float>(right), size = std::fabs(rounded);
    if (!std::isfinite(rounded) || size < std::numeric_limits<float>::min()) {
      EXPECT_TRUE(y == rounded || size < std::numeric_limits<float>::min()) << x << " gives " << y;
      continue;
    }
    const double unit = std::nextafter(size, std::numeric_limits<float>::infinity()) - size;
    const double error = std::fabs(static_cast<double>(y) - right) / unit;
    EXPECT_LT(error, 4) << "at " << x;
    if (error > worst) worst = error;
  }
  return worst;
}

TEST(WideMath, TurnsAnglesExactlyToTheLastPlaces) {
  EXPECT_LT(worst_of(
                wide_math::sin, [](double x) { return std::sin(x); }, is_turned_exactly),
            1.5);
  EXPECT_LT(worst_of(
                wide_math::cos, [](double x) { return std::cos(x); }, is_turned_exactly),
            1.5);
  EXPECT_LT(worst_of(
                wide_math::tan, [](double x) { return std::tan(x); }, is_turned_exactly),
            4);
  EXPECT_TRUE(std::signbit(wide_math::sin(-0.0F)) && std::signbit(wide_math::tan(-0.0F)));
  for (int i = 1; i < 40000; ++i) {  // next to the zeros nothing is lost
    const auto x = static_cast<float>(i * std::numbers::pi_v<double> / 2);
    const double sine = std::sin(static_cast<double>(x)), cosine = std::cos(static_cast<double>(x));
    ASSERT_NEAR(wide_math::sin(x), sine, 2e-7 * std::fabs(sine)) << i;
    ASSERT_NEAR(wide_math::cos(x), cosine, 2e-7 * std::fabs(cosine)) << i;
  }
}

TEST(WideMath, RaisesToPowers) {
  for (const float b : {2.5F, -1.3F, 0.5F, 3.0F, 20.0F})
    EXPECT_LT(worst_of([b](float a) { return wide_math::pow(a, b); },
                       [b](double a) { return std::pow(a, static_cast<double>(b)); }, is_positive_normal),
              1);
  for (const float a : {0.3F, 1.0000001F, 7.0F, 1e30F})
    EXPECT_LT(worst_of([a](float b) { return wide_math::pow(a, b); },
                       [a](double b) { return std::pow(static_cast<double>(a), b); }, is_finite),
              1);
  EXPECT_EQ(wide_math::pow(3, 4), 81);
  EXPECT_EQ(wide_math::pow(2, -149), std::numeric_limits<float>::denorm_min());
}

TEST(WideMath, KnowsTheLogarithmOfGammaNextToItsZeros) {
  EXPECT_LT(worst_of(
                wide_math::log_gamma, [](double x) { return std::lgamma(x); }, is_positive_normal),
            1);
  for (const float zero : {1.0F, 2.0F})
    for (float away = 1e-7F; away < 1; away *= 1.25F)
      for (const float x : {zero - away, zero + away}) {
        const double right = std::lgamma(static_cast<double>(x));
        EXPECT_NEAR(wide_math::log_gamma(x), right, 2e-7 * std::fabs(right)) << x;
      }
}

TEST(WideMath, IsTheSlopeOfTheLogarithmOfGamma) {
  for (float x = 0.01F; x < 1e6F; x *= 1.07F)
    EXPECT_NEAR(wide_math::digamma(x), functions::digamma(static_cast<double>(x)),
                1e-7 * std::fabs(functions::digamma(static_cast<double>(x))) + 1e-9)
        << x;
}

TEST(WideMath, WeighsByNormalProbabilities) {
  for (int i = -600000; i <= 600000; ++i) {
    const auto x = static_cast<float>(i) * 1e-5F;
    const double right = 0.5 * x * std::erfc(-static_cast<double>(x) / std::numbers::sqrt2);
    ASSERT_NEAR(wide_math::gelu(x), right, 1.2e-7 * std::fabs(x)) << x;
    const double relative = x > -5 ? 6e-6 : 1;
    ASSERT_NEAR(wide_math::gelu(x), right, relative * std::fabs(right)) << x;
  }
  for (const float x : {0.0F, -0.0F, 1e-30F, -1e-40F}) EXPECT_EQ(wide_math::gelu(x), 0.5F * x);
  EXPECT_TRUE(std::signbit(wide_math::gelu(-0.0F)));
  EXPECT_EQ(wide_math::gelu(1e30F), 1e30F);
  EXPECT_EQ(wide_math::gelu(-1e30F), 0);
  EXPECT_EQ(wide_math::gelu(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(wide_math::gelu(std::numeric_limits<float>::quiet_NaN())));
}

TEST(WideMath, AddsSquaresWithoutOverflow) {
  EXPECT_LT(worst_of([](float x) { return wide_math::hypot(x, 3.7F); },
                     [](double x) { return std::hypot(x, static_cast<double>(3.7F)); }, is_finite),
            1);
}

// A few arguments that a formula does not hold for, among many that it does.
TEST(Formulas, LeaveTheOthersToTheFunction) {
  constexpr int64_t count = 1000;
  std::vector<float> x(count), y(count);
  for (int64_t i = 0; i < count; ++i) x[static_cast<size_t>(i)] = 0.01F * static_cast<float>(i);
  const float infinity = std::numeric_limits<float>::infinity();
  x[7] = 1e20F;
  x[500] = infinity;
  x[999] = std::numeric_limits<float>::quiet_NaN();
  using Sine = functions::InFloating<functions::floating::Sin>;
  apply(Sine{}, y.data(), 0, count, [&](int64_t i) { return x[static_cast<size_t>(i)]; });
  for (size_t i = 0; i < count; ++i) {
    if (std::isfinite(x[i])) {
      EXPECT_NEAR(y[i], std::sin(x[i]), 2e-7) << x[i];
    } else {
      EXPECT_TRUE(std::isnan(y[i])) << x[i];
    }
  }
  // Powers of what is not positive, in place.
  std::vector<float> base{-2, 0, -0.5F, 2, infinity};
  const functions::WithNumbers<functions::Power, float, 1> cube{{3}};
  apply(cube, base.data(), 0, 5, [&](int64_t i) { return base[static_cast<size_t>(i)]; });
  EXPECT_EQ(base, (std::vector<float>{-8, 0, -0.125F, 8, infinity}));
}

}  // namespace
}  // namespace symbind::cpu_backend
