#include "symbind/train/later_updates.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "symbind/train/metric_arrays.h"
#include "symbind/train/metrics.h"

namespace symbind {

bool LaterUpdates::allowed_for(const EvalMetric& metric) {
  const auto is_one_of = [&]<class... Metrics>() { return ((typeid(metric) == typeid(Metrics)) || ...); };
  using namespace symbind::metric;
  return is_one_of.operator()<Accuracy, TopKAccuracy, F1, MCC, CrossEntropy, NegativeLogLikelihood, Perplexity, MAE,
                              MSE, RMSE, Loss, Torch, Caffe, PearsonCorrelation, PCC>();
}

LaterUpdates& LaterUpdates::of(EvalMetric& metric) {
  if (!metric.later_) metric.later_ = std::make_unique<LaterUpdates>();
  return *metric.later_;
}

std::shared_ptr<DeviceCount> LaterUpdates::count_on(EvalMetric& metric, Context context) {
  LaterUpdates& updates = of(metric);
  const std::lock_guard lock(updates.mutex_);
  std::shared_ptr<DeviceCount>& count = updates.on_devices_[context];
  if (!count) count = std::make_shared<DeviceCount>(context);
  return count;
}

void LaterUpdates::add(EvalMetric& metric, Arrays arrays) {
  LaterUpdates& updates = of(metric);
  const std::lock_guard lock(updates.mutex_);  // first: a thread that reads the metric has both until it is done
  const InUse use = metric.changing("update");
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
  const auto has_added = [](const auto& entry) { return entry.second->has_added(); };
  if (counting_ || (waiting_.empty() && std::ranges::none_of(on_devices_, has_added))) return;
  // If another thread updates the metric, this fails before anything is taken, and all is counted later.
  const InUse use = metric.changing("get");
  while (!waiting_.empty()) count_first(metric);
  for (const auto& [context, on_device] : on_devices_)
    if (const auto taken = on_device->take()) count_taken(metric, *taken);
}

void LaterUpdates::discard(EvalMetric& metric) {
  const std::lock_guard lock(mutex_);
  const InUse use = metric.changing("reset");
  waiting_.clear();
  for (const auto& [context, on_device] : on_devices_) on_device->discard();
}

template <class Update>
void LaterUpdates::count(const Update& update) {
  counting_ = true;
  try {
    update();
  } catch (...) {
    counting_ = false;
    throw;
  }
  counting_ = false;
}

void LaterUpdates::count_first(EvalMetric& metric) {
  const Arrays first = std::move(waiting_.front());
  waiting_.pop_front();  // even if it fails, so that it fails once
  const auto on_host = [](const std::vector<ArrivingArray>& arriving) {
    std::vector<NDArray> arrays;
    for (const ArrivingArray& each : arriving) arrays.push_back(each.get());
    return arrays;
  };
  count([&] { metric.update(on_host(first.labels), on_host(first.preds)); });
}

void LaterUpdates::count_taken(EvalMetric& metric, const DeviceCount::Taken& taken) {
  count([&] { metric.count(taken.sum, taken.instances); });
  if (taken.failed) metric::fail_label(metric.name(), taken.label, taken.classes);
}

}  // namespace symbind
