#include "symbind/ops/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "symbind/core/parallel.h"
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

struct Distribution {
  const char* op;
  Attributes attributes;
  double mean, deviation;
};
// Small and large parameters: each method has its limits.
const Distribution distributions[] = {
    {"_random_exponential", {{"lam", "4"}}, 0.25, 0.25},
    {"_random_gamma", {}, 1, 1},
    {"_random_gamma", {{"alpha", "9"}, {"beta", "0.5"}}, 4.5, 1.5},
    {"_random_gamma", {{"alpha", "0.25"}, {"beta", "2"}}, 0.5, 1},
    {"_random_poisson", {{"lam", "0.3"}}, 0.3, std::sqrt(0.3)},
    {"_random_poisson", {{"lam", "9.9"}}, 9.9, std::sqrt(9.9)},
    {"_random_poisson", {{"lam", "10.1"}}, 10.1, std::sqrt(10.1)},
    {"_random_poisson", {{"lam", "1000"}}, 1000, std::sqrt(1000.0)},
    {"_random_negative_binomial", {{"k", "3"}, {"p", "0.4"}}, 4.5, std::sqrt(4.5 / 0.4)},
    {"_random_generalized_negative_binomial", {{"mu", "2"}, {"alpha", "0.5"}}, 2, 2},
    {"_random_generalized_negative_binomial", {{"mu", "2"}, {"alpha", "0"}}, 2, std::sqrt(2.0)},
    {"_random_randint", {{"low", "-3"}, {"high", "6"}}, 1, std::sqrt((81.0 - 1) / 12)},
};

TEST(Random, DistributionsHaveTheirMoments) {
  seed(17);
  for (const auto& [op, attributes, mean, deviation] : distributions) {
    Attributes many = attributes;
    many["shape"] = "(100000,)";
    const Moments found = moments_of(drawn(op, many).to_vector<double>());
    // Five standard errors of the mean are 0.016 deviations.
    EXPECT_NEAR(found.mean, mean, 0.016 * deviation) << op << " " << mean;
    EXPECT_NEAR(found.deviation, deviation, 0.04 * deviation) << op << " " << mean;
  }
}

// How many of `values` are k, for k = 0, 1, …
std::vector<double> counts_of(const std::vector<double>& values, size_t classes) {
  std::vector<double> counts(classes);
  for (const double value : values)
    if (value < static_cast<double>(classes)) ++counts[static_cast<size_t>(value)];
  return counts;
}

TEST(Random, PoissonCountsHaveTheirProbabilities) {
  seed(19);
  for (const double mean : {4.0, 12.0}) {
    const auto values = drawn("_random_poisson", {{"lam", join(mean)}, {"shape", "(200000,)"}}).to_vector<double>();
    const auto counts = counts_of(values, 30);
    double probability = std::exp(-mean);
    for (size_t k = 0; k < counts.size(); ++k) {
      const double expected = 200000 * probability;
      EXPECT_NEAR(counts[k], expected, 5 * std::sqrt(expected) + 3) << "mean " << mean << ", count " << k;
      probability *= mean / static_cast<double>(k + 1);
    }
  }
}

TEST(Random, WholeNumbersAreEachAsLikely) {
  seed(23);
  const auto counts =
      counts_of(drawn("_random_randint", {{"low", "0"}, {"high", "7"}, {"shape", "(70000,)"}}).to_vector<double>(), 8);
  for (size_t k = 0; k < 7; ++k) EXPECT_NEAR(counts[k], 10000, 500) << k;
  EXPECT_EQ(counts[7], 0);
  const auto whole =
      drawn(
          "_random_randint",
          {{"low", "-9223372036854775807"}, {"high", "9223372036854775807"}, {"dtype", "int64"}, {"shape", "(1000,)"}})
          .to_vector<int64_t>();
  EXPECT_NEAR(static_cast<double>(std::count_if(whole.begin(), whole.end(), [](int64_t v) { return v < 0; })), 500, 80);
}

TEST(Random, EveryDistributionIsRepeatedExactly) {
  for (const auto& [op, attributes, mean, deviation] : distributions) {
    Attributes longer = attributes, shorter = attributes;
    longer["shape"] = "(5000,)";
    shorter["shape"] = "(700,)";
    seed(29);
    const auto first = drawn(op, longer), second = drawn(op, longer);
    seed(29);
    EXPECT_TRUE(same_bits(drawn(op, longer), first)) << op;
    EXPECT_FALSE(same_bits(first, second)) << op;
    seed(29);
    EXPECT_EQ(drawn(op, shorter).to_vector<double>(), first.slice(0, 700).to_vector<double>()) << op;
    const ThreadScope alone({.threads = 1});
    seed(29);
    EXPECT_TRUE(same_bits(drawn(op, longer), first)) << op << " by one thread";
  }
}

