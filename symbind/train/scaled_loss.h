// The scaled loss of a module that computes in float16: a network whose losses are multiplied by a scale, the scale in
// the executors of that network, and the decision after each backward whether its step is taken. The host decides, or
// the GPU of a module by itself: then the scale is adapted in its memory, and the host learns of the decision when it
// needs to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbind/exec/following_work.h"
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
  // Are the sums of this store checked, instead of the gradients before the exchange? All workers then decide alike by
  // themselves.
  static bool checks_sums(const KVStore* store);

  // After the last step; waits for a decision that the host does not know yet.
  const LossScale& scale() const { return shared_->on_host(); }
  void set_scale(const LossScale& scale) { shared_->set(scale); }
  // The workers of a job start with the same scale.
  void begin_job(const KVStore& store) {
    if (store.num_workers() > 1) set_scale(LossScale());
  }
  // Modules that share an optimizer share the scale.
  void share(const ScaledLoss& other) { shared_ = other.shared_; }

  // Call before forward: writes the scale to executors that do not have the current value.
  void write(const DataParallelExecutorGroup& group);
  void forget_executors() {
    written_.clear();
    decision_ = nullptr;
  }

  // After backward, or the exchange where sums are checked: starts to check the gradients.
  void start_check(const DataParallelExecutorGroup& group);
  // Waits for the check, which it starts if that was not done; adapts the scale, and returns whether the step is taken:
  // not if a gradient is not finite, in this worker or in a synchronized one. Synchronized workers always have the same
  // scale.
  bool finish_step(const DataParallelExecutorGroup& group, KVStore* store);

  // The same without waiting, where all gradients are on the one context of the group: its device decides, and adapts
  // the scale. decide() returns that work, the same object as long as it is the same; decided() is called when it was
  // queued.
  class Decision;
  std::shared_ptr<const Decision> decide(const DataParallelExecutorGroup& group);
  std::function<bool()> decided();  // returns whether the step is taken, for which it waits

 private:
  struct OnDevice {
    NDArray scale, inverse;  // of the executor that ran last
    NDArray state;           // as adapt_loss_scale() updates it
  };
  class Shared {
   public:
    const LossScale& on_host();
    void set(const LossScale& scale);
    void finish_step(bool finite);                         // of a check on the host
    const OnDevice& on_device() const { return device_; }  // empty: only the host has the scale
    // The device has adapted the scale; `check` tells how.
    void follow(std::shared_ptr<const ArrivingArray> check, OnDevice device);
    uint64_t version() const { return version_; }  // changes when the value may have changed

   private:
    LossScale adapted(bool finite);

    LossScale scale_;                             // without the step of check_
    std::shared_ptr<const ArrivingArray> check_;  // of the last step, if the host does not know its result
    OnDevice device_;
    uint64_t version_ = 0;
    bool warned_ = false;  // that no step is taken any more
  };

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::vector<ArrivingArray> checks_;                          // per context: 1 if the gradients there are finite
  std::shared_ptr<const Decision> decision_;                   // that decide() returned
  std::vector<std::pair<const Executor*, uint64_t>> written_;  // per context: its executor and the version written last
};

// The work of a device that checks gradients and adapts the scale of the loss.
class ScaledLoss::Decision final : public FollowingWork {
 public:
  Decision(std::vector<NDArray> gradients, OnDevice scale);
  void queue() const override;
  void mark_written() const override;

  const NDArray& is_taken() const { return is_taken_; }  // on the device: 0 if not

 private:
  friend class ScaledLoss;
  bool is(const std::vector<NDArray>& gradients, const OnDevice& scale) const;

  std::vector<NDArray> gradients_;
  OnDevice scale_;
  NDArray is_taken_;
};

}  // namespace symbind
