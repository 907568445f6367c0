// Metrics of the distance between numbers, and the mean of losses.
#include <cmath>

#include "symbind/train/metric_arrays.h"
#include "symbind/train/metrics.h"

namespace symbind::metric {
namespace {

// Converts both to one type, since the loops are compiled per type: double if the two differ.
std::pair<NDArray, NDArray> of_one_type(const NDArray& label, const NDArray& pred) {
  if (label.dtype() == pred.dtype()) return {on_host(label), on_host(pred)};
  return {on_host(label).astype(DType::float64), on_host(pred).astype(DType::float64)};
}

// The mean of distance(label - prediction) over the elements of a pair, or the root of it. After the first axis, an
// extent of 1 on one side is repeated to meet the other's.
template <class Distance>
double mean_distance(const std::string& name, const NDArray& label, const NDArray& pred, Distance distance,
                     bool root = false) {
  const Shape wanted = with_columns(label.shape()), given = with_columns(pred.shape());
  const int rank = wanted.rank();
  bool fits = rank == given.rank() && rank > 0 && wanted[0] == given[0];
  Shape common = wanted;
  for (int axis = 1; fits && axis < rank; ++axis) {
    fits = wanted[axis] == given[axis] || wanted[axis] == 1 || given[axis] == 1;
    if (wanted[axis] == 1) common[axis] = given[axis];
  }
  if (!fits) fail_shapes(name, "label and prediction must have one shape", label, pred);

  const auto [labels, preds] = of_one_type(label, pred);
  const auto *label_values = labels.data(), *pred_values = preds.data();
  const int64_t size = common.size();
  return visit_dtype(labels.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using P = Precision<T>;
    const auto *a = static_cast<const T*>(label_values), *b = static_cast<const T*>(pred_values);
    const auto between = [&](int64_t i, int64_t k) {
      return distance(static_cast<P>(static_cast<P>(a[i]) - static_cast<P>(b[k])));
    };
    const auto repeated = [&](int64_t i) {
      int64_t in_label = 0, in_pred = 0, rest = i, label_step = 1, pred_step = 1;
      for (int axis = rank - 1; axis >= 0; --axis) {
        const int64_t index = rest % common[axis];
        rest /= common[axis];
        if (wanted[axis] != 1) in_label += index * label_step;
        if (given[axis] != 1) in_pred += index * pred_step;
        label_step *= wanted[axis];
        pred_step *= given[axis];
      }
      return between(in_label, in_pred);
    };
    const P sum = wanted == given ? pairwise_sum<P>(0, size, [&](int64_t i) { return between(i, i); })
                                  : pairwise_sum<P>(0, size, repeated);
    const P mean = sum / static_cast<P>(size);
    return static_cast<double>(root ? std::sqrt(mean) : mean);
  });
}

}  // namespace

void MAE::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i)
    count(mean_distance(name(), labels[i], preds[i], [](auto difference) { return std::abs(difference); }), 1);
}

void MSE::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i)
    count(mean_distance(name(), labels[i], preds[i], [](auto difference) { return difference * difference; }), 1);
}

void RMSE::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  const auto square = [](auto difference) { return difference * difference; };
  for (size_t i = 0; i < labels.size(); ++i) count(mean_distance(name(), labels[i], preds[i], square, true), 1);
}

void Loss::update(const std::vector<NDArray>&, const std::vector<NDArray>& preds) {
  for (const NDArray& pred : preds) {
    const NDArray host = on_host(pred);
    double sum = 0;
    visit_elements(host, [&](const auto* elements) {
      for (int64_t i = 0; i < host.size(); ++i) sum += static_cast<double>(elements[i]);
      // MXNet computes it with an operator: exact, and rounded once.
      sum = static_cast<double>(static_cast<Precision<std::remove_cvref_t<decltype(*elements)>>>(sum));
    });
    count(sum, host.size());
  }
}

}  // namespace symbind::metric
