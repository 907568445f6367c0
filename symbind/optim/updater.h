// An optimizer with the states of the parameters it has seen.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/files/states.h"
#include "symbind/optim/optimizer.h"

namespace SYMBIND_API symbind {

// An updater, like its optimizer, serves one thread at a time.
class Updater {
 public:
  explicit Updater(OptimizerPtr optimizer) : optimizer_(std::move(optimizer)) {}

  void operator()(const ParamKey& key, const NDArray& grad, const NDArray& weight);
  struct Item {
    ParamKey key;
    NDArray grad, weight;
  };
  // In one pass if the optimizer supports it. clip_global_norm bounds the joint norm of these gradients.
  void operator()(const std::vector<Item>& items);

  // The same as work that follows training steps, where the optimizer repeats it (Optimizer::repeated_update).
  FollowingWorkPtr repeated(const std::vector<Item>& items, const FollowingWorkPtr& last,
                            const NDArray& condition = {});

  const OptimizerPtr& optimizer() const { return optimizer_; }
  const std::map<ParamKey, StateTree>& states() const { return states_; }
  void set_state(const ParamKey& key, StateTree state) {
    const InUse use = in_use("set_state");
    states_.insert_or_assign(key, std::move(state));
  }
  void clear_states() {
    const InUse use = in_use("clear_states");
    states_.clear();
  }

  // The states as the bytes of a .states file, and back. States of another optimizer fail with both names, and nothing
  // changes. `dump_optimizer` adds its rate, decay, rescaling and clipping, which then replace those of the optimizer
  // that reads them. (These go into Symbind's trailer: MXNet's pickled optimizer is read, but not written, so that
  // MXNet can load the file.)
  std::string get_states(bool dump_optimizer = false) const;
  void set_states(std::string_view bytes, std::string_view source = "states");
  void set_states(const SavedStates& saved);

 private:
  StateTree& state_of(const ParamKey& key, const NDArray& weight);
  std::vector<Update> updates_of(const std::vector<Item>& items);
  double clipping(const std::vector<Item>& items);
  InUse in_use(std::string_view call) const {
    return InUse(busy_, call, "this updater", "call it from one thread, or give each thread an updater of its own");
  }

  OptimizerPtr optimizer_;
  std::map<ParamKey, StateTree> states_;
  bool warned_of_norm_ = false;
  mutable BusyFlag busy_;
};
using UpdaterPtr = std::shared_ptr<Updater>;

}  // namespace symbind