TEST(Random, SamplesAreDrawnFromEveryDistributionOfAnArray) {
  seed(31);
  const auto mean_of = [](const NDArray& samples, int64_t row) {
    return moments_of(samples.at(row).to_vector<double>()).mean;
  };
  const auto gamma = sample_gamma(array({9, 0.5}), array({0.5, 2}), {.shape = {20000}});
  EXPECT_EQ(gamma.shape(), (Shape{2, 20000}));
  EXPECT_NEAR(mean_of(gamma, 0), 4.5, 0.06);
  EXPECT_NEAR(mean_of(gamma, 1), 1, 0.06);
  const auto exponential = sample_exponential(array({0.5, 4}), {.shape = {20000}});
  EXPECT_NEAR(mean_of(exponential, 0), 2, 0.08);
  EXPECT_NEAR(mean_of(exponential, 1), 0.25, 0.01);
  const auto poisson = sample_poisson(array({0, 50}), {.shape = {20000}});
  EXPECT_EQ(mean_of(poisson, 0), 0);
  EXPECT_NEAR(mean_of(poisson, 1), 50, 0.3);
  const auto binomial = sample_negative_binomial(array({3, 0}), array({0.4, 0.4}), {.shape = {20000}});
  EXPECT_NEAR(mean_of(binomial, 0), 4.5, 0.15);
  EXPECT_EQ(mean_of(binomial, 1), 0);
  const auto generalized = sample_generalized_negative_binomial(array({2, 5}), array({0.5, 0}), {.shape = {20000}});
  EXPECT_NEAR(mean_of(generalized, 0), 2, 0.1);
  EXPECT_NEAR(mean_of(generalized, 1), 5, 0.1);
}

TEST(Random, WhatDescribesNoDistributionGivesNoNumber) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto none = [](const NDArray& samples) {
    const auto values = samples.to_vector<double>();
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
  };
  EXPECT_TRUE(none(sample_poisson(array({-1, nan}))));
  EXPECT_TRUE(none(sample_exponential(array({-1, 0, nan}))));
  EXPECT_TRUE(none(sample_gamma(array({-1, 0, nan, 1, 1}), array({1, 1, 1, 0, nan}))));
  EXPECT_TRUE(none(sample_negative_binomial(array({-1, nan, 1, 1}), array({1, 1, 0, 1.5}))));
  EXPECT_TRUE(none(sample_generalized_negative_binomial(array({-1, 1}), array({1, -1}))));
  EXPECT_EQ(sample_poisson(array({infinity})).item(), infinity);
  EXPECT_EQ(sample_gamma(array({infinity}), array({1})).item(), infinity);
}

TEST(Random, IndicesAreDrawnWithTheirProbabilities) {
  seed(37);
  const NDArray data = array(std::vector<double>{0, 0.1, 0.2, 0.3, 0.4, 1, 0, 3, 0, 0}, {2, 5});
  const auto indices = sample_multinomial(data, {.shape = {40000}});
  EXPECT_EQ(indices.dtype(), DType::int32);
  const auto first = counts_of(indices.at(0).to_vector<double>(), 5);
  for (size_t k = 0; k < 5; ++k) EXPECT_NEAR(first[k], 4000 * static_cast<double>(k), 500 * (k > 0)) << k;
  // Probabilities that sum up to something else count in proportion.
  const auto second = counts_of(indices.at(1).to_vector<double>(), 5);
  EXPECT_NEAR(second[0], 10000, 500);
  EXPECT_EQ(second[0] + second[2], 40000);
}

