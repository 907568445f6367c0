#include "symbind/ops/random.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/core/random.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments_of(const std::vector<double>& values) {
  Moments result;
  for (double v : values) result.mean += v / static_cast<double>(values.size());
  for (double v : values)
    result.deviation += (v - result.mean) * (v - result.mean) / static_cast<double>(values.size());
  result.deviation = std::sqrt(result.deviation);
  return result;
}

NDArray drawn(const char* op, const Attributes& attributes) { return invoke(op, {}, attributes)[0]; }

TEST(Random, UniformNumbersFillTheirRange) {
  for (const char* type : {"float32", "float64", "float16"}) {
    const auto values = drawn("_random_uniform", {{"low", "-1"}, {"high", "3"}, {"shape", "(40001,)"}, {"dtype", type}})
                            .to_vector<double>();
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*least, -1);
    EXPECT_LE(*most, 3);
    EXPECT_NEAR(moments_of(values).mean, 1, 0.03);
    EXPECT_NEAR(moments_of(values).deviation, 4 / std::sqrt(12.0), 0.03);
  }
}

TEST(Random, NormalNumbersHaveTheirMoments) {
  for (const char* type : {"float32", "float64"}) {
    const auto values =
        drawn("_random_normal", {{"loc", "2"}, {"scale", "0.5"}, {"shape", "(40001,)"}, {"dtype", type}})
            .to_vector<double>();
    EXPECT_NEAR(moments_of(values).mean, 2, 0.01);
    EXPECT_NEAR(moments_of(values).deviation, 0.5, 0.01);
  }
}

TEST(Random, ASeedGivesTheSameNumbersAgain) {
  const auto draw = [] { return drawn("normal", {{"shape", "(5,)"}}); };
  seed(3);
  const auto first = draw(), second = draw();
  seed(3);
  EXPECT_TRUE(same_bits(draw(), first));
  EXPECT_TRUE(same_bits(draw(), second));
  EXPECT_NE(first.to_vector<float>(), second.to_vector<float>());
}

TEST(Random, LongAndShortDrawsBeginAlike) {
  seed(5);
  const auto longer = drawn("uniform", {{"shape", "(100000,)"}}).to_vector<float>();
  seed(5);
  const auto shorter = drawn("uniform", {{"shape", "(7,)"}}).to_vector<float>();
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

TEST(Random, SamplesOneDistributionPerElement) {
  const auto samples = sample_uniform(array({0, 10}), array({1, 20}), {.shape = {1000}});
  EXPECT_EQ(samples.shape(), (Shape{2, 1000}));
  EXPECT_NEAR(moments_of(samples.at(0).to_vector<double>()).mean, 0.5, 0.05);
  EXPECT_NEAR(moments_of(samples.at(1).to_vector<double>()).mean, 15, 0.5);
  EXPECT_EQ(sample_normal(array({0, 10}), array({1, 20})).shape(), Shape{2});
}

TEST(Random, RefusesImpossibleDistributions) {
  EXPECT_TRUE(fails_with([] { drawn("uniform", {{"low", "1"}, {"high", "0"}, {"shape", "(2,)"}}); }, "high"));
  EXPECT_TRUE(fails_with([] { drawn("normal", {{"scale", "-1"}, {"shape", "(2,)"}}); }, "scale"));
  EXPECT_TRUE(fails_with([] { drawn("normal", {{"dtype", "int32"}, {"shape", "(2,)"}}); }, "dtype"));
}

}  // namespace
}  // namespace symbind::testing
