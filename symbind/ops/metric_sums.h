// The sums of a metric, on the device that has the predictions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace symbind {

// What a pair of label and prediction adds to the sums, by the rules of the metrics (train/metrics.h).
namespace metric_term {
inline constexpr Word top_k = "top_k";                  // 1 per row whose label is among its top_k greatest scores
inline constexpr Word same_class = "same_class";        // 1 per element that is the class in the label
inline constexpr Word cross_entropy = "cross_entropy";  // -log(probability of the label + eps) per row
inline constexpr Word perplexity = "perplexity";        // -log(probability of the label) per row
inline constexpr Word loss = "loss";                    // each element; there is no label
// One number: the mean over the elements, or its root.
inline constexpr Word absolute = "absolute", square = "square", root_square = "root_square";
inline constexpr Word all[] = {top_k, same_class, cross_entropy, perplexity, loss, absolute, square, root_square};
}  // namespace metric_term

// Indices of the numbers in `totals`. A label that is no class is a failure of its pair, which adds nothing else; the
// totals have the first such label, and the number of classes there.
struct MetricTotals {
  static constexpr int64_t sum = 0, instances = 1, failures = 2, label = 3, classes = 4, count = 5;
};

// Adds the terms of (label, pred) to `totals`, float64. The array `parts` is for the backend; what is in it is of no
// account. Queued without memory of its own, so that it can follow captured work. Sums are added in float64, in a fixed
// order, and rounded once per pair to the type that MXNet computes in. Internal.
struct MetricSums {
  static constexpr int64_t most_parts = 2048, part_size = 3;

  std::string term = metric_term::top_k;
  int64_t axis = -1;  // of the classes, in the terms of rows
  int64_t top_k = 1;
  double eps = 0;
  std::optional<double> ignore_label = {};  // of perplexity

  friend bool operator==(const MetricSums&, const MetricSums&) = default;
};
inline constexpr Builder<MetricSums> metric_sums;

// The values of `totals`, which are 0 afterwards. One step of the device: nothing that is added meanwhile is lost.
// Internal.
struct TakeMetricSums {};
inline constexpr Builder<TakeMetricSums> take_metric_sums;

}  // namespace symbind
