// The scaled loss of a module that computes in float16: a network whose losses are multiplied by a scale, the scale in
// the executors of that network, and the decision after each backward whether its step is taken.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbind/kvstore/kvstore.h"
#include "symbind/train/executor_group.h"
#include "symbind/train/mixed_precision.h"

namespace symbind {

class ScaledLoss {
 public:
  // The network with its losses scaled. Gradients of `arguments` are divided by the scale again.
  static Symbol network(const Symbol& computed, const std::vector<std::string>& arguments);
  // Fails for a store of several workers that cannot decide together.
  static void check_store(const KVStore& store);

  double scale() const { return scale_->value(); }
  // The workers of a job begin with one scale.
  void begin_job(const KVStore& store) {
    if (store.num_workers() > 1) *scale_ = LossScale();
  }
  const std::shared_ptr<LossScale>& shared_scale() const { return scale_; }
  // Modules that share an optimizer share the scale.
  void share(const ScaledLoss& other) { scale_ = other.scale_; }

  // Before forward: into executors that do not have it yet, because they are new or it has changed.
  void write(const DataParallelExecutorGroup& group);
  void forget_executors() { written_.clear(); }

  // After backward: adapts the scale, and says whether the step is to be taken. It is not where a gradient is not
  // finite, in this worker or in one that is in step with it: such workers have the same scale all the time.
  bool finish_step(const DataParallelExecutorGroup& group, KVStore* store);

 private:
  std::shared_ptr<LossScale> scale_ = std::make_shared<LossScale>();
  std::vector<std::pair<const Executor*, double>> written_;  // per context: what its executor was told last
};

}  // namespace symbind
