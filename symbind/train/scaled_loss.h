// The scaled loss of a module that computes in float16: a network whose losses are multiplied by a scale, the scale in
// the executors of that network, and the decision after each backward whether its step is taken.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbind/kvstore/kvstore.h"
#include "symbind/train/arriving_array.h"
#include "symbind/train/executor_group.h"
#include "symbind/train/mixed_precision.h"

namespace symbind {

class ScaledLoss {
 public:
  // The network with its losses scaled. Gradients of `arguments` are divided by the scale again.
  static Symbol network(const Symbol& computed, const std::vector<std::string>& arguments);
  // Fails for a store of several workers whose workers cannot decide jointly.
  static void check_store(const KVStore& store);

  double scale() const { return scale_->value(); }
  // The workers of a job start with the same scale.
  void begin_job(const KVStore& store) {
    if (store.num_workers() > 1) *scale_ = LossScale();
  }
  const std::shared_ptr<LossScale>& shared_scale() const { return scale_; }
  // Modules that share an optimizer share the scale.
  void share(const ScaledLoss& other) { scale_ = other.scale_; }

  // Call before forward: writes the scale to executors that do not have the current value.
  void write(const DataParallelExecutorGroup& group);
  void forget_executors() { written_.clear(); }

  // After backward: starts to check the gradients.
  void start_check(const DataParallelExecutorGroup& group);
  // Waits for the check, which it starts if that was not done; adapts the scale, and returns whether the step is taken:
  // not if a gradient is not finite, in this worker or in a synchronized one. Synchronized workers always have the same
  // scale.
  bool finish_step(const DataParallelExecutorGroup& group, KVStore* store);

 private:
  std::shared_ptr<LossScale> scale_ = std::make_shared<LossScale>();
  std::vector<ArrivingArray> checks_;                        // per context: 1 if its gradients are finite
  std::vector<std::pair<const Executor*, double>> written_;  // per context: its executor and the value last written
};

}  // namespace symbind