TEST(Random, IndicesComeWithTheirLogarithmsAndTheSlopesOfThose) {
  seed(41);
  const auto data = Symbol::variable("data");
  const auto net = sample_multinomial(data, {.shape = {3}, .get_prob = true}, "m");
  EXPECT_EQ(net.list_outputs(), (std::vector<std::string>{"m_output0", "m_output1"}));
  const auto executor = simple_bind(net, cpu(), {{"data", {2, 4}}});
  const std::vector<double> p{0.1, 0.2, 0.3, 0.4, 0.25, 0.25, 0.5, 0};
  executor->arg_dict().at("data").copy_from(p);
  executor->forward(true);
  const auto indices = executor->outputs()[0].to_vector<double>(), logs = executor->outputs()[1].to_vector<double>();
  const std::vector<double> dy{1, 2, 3, 4, 5, 6};
  executor->backward({{"m_output0", zeros({2, 3}, cpu(), DType::int32)}, {"m_output1", array(dy, {2, 3})}});
  std::vector<double> expected(8);
  for (size_t i = 0; i < 6; ++i) {
    const size_t at = i / 3 * 4 + static_cast<size_t>(indices[i]);
    EXPECT_NEAR(logs[i], std::log(p[at]), 1e-6);
    expected[at] += dy[i] / p[at];
  }
  const auto found = executor->grad_dict().at("data").to_vector<double>();
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
}

TEST(Random, ImpossibleProbabilitiesAreRefused) {
  const auto tried = [](const std::vector<double>& p) { sample_multinomial(array(p, {1, 2})); };
  EXPECT_TRUE(fails_with([&] { tried({0, 0}); }, "sum up to 0"));
  EXPECT_TRUE(fails_with([&] { tried({2, -1}); }, "a probability is -1"));
  EXPECT_TRUE(fails_with([&] { tried({1, std::nan("")}); }, "a probability is"));
  EXPECT_TRUE(fails_with([] { sample_multinomial(zeros({2, 0})); }, "no classes"));
}

TEST(Random, ShufflingMovesWholeSlices) {
  seed(43);
  const NDArray data = arange(0, 3000).reshape({1000, 3});
  const auto mixed = shuffle(data).to_vector<double>();
  std::vector<double> firsts;
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(mixed[3 * i + 1], mixed[3 * i] + 1);
    EXPECT_EQ(mixed[3 * i + 2], mixed[3 * i] + 2);
    firsts.push_back(mixed[3 * i] / 3);
  }
  EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.end()));
  std::sort(firsts.begin(), firsts.end());
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(firsts[i], static_cast<double>(i));
  seed(43);
  EXPECT_EQ(shuffle(data).to_vector<double>(), mixed);
  EXPECT_EQ(shuffle(zeros({0, 2})).shape(), (Shape{0, 2}));
}

TEST(Random, EveryOrderOfThreeIsAsLikely) {
  seed(47);
  std::map<std::vector<int>, int> seen;
  for (int i = 0; i < 6000; ++i) ++seen[shuffle(array({0, 1, 2})).to_vector<int>()];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 150) << order[0] << order[1] << order[2];
}

TEST(Random, AShuffleHasNoGradient) {
  const auto net = shuffle(Symbol::variable("data"));
  EXPECT_TRUE(fails_with(
      [&] {
        const auto executor = simple_bind(net, cpu(), {{"data", {2, 3}}});
        executor->forward(true);
        executor->backward({ones({2, 3})});
      },
      "no gradient"));
}

TEST(Random, RefusesImpossibleDistributions) {
  const auto refused = [](const char* op, Attributes attributes, const char* why) {
    attributes["shape"] = "(2,)";
    return fails_with([&] { drawn(op, attributes); }, why);
  };
  EXPECT_TRUE(refused("_random_exponential", {{"lam", "0"}}, "lam"));
  EXPECT_TRUE(refused("_random_poisson", {{"lam", "-1"}}, "lam"));
  EXPECT_TRUE(refused("_random_gamma", {{"beta", "0"}}, "beta"));
  EXPECT_TRUE(refused("_random_negative_binomial", {{"p", "0"}}, "p must"));
  EXPECT_TRUE(refused("_random_generalized_negative_binomial", {{"alpha", "-1"}}, "alpha"));
  EXPECT_TRUE(refused("_random_randint", {{"low", "2"}, {"high", "2"}}, "high must be greater"));
  EXPECT_TRUE(refused("_random_randint", {{"low", "0"}, {"high", "3000000000"}}, "int32"));
  EXPECT_TRUE(fails_with([] { drawn("uniform", {{"low", "1"}, {"high", "0"}, {"shape", "(2,)"}}); }, "high"));
  EXPECT_TRUE(fails_with([] { drawn("normal", {{"scale", "-1"}, {"shape", "(2,)"}}); }, "scale"));
  EXPECT_TRUE(fails_with([] { drawn("normal", {{"dtype", "int32"}, {"shape", "(2,)"}}); }, "dtype"));
}

}  // namespace
}  // namespace symbind::testing
