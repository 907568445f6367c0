#include "symbind/ops/metric_sums.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Numbers = std::vector<double>;

class Totals {
 public:
  // sum, instances, failures, label, classes
  Numbers after(const std::vector<NDArray>& pair, const MetricSums& params) {
    std::vector<NDArray> inputs = pair;
    inputs.insert(inputs.end(), {totals_, parts_});
    EXPECT_TRUE(symbind::invoke(metric_sums, inputs, params).empty());
    return totals_.to_vector<double>();
  }
  Numbers take() { return invoke(take_metric_sums, {totals_})[0].to_vector<double>(); }

 private:
  NDArray totals_ = zeros({MetricTotals::count}, cpu(), DType::float64);
  NDArray parts_ = empty({MetricSums::most_parts, MetricSums::part_size}, cpu(), DType::float64);
};

Numbers sums(const std::vector<NDArray>& pair, const MetricSums& params) {
  const Numbers all = Totals().after(pair, params);
  return {all[MetricTotals::sum], all[MetricTotals::instances]};
}

const NDArray scores = array({{1, 3, 2}, {5, 5, 4}, {0, 1, 2}, {9, 8, 7}});

TEST(MetricSums, CountLabelsAmongTheGreatestScores) {
  const NDArray labels = array({1, 1, 0, 3});  // the best; second, as of equal scores the first is before; last; none
  EXPECT_EQ(sums({labels, scores}, {.term = metric_term::top_k}), (Numbers{1, 4}));
  EXPECT_EQ(sums({labels, scores}, {.term = metric_term::top_k, .top_k = 2}), (Numbers{2, 4}));
  EXPECT_EQ(sums({labels, scores}, {.term = metric_term::top_k, .top_k = 99}), (Numbers{3, 4}));
  EXPECT_EQ(sums({array({3, 0, 1}), scores}, {.term = metric_term::top_k, .axis = 0}), (Numbers{1, 3}));
  EXPECT_EQ(sums({array({3, 3, 1}), scores}, {.term = metric_term::top_k, .axis = 0}), (Numbers{2, 3}));
}

TEST(MetricSums, CountElementsOfTheClassInTheLabel) {
  const NDArray classes = array({1, 2.75, -0.5, std::nan("")});
  EXPECT_EQ(sums({array({1, 2, 0, 0}), classes}, {.term = metric_term::same_class}), (Numbers{3, 4}));
}

TEST(MetricSums, AddLogarithmsOfProbabilities) {
  const NDArray pred = array({{0.5, 0.5}, {0.25, 0.75}}).astype(DType::float64);
  const Numbers entropy = sums({array({0, -2}), pred}, {.term = metric_term::cross_entropy, .axis = 1, .eps = 0.25});
  EXPECT_DOUBLE_EQ(entropy[0], -std::log(0.75) - std::log(0.5));
  const Numbers perplexity = sums({array({1, 5}), pred}, {.term = metric_term::perplexity, .ignore_label = 1});
  EXPECT_DOUBLE_EQ(perplexity[0], -std::log(0.75));
  EXPECT_EQ(perplexity[1], 1);
}

TEST(MetricSums, AddDistancesAndLosses) {
  const NDArray label = array({1, 2, 3, 4}), pred = array({{1}, {4}, {1}, {4}});
  EXPECT_EQ(sums({label, pred}, {.term = metric_term::absolute}), (Numbers{1, 1}));
  EXPECT_EQ(sums({label, pred}, {.term = metric_term::square}), (Numbers{2, 1}));
  EXPECT_EQ(sums({label, pred}, {.term = metric_term::root_square}), (Numbers{std::sqrt(2.0f), 1}));
  EXPECT_EQ(sums({pred}, {.term = metric_term::loss}), (Numbers{10, 4}));
}

TEST(MetricSums, AFailedPairAddsNothingAndTheFirstLabelIsKept) {
  Totals totals;
  const MetricSums entropy{.term = metric_term::cross_entropy, .axis = 1};
  totals.after({array({0, 1}), ones({2, 2})}, entropy);
  totals.after({array({0, 2, 3}), ones({3, 2})}, entropy);
  EXPECT_EQ(totals.after({array({-4}), ones({1, 3})}, entropy), (Numbers{0, 2, 2, 2, 2}));
  EXPECT_EQ(totals.take(), (Numbers{0, 2, 2, 2, 2}));
  EXPECT_EQ(totals.take(), (Numbers(5, 0)));
}

TEST(MetricSums, RefuseWhatDoesNotFit) {
  EXPECT_TRUE(fails_with([] { sums({array({0}), scores}, {.axis = 1}); }, "4 labels", "(1,)"));
  EXPECT_TRUE(fails_with([] { sums({array({0}), scores}, {.axis = 2}); }, "axis"));
  EXPECT_TRUE(fails_with([] { sums({array({0}), scores}, {.term = metric_term::square}); }, "12 labels"));
  EXPECT_TRUE(fails_with([] { sums({array({0}), scores}, {.term = "worst"}); }, "term", "worst"));
  EXPECT_TRUE(fails_with([] { sums({scores.astype(DType::int32)}, {.term = metric_term::loss}); }, "int32"));
}

}  // namespace
}  // namespace symbind::testing
