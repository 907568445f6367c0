// Updates of a metric that its sums do not have yet: those whose arrays are on their way from a device to the host,
// which are counted when they have arrived, in the order in which they were added, and those that a device counts.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "symbind/train/arriving_array.h"
#include "symbind/train/device_count.h"

namespace symbind {

class EvalMetric;

class LaterUpdates {
 public:
  struct Arrays {
    std::vector<ArrivingArray> labels, preds;
  };
  // Also counts the metric's updates that have arrived, and waits for the first ones if there are many.
  static void add(EvalMetric& metric, Arrays arrays);
  // What the metric counts on a device; allocated at the first call.
  static std::shared_ptr<DeviceCount> count_on(EvalMetric& metric, Context context);
  void finish(EvalMetric& metric);  // counts all
  void discard(EvalMetric& metric);

  // May it be updated later? Only metrics of the built-in classes themselves: a derived class may read its sums
  // anywhere.
  static bool allowed_for(const EvalMetric& metric);

 private:
  static constexpr size_t most = 3;  // as many as a host that runs ahead of the device has in flight

  static LaterUpdates& of(EvalMetric& metric);
  void count_arrived(EvalMetric& metric);
  void count_first(EvalMetric& metric);
  void count_taken(EvalMetric& metric, const DeviceCount::Taken& taken);
  template <class Update>
  void count(const Update& update);

  std::recursive_mutex mutex_;  // a metric may be read from any thread
  bool counting_ = false;       // an update that is counted does not count others
  std::deque<Arrays> waiting_;
  std::map<Context, std::shared_ptr<DeviceCount>> on_devices_;
};

}  // namespace symbind
