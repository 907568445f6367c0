#include "tests/support/metric_cases.h"

#include <cmath>
#include <limits>
#include <ostream>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Arguments = std::map<std::string, std::string>;

const std::vector<DType> pred_types{DType::float32, DType::float64, DType::float16, DType::bfloat16};
const std::vector<DType> label_types{DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int32,
                                     DType::int64,   DType::int8,    DType::uint8,   DType::boolean};
constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

// The array with some of its elements replaced, `period` apart.
NDArray with(const NDArray& array, double value, size_t first, size_t period) {
  std::vector<double> values = array.to_vector<double>();
  for (size_t i = first; i < values.size(); i += period) values[i] = value;
  NDArray result(array.shape(), cpu(), DType::float64);
  result.copy_from(values);
  return result.astype(array.dtype());
}

NDArray labels(const Shape& shape, double low, double high, DType dtype = DType::float32) {
  return random_array(shape, 7, low, high, DType::int32).astype(dtype);
}
NDArray scores(const Shape& shape, DType dtype = DType::float32) { return random_array(shape, 3, 0.015625, 1, dtype); }

void add_rows(std::vector<MetricCase>& cases, const std::string& metric, const Arguments& arguments) {
  for (const Shape& shape : std::vector<Shape>{
           {1, 1}, {1, 9}, {64, 10}, {40, 33}, {31, 64}, {128, 100}, {9, 257}, {128, 1000}, {3000, 7}, {2100, 300}}) {
    const auto classes = static_cast<double>(shape[1]);
    cases.push_back({metric, arguments, labels({shape[0]}, 0, classes - 1), scores(shape)});
  }
  const NDArray pred = scores({37, 50});
  for (const DType dtype : pred_types) cases.push_back({metric, arguments, labels({37}, 0, 49), pred.astype(dtype)});
  for (const DType dtype : label_types) cases.push_back({metric, arguments, labels({37, 1}, 0, 49, dtype), pred});
  cases.push_back({metric, arguments, labels({37}, -50, 49), pred});
  cases.push_back({metric, arguments, labels({37}, 0, 49), with(pred, nan, 20, 77)});
  cases.push_back({metric, arguments, labels({37}, 0, 49), with(pred, infinity, 20, 77)});
  cases.push_back({metric, arguments, labels({37}, 0, 49), with(with(pred, 0, 5, 2), -0.0, 7, 4)});
}

void add_classes(std::vector<MetricCase>& cases) {
  add_rows(cases, "acc", {});
  add_rows(cases, "top_k_accuracy", {{"top_k", "3"}});
  add_rows(cases, "top_k_accuracy", {{"top_k", "2000"}});
  for (const char* metric : {"acc", "top_k_accuracy"}) {
    const Arguments arguments = std::string(metric) == "acc" ? Arguments{} : Arguments{{"top_k", "2"}};
    cases.push_back({metric, arguments, labels({40}, -3, 8), scores({40, 6})});
    cases.push_back({metric, arguments, with(labels({40}, 0, 5), nan, 3, 5), scores({40, 6})});
    cases.push_back({metric, arguments, with(labels({40}, 0, 5), -0.75, 3, 5), scores({40, 6})});  // truncated to 0
    cases.push_back({metric, arguments, labels({40}, 0, 5), full({40, 6}, 0.5)});
  }
  cases.push_back({"acc", {}, labels({3, 70}, 0, 4), scores({3, 5, 70})});
  cases.push_back({"acc", {{"axis", "0"}}, labels({70}, 0, 4), scores({5, 70}, DType::float16)});
  cases.push_back({"acc", {{"axis", "-1"}}, labels({6, 7}, 0, 4), scores({6, 7, 5})});
  for (const DType dtype : pred_types) {
    const NDArray classes = random_array({5000}, 9, -3, 3, dtype);
    cases.push_back({"acc", {}, labels({5000}, -3, 3), classes});
    cases.push_back({"acc", {}, labels({5000}, -3, 3), with(classes, nan, 3, 11)});
  }
}

