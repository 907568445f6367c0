// Accuracy, its top-k version, F1 and Matthews' correlation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "symbind/train/metric_arrays.h"
#include "symbind/train/metrics.h"

namespace symbind::metric {
namespace {

// The rank of `label` in a row: the number of classes before it when ordered by descending score, ties by index. It
// decides whether the label is the best, or among the best k, in one pass without branches, which compilers vectorize.
// A row with a NaN predicts no class: more than any k.
template <class T>
int64_t classes_before(const T* scores, int64_t classes, int64_t step, int64_t label) {
  const compute_type<T> own = scores[label * step];
  int32_t before = 0, unordered = is_nan(own);
  const auto count = [&](int64_t begin, int64_t end, int64_t stride, auto comes_before) {
    for (int64_t k = begin; k < end; ++k) {
      const compute_type<T> score = scores[k * stride];
      before += comes_before(score);
      unordered += is_nan(score);
    }
  };
  const auto at_least = [=](compute_type<T> score) { return score >= own; };
  const auto above = [=](compute_type<T> score) { return score > own; };
  if (step == 1) {
    count(0, label, 1, at_least);
    count(label + 1, classes, 1, above);
  } else {
    count(0, label, step, at_least);
    count(label + 1, classes, step, above);
  }
  return unordered > 0 ? std::numeric_limits<int64_t>::max() : int64_t{before};
}

// How many labels are among the top_k scores of their rows.
int64_t count_in_top(const NDArray& pred, const AxisView& rows, const std::vector<int64_t>& labels, int64_t top_k) {
  const NDArray host = on_host(pred);
  int64_t correct = 0;
  visit_elements(host, [&](const auto* elements) {
    for (int64_t row = 0; row < rows.row_count(); ++row) {
      const int64_t label = labels[static_cast<size_t>(row)];
      if (label < 0 || label >= rows.length) continue;
      correct += classes_before(elements + rows.row_start(row), rows.length, rows.inner, label) < top_k;
    }
  });
  return correct;
}

BinaryCounts count_binary(const std::string& name, const NDArray& label, const NDArray& pred) {
  if (pred.rank() < 2) fail_shapes(name, "predictions must have a row of scores per sample", label, pred);
  const std::vector<int64_t> predicted = argmax(pred, 1, name), wanted = classes_of(label);
  if (predicted.size() != wanted.size()) fail_shapes(name, "there must be a label per row of scores", label, pred);
  const std::set<int64_t> classes(wanted.begin(), wanted.end());
  require(classes.size() <= 2, "[", name, "] labels must be of two classes: ", comma_separated(classes));
  BinaryCounts counts;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool expected = wanted[i] == 1;
    const bool positive = predicted[i] == no_class ? !expected : predicted[i] == 1, right = positive == expected;
    if (positive)
      ++(right ? counts.true_positives : counts.false_positives);
    else
      ++(right ? counts.true_negatives : counts.false_negatives);
  }
  return counts;
}

}  // namespace

void Accuracy::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i) {
    const NDArray &label = labels[i], &pred = preds[i];
    const std::vector<int64_t> wanted = classes_of(label);
    if (label.shape() == pred.shape()) {
      const std::vector<int64_t> given = classes_of(pred);
      const std::vector<double> numbers = pred.to_vector<double>();
      int64_t correct = 0;
      for (size_t k = 0; k < wanted.size(); ++k) correct += wanted[k] == given[k] && !std::isnan(numbers[k]);
      count(static_cast<double>(correct), label.size());
      continue;
    }
    const AxisView rows = rows_along(pred.shape(), axis_, name());
    if (rows.row_count() != label.size())
      fail_shapes(name(), join("there must be a label per row of scores along axis ", axis_), label, pred);
    count(static_cast<double>(count_in_top(pred, rows, wanted, 1)), rows.row_count());
  }
}

TopKAccuracy::TopKAccuracy(int64_t top_k, Options options) : EvalMetric(std::move(options)), top_k_(top_k) {
  require(top_k > 1, "[", name(), "] top_k must be more than 1, use accuracy otherwise: ", top_k);
  options_.name += join("_", top_k);
}

void TopKAccuracy::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i) {
    const NDArray &label = labels[i], &pred = preds[i];
    if (pred.rank() != 2) fail_shapes(name(), "predictions must have two axes", label, pred);
    const AxisView rows = rows_along(pred.shape(), 1, name());
    if (rows.row_count() != label.size()) fail_shapes(name(), "there must be a label per row of scores", label, pred);
    count(static_cast<double>(count_in_top(pred, rows, classes_of(label), top_k_)), rows.row_count());
  }
}

double BinaryCounts::f1() const {
  const int64_t found = true_positives + false_positives, there = true_positives + false_negatives;
  const double precision = found > 0 ? static_cast<double>(true_positives) / static_cast<double>(found) : 0;
  const double recall = there > 0 ? static_cast<double>(true_positives) / static_cast<double>(there) : 0;
  return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

// Sums that are zero are left out of the denominator.
double BinaryCounts::mcc() const {
  if (total() == 0) return 0;
  const auto tp = static_cast<double>(true_positives), fp = static_cast<double>(false_positives);
  const auto tn = static_cast<double>(true_negatives), fn = static_cast<double>(false_negatives);
  double product = 1;
  for (const double sum : {tp + fp, tp + fn, tn + fp, tn + fn})
    if (sum != 0) product *= sum;
  return (tp * tn - fp * fn) / std::sqrt(product);
}

void BinaryCounts::add(const BinaryCounts& more) {
  true_positives += more.true_positives;
  false_positives += more.false_positives;
  true_negatives += more.true_negatives;
  false_negatives += more.false_negatives;
}

BinaryMetric::BinaryMetric(std::string average, Options options)
    : EvalMetric(std::move(options)), micro_(average == "micro") {
  require(micro_ || average == "macro", "[", name(), "] average must be macro or micro: ", average);
}

void BinaryMetric::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  const InUse use = in_use("update");
  check_counts(name(), labels, preds);
  BinaryCounts counts;
  for (size_t i = 0; i < labels.size(); ++i) counts.add(count_binary(name(), labels[i], preds[i]));
  if (!micro_) return count(score(counts), 1);
  counts_.add(counts);
  global_counts_.add(counts);
  num_inst_ = counts_.total();
  global_num_inst_ = global_counts_.total();
  sum_metric_ = score(counts_) * static_cast<double>(num_inst_);
  global_sum_metric_ = score(global_counts_) * static_cast<double>(global_num_inst_);
}

void BinaryMetric::reset() {
  EvalMetric::reset();
  counts_ = global_counts_ = {};
}

void BinaryMetric::reset_local() {
  EvalMetric::reset_local();
  counts_ = {};
}

std::vector<double> BinaryMetric::state() const {
  std::vector<double> state = EvalMetric::state();
  for (const BinaryCounts& counts : {counts_, global_counts_})
    for (const int64_t number :
         {counts.true_positives, counts.false_positives, counts.true_negatives, counts.false_negatives})
      state.push_back(static_cast<double>(number));
  return state;
}

void BinaryMetric::set_state(const std::vector<double>& state) {
  require(state.size() == sums_in_state + 8, "[", name(), "] a state has ", sums_in_state + 8, " numbers, this one ",
          state.size());
  EvalMetric::set_state(state);
  size_t next = sums_in_state;
  for (BinaryCounts* counts : {&counts_, &global_counts_})
    for (int64_t* number :
         {&counts->true_positives, &counts->false_positives, &counts->true_negatives, &counts->false_negatives})
      *number = static_cast<int64_t>(state[next++]);
}

}  // namespace symbind::metric
