// Pairs of labels and predictions for the metrics that a device can count, and a comparison with the host's counting.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/train/metric.h"

namespace symbind::testing {

struct MetricCase {
  std::string metric;
  std::map<std::string, std::string> arguments;
  NDArray label, pred;  // on the CPU

  EvalMetricPtr make() const { return EvalMetric::create(metric, arguments); }
};
std::ostream& operator<<(std::ostream& out, const MetricCase& tried);

// Of every type, with ties, NaN, ignored labels and labels that are no class; from one element to more than the first
// blocks of a kernel take.
std::vector<MetricCase> metric_cases();

// Counts are the same; other sums, in doubles of float32 terms, agree to float32's rounding, and NaN with NaN.
::testing::AssertionResult same_sums(const EvalMetric& actual, const EvalMetric& expected);

// The metric counts the batch twice, is read and reset in between: its sums, and those of metric.update(), are the
// same.
using CountBatch = std::function<void(EvalMetric& metric, const MetricCase& batch)>;
void expect_same_counts(const MetricCase& tried, const CountBatch& count);

}  // namespace symbind::testing
