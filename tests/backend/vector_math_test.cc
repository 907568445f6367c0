// The functions of backend/vector_math.h against <cmath> in double, over floats of all sizes.
#include "symbind/backend/vector_math.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace symbind {
namespace {

struct Worst {
  double error = 0;  // in units of the last place of the right float
  float at = 0;
  int64_t special = 0;  // where NaN, an infinity or the sign of zero is wrong
  float special_at = 0;
};

bool is_same_special(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// Every float whose bits are a multiple of a prime.
template <class Function, class Exact>
Worst worst_of(Function function, Exact exact) {
  Worst worst;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 10007) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const float y = function(x);
    const double right = exact(static_cast<double>(x));
    const auto rounded = static_cast<float>(right);
    if (!std::isfinite(rounded) || !std::isfinite(y) || rounded == 0) {
      if (!is_same_special(y, rounded) && worst.special++ == 0) worst.special_at = x;
      continue;
    }
    const float size = std::fabs(rounded);
    const double unit = std::nextafter(size, std::numeric_limits<float>::infinity()) - size;
    const double error = std::fabs(static_cast<double>(y) - right) / unit;
    if (error > worst.error) worst = {error, x, worst.special, worst.special_at};
  }
  return worst;
}

#define EXPECT_WITHIN(name, exact, units)                                                                       \
  do {                                                                                                          \
    const Worst worst = worst_of([](float x) { return vector_math::name(x); }, [](double x) { return exact; }); \
    EXPECT_LT(worst.error, units) << #name << " of " << worst.at;                                               \
    EXPECT_EQ(worst.special, 0) << #name << " of " << worst.special_at;                                         \
  } while (false)

TEST(VectorMath, ExponentialsAndLogarithmsAreExactToTheLastPlaces) {
  EXPECT_WITHIN(exp, std::exp(x), 1.5);
  EXPECT_WITHIN(expm1, std::expm1(x), 2);
  EXPECT_WITHIN(log, std::log(x), 1.5);
  EXPECT_WITHIN(log2, std::log2(x), 4);
  EXPECT_WITHIN(log10, std::log10(x), 2);
  EXPECT_WITHIN(log1p, std::log1p(x), 3);
  const auto fraction = [](auto x) { return std::abs(x) < 1 ? std::abs(x) : 1; };
  const Worst worst = worst_of([&](float x) { return vector_math::log1p_of_fraction(fraction(x)); },
                               [&](double x) { return std::log1p(fraction(x)); });
  EXPECT_LT(worst.error, 2) << worst.at;
}

TEST(VectorMath, HyperbolicFunctionsAreExactToTheLastPlaces) {
  EXPECT_WITHIN(tanh, std::tanh(x), 1.5);
  EXPECT_WITHIN(sinh, std::sinh(x), 2);
  EXPECT_WITHIN(cosh, std::cosh(x), 2);
  EXPECT_WITHIN(asinh, std::asinh(x), 4);
  EXPECT_WITHIN(acosh, std::acosh(x), 4);
  EXPECT_WITHIN(atanh, std::atanh(x), 4);
}

TEST(VectorMath, InverseTrigonometricFunctionsAreExactToTheLastPlaces) {
  EXPECT_WITHIN(asin, std::asin(x), 3);
  EXPECT_WITHIN(acos, std::acos(x), 2);
  EXPECT_WITHIN(atan, std::atan(x), 2);
}

TEST(VectorMath, TheErrorFunctionAndItsInverseAreExactToTheLastPlaces) {
  EXPECT_WITHIN(erf, std::erf(x), 1.5);
  EXPECT_WITHIN(inverse_erf, vector_math::inverse_erf(x), 4);
  for (const double y : {-0.999, -0.5, 0.01, 0.3, 0.7, 0.99999})  // the reference
    EXPECT_NEAR(std::erf(vector_math::inverse_erf(y)), y, 1e-15);
}

TEST(VectorMath, RootsAreExactToTheLastPlaces) { EXPECT_WITHIN(cbrt, std::cbrt(x), 2); }

TEST(VectorMath, LogarithmsOfPowersAreWhole) {
  for (int n = -126; n < 128; ++n) EXPECT_EQ(vector_math::log2(std::ldexp(1.0f, n)), static_cast<float>(n));
  float power = 1;
  for (int n = 0; n <= 10; ++n, power *= 10) EXPECT_EQ(vector_math::log10(power), static_cast<float>(n));
}

}  // namespace
}  // namespace symbind
