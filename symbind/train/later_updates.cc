#include "symbind/train/later_updates.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "symbind/train/metrics.h"

namespace symbind {

bool LaterUpdates::allowed_for(const EvalMetric& metric) {
  const auto is_one_of = [&]<class... Metrics>() { return ((typeid(metric) == typeid(Metrics)) || ...); };
  using namespace symbind::metric;
  return is_one_of.operator()<Accuracy, TopKAccuracy, F1, MCC, CrossEntropy, NegativeLogLikelihood, Perplexity, MAE,
                              MSE, RMSE, Loss, Torch, Caffe, PearsonCorrelation, PCC>();
}

void LaterUpdates::add(EvalMetric& metric, Arrays arrays) {
  if (!metric.later_) metric.later_ = std::make_unique<LaterUpdates>();
  LaterUpdates& updates = *metric.later_;
  const std::lock_guard lock(updates.mutex_);
  updates.waiting_.push_back(std::move(arrays));
  updates.count_arrived(metric);
}

void LaterUpdates::count_arrived(EvalMetric& metric) {
  const auto arrived = [](const std::vector<ArrivingArray>& all) {
    return std::ranges::all_of(all, [](const ArrivingArray& each) { return each.arrived(); });
  };
  while (waiting_.size() > most ||
         (!waiting_.empty() && arrived(waiting_.front().labels) && arrived(waiting_.front().preds)))
    count_first(metric);
}

void LaterUpdates::finish(EvalMetric& metric) {
  const std::lock_guard lock(mutex_);
  if (counting_) return;
  while (!waiting_.empty()) count_first(metric);
}

void LaterUpdates::discard() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
}

void LaterUpdates::count_first(EvalMetric& metric) {
  const Arrays first = std::move(waiting_.front());
  waiting_.pop_front();  // even if it fails, so that it fails once
  const auto on_host = [](const std::vector<ArrivingArray>& arriving) {
    std::vector<NDArray> arrays;
    for (const ArrivingArray& each : arriving) arrays.push_back(each.get());
    return arrays;
  };
  counting_ = true;
  try {
    metric.update(on_host(first.labels), on_host(first.preds));
  } catch (...) {
    counting_ = false;
    throw;
  }
  counting_ = false;
}

}  // namespace symbind
