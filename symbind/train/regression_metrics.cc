// Metrics of the distance between numbers, and the mean of losses.
#include <cmath>

#include "symbind/train/metric_arrays.h"
#include "symbind/train/metrics.h"

namespace symbind::metric {
namespace {

Shape with_columns(const Shape& shape) { return shape.rank() == 1 ? Shape{shape[0], 1} : shape; }

// Of one type, since the loops are compiled for each: double where the two differ.
std::pair<NDArray, NDArray> of_one_type(const NDArray& label, const NDArray& pred) {
  if (label.dtype() == pred.dtype()) return {on_host(label), on_host(pred)};
  return {on_host(label).astype(DType::float64), on_host(pred).astype(DType::float64)};
}

// The mean of distance(label - prediction) over the elements of a pair. After the first axis, an extent of 1 on one
// side is repeated to meet the other's.
template <class Distance>
double mean_distance(const std::string& name, const NDArray& label, const NDArray& pred, Distance distance) {
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
  double sum = 0;
  visit_dtype(labels.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const auto *a = static_cast<const T*>(label_values), *b = static_cast<const T*>(pred_values);
    const auto between = [&](int64_t i, int64_t k) {
      return distance(static_cast<double>(a[i]) - static_cast<double>(b[k]));
    };
    if (wanted == given) {
      for (int64_t i = 0; i < size; ++i) sum += between(i, i);
      return;
    }
    for (int64_t i = 0; i < size; ++i) {
      int64_t in_label = 0, in_pred = 0, rest = i, label_step = 1, pred_step = 1;
      for (int axis = rank - 1; axis >= 0; --axis) {
        const int64_t index = rest % common[axis];
        rest /= common[axis];
        if (wanted[axis] != 1) in_label += index * label_step;
        if (given[axis] != 1) in_pred += index * pred_step;
        label_step *= wanted[axis];
        pred_step *= given[axis];
      }
      sum += between(in_label, in_pred);
    }
  });
  return sum / static_cast<double>(size);
}

}  // namespace

void MAE::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i)
    count(mean_distance(name(), labels[i], preds[i], [](double difference) { return std::abs(difference); }), 1);
}

void MSE::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i)
    count(mean_distance(name(), labels[i], preds[i], [](double difference) { return difference * difference; }), 1);
}

void RMSE::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  check_counts(name(), labels, preds);
  const auto square = [](double difference) { return difference * difference; };
  for (size_t i = 0; i < labels.size(); ++i) count(std::sqrt(mean_distance(name(), labels[i], preds[i], square)), 1);
}

void Loss::update(const std::vector<NDArray>&, const std::vector<NDArray>& preds) {
  for (const NDArray& pred : preds) {
    const NDArray host = on_host(pred);
    double sum = 0;
    visit_elements(host, [&](const auto* elements) {
      for (int64_t i = 0; i < host.size(); ++i) sum += static_cast<double>(elements[i]);
    });
    count(sum, host.size());
  }
}

}  // namespace symbind::metric
