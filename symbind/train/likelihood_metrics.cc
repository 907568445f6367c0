// Metrics of the predicted probability of the correct class.
#include <algorithm>
#include <cmath>

#include "symbind/train/metric_arrays.h"
#include "symbind/train/metrics.h"

namespace symbind::metric {
namespace {

// Calls function(at), where at(row) is the probability of the label of a row, in the type that MXNet computes in.
template <class Function>
void visit_probabilities(const NDArray& pred, const AxisView& rows, const std::vector<int64_t>& wanted,
                         Function function) {
  const NDArray host = on_host(pred);
  visit_elements(host, [&](const auto* elements) {
    using T = Precision<std::remove_cvref_t<decltype(*elements)>>;
    function([&](int64_t row) {
      return static_cast<T>(elements[rows.row_start(row) + wanted[static_cast<size_t>(row)] * rows.inner]);
    });
  });
}

EvalMetric::NameValues exponential(EvalMetric::NameValues values) {
  for (auto& [name, value] : values) value = std::exp(value);
  return values;
}

}  // namespace

void CrossEntropy::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i) {
    const NDArray &label = labels[i], &pred = preds[i];
    if (pred.rank() != 2 || pred.shape()[0] != label.size())
      fail_shapes(name(), "predictions must have a row of probabilities per label", label, pred);
    const AxisView rows = rows_along(pred.shape(), 1, name());
    std::vector<int64_t> wanted = classes_of(label);
    for (int64_t& value : wanted) {
      if (value >= rows.length || value < -rows.length) fail_label(name(), value, rows.length);
      if (value < 0) value += rows.length;  // counts from the end
    }
    visit_probabilities(pred, rows, wanted, [&](const auto& at) {
      using T = decltype(at(0));
      const auto surprise = [&](int64_t row) { return -std::log(at(row) + static_cast<T>(eps_)); };
      count(static_cast<double>(pairwise_sum<T>(0, rows.row_count(), surprise)), rows.row_count());
    });
  }
}

void Perplexity::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  double sum = 0;
  int64_t counted = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const NDArray &label = labels[i], &pred = preds[i];
    const AxisView rows = rows_along(pred.shape(), axis_, name());
    if (rows.row_count() != label.size() || rows.length == 0)
      fail_shapes(name(), join("there must be a label per row of probabilities along axis ", axis_), label, pred);
    const std::vector<double> given = label.to_vector<double>();
    std::vector<int64_t> wanted = classes_of(label);
    for (size_t k = 0; k < wanted.size(); ++k) {
      const bool ignored = ignore_label_ && given[k] == *ignore_label_;
      if (std::isnan(given[k])) sum = given[k];
      wanted[k] = ignored ? -1 : std::clamp<int64_t>(wanted[k], 0, rows.length - 1);
      counted += !ignored;
    }
    // Unlike the others, MXNet computes this sum with an operator: exact, and rounded once.
    visit_probabilities(pred, rows, wanted, [&](const auto& at) {
      using T = decltype(at(0));
      double surprise = 0;
      for (int64_t row = 0; row < rows.row_count(); ++row) {
        if (wanted[static_cast<size_t>(row)] < 0) continue;
        const T probability = at(row), least = static_cast<T>(1e-10);
        surprise -= static_cast<double>(std::log(probability < least ? least : probability));  // NaN is preserved
      }
      sum += static_cast<double>(static_cast<T>(surprise));
    });
  }
  count(sum, counted);
}

EvalMetric::NameValues Perplexity::get() const { return exponential(EvalMetric::get()); }
EvalMetric::NameValues Perplexity::get_global() const { return exponential(EvalMetric::get_global()); }

}  // namespace symbind::metric
