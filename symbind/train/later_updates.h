// Updates of a metric whose arrays are on their way from a device to the host: they are counted when they have arrived,
// in the order in which they were added.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

#include "symbind/train/arriving_array.h"

namespace symbind {

class EvalMetric;

class LaterUpdates {
 public:
  struct Arrays {
    std::vector<ArrivingArray> labels, preds;
  };
  // Also counts the metric's updates that have arrived, and waits for the first ones if there are many.
  static void add(EvalMetric& metric, Arrays arrays);
  void finish(EvalMetric& metric);  // counts all
  void discard();

  // May it be updated later? Only metrics of the built-in classes themselves: a derived class may read its sums
  // anywhere.
  static bool allowed_for(const EvalMetric& metric);

 private:
  static constexpr size_t most = 3;  // as many as a host that runs ahead of the device has in flight

  void count_arrived(EvalMetric& metric);
  void count_first(EvalMetric& metric);

  std::recursive_mutex mutex_;  // a metric may be read from any thread
  bool counting_ = false;       // updates that count_first() makes do not count others
  std::deque<Arrays> waiting_;
};

}  // namespace symbind