void add_likelihoods(std::vector<MetricCase>& cases) {
  add_rows(cases, "ce", {});
  add_rows(cases, "nll_loss", {{"eps", "0.125"}});
  add_rows(cases, "perplexity", {{"ignore_label", "3"}});
  add_rows(cases, "perplexity", {{"ignore_label", "None"}});
  cases.push_back({"perplexity", {{"ignore_label", "0"}}, zeros({20}), scores({20, 5})});
  cases.push_back({"perplexity", {{"ignore_label", "0"}}, labels({20}, -9, 30), scores({20, 5})});
  cases.push_back({"perplexity", {{"ignore_label", "0"}}, with(labels({20}, 0, 4), nan, 7, 20), scores({20, 5})});
  cases.push_back({"perplexity", {{"ignore_label", "0"}, {"axis", "1"}}, labels({3, 70}, 0, 4), scores({3, 5, 70})});
}

void add_numbers(std::vector<MetricCase>& cases) {
  for (const char* metric : {"mae", "mse", "rmse"}) {
    for (const Shape& shape : std::vector<Shape>{{1}, {300}, {64, 10}, {2, 3, 4, 5}, {700, 5000}})
      cases.push_back({metric, {}, random_array(shape, 1), random_array(shape, 2)});
    cases.push_back({metric, {}, random_array({50}, 1), random_array({50, 1}, 2)});
    for (const DType label : label_types)
      for (const DType pred : pred_types)
        cases.push_back({metric, {}, random_array({50, 3}, 1, 0, 1, label), random_array({50, 3}, 2, -1, 1, pred)});
    cases.push_back({metric, {}, random_array({50}, 1), with(random_array({50}, 2), nan, 30, 50)});
  }
  for (const char* metric : {"loss", "torch", "caffe"}) {
    for (const DType dtype : pred_types)
      for (const Shape& shape : std::vector<Shape>{{1}, {64, 10}, {31, 1000}})
        cases.push_back({metric, {}, zeros({1}), random_array(shape, 4, -1, 2, dtype)});
    cases.push_back({metric, {}, zeros({1}), random_array({3'000'001}, 4, -1, 2)});
    cases.push_back({metric, {}, zeros({1}), with(random_array({50}, 2), infinity, 30, 50)});
  }
}

bool is_counted(const EvalMetric& metric) {
  return metric.name() == "accuracy" || metric.name().starts_with("top_k_accuracy");
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const MetricCase& tried) {
  out << tried.metric;
  for (const auto& [name, value] : tried.arguments) out << " " << name << "=" << value;
  return out << " label " << tried.label.shape() << " " << tried.label.dtype() << " prediction " << tried.pred.shape()
             << " " << tried.pred.dtype();
}

std::vector<MetricCase> metric_cases() {
  std::vector<MetricCase> cases;
  add_classes(cases);
  add_likelihoods(cases);
  add_numbers(cases);
  return cases;
}

::testing::AssertionResult same_sums(const EvalMetric& actual, const EvalMetric& expected) {
  const auto agree = [&](const EvalMetric::Sums& a, const EvalMetric::Sums& b) {
    if (a.instances != b.instances) return false;
    if (is_counted(expected) || !std::isfinite(b.sum))
      return a.sum == b.sum || (std::isnan(a.sum) && std::isnan(b.sum));
    return std::abs(a.sum - b.sum) <= 1e-6 * std::abs(b.sum) + 1e-7 * static_cast<double>(b.instances);
  };
  if (agree(actual.sums(), expected.sums()) && agree(actual.global_sums(), expected.global_sums()))
    return ::testing::AssertionSuccess();
  auto result = ::testing::AssertionFailure() << "state";
  for (const double number : actual.state()) result << " " << number;
  result << ", expected";
  for (const double number : expected.state()) result << " " << number;
  return result;
}

void expect_same_counts(const MetricCase& tried, const CountBatch& count) {
  SCOPED_TRACE(join(tried));
  const EvalMetricPtr actual = tried.make(), expected = tried.make();
  const auto update = [&] {
    const std::string wrong = error_of([&] { expected->update({tried.label}, {tried.pred}); });
    EXPECT_EQ(error_of([&] {
                count(*actual, tried);
                (void)actual->sums();
              }),
              wrong);
  };
  for (int i = 0; i < 2; ++i) {
    update();
    EXPECT_TRUE(same_sums(*actual, *expected));
  }
  actual->reset_local();
  expected->reset_local();
  update();
  EXPECT_TRUE(same_sums(*actual, *expected)) << "after a local reset";
  count(*actual, tried);
  actual->reset();
  expected->reset();
  EXPECT_TRUE(same_sums(*actual, *expected)) << "after a reset";
  update();
  EXPECT_TRUE(same_sums(*actual, *expected)) << "counted anew";
}

}  // namespace symbind::testing
