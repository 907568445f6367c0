// Updates of a metric whose arrays are on their way from a device to the host: they are counted when they have arrived,
// in the order in which they were added.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/core/transfer.h"

namespace symbind {

class EvalMetric;

// The values that an array has when this is made, on the host.
class ArrivingArray {
 public:
  explicit ArrivingArray(const NDArray& array);
  ArrivingArray(const Shape& shape, DType dtype, std::shared_ptr<Download> download)
      : shape_(shape), dtype_(dtype), download_(std::move(download)) {}

  bool arrived() const { return !download_ || download_->arrived(); }
  NDArray get() const;  // waits

 private:
  Shape shape_;
  DType dtype_;
  std::shared_ptr<Download> download_;
  NDArray copy_;  // of an array in host memory
};

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
