// A store over several workers: processes that run the same program, each on its part of the data. The arrays of a
// worker's devices are summed by the worker, and their sums by the owner of the key (dist_sync.h, dist_async.h).
//
// Calls are made by one thread at a time. All workers create their stores in the same order and call init,
// set_optimizer, set_updater, set_gradient_compression, barrier and load_optimizer_states alike; saving states is for
// any one of them. The state of a store lasts as long as the job: what other workers may request remains when the
// object is destroyed.
#pragma once

#include "symbind/kvstore/agreement.h"
#include "symbind/kvstore/dist_member.h"
#include "symbind/kvstore/early_push.h"
#include "symbind/kvstore/replacement.h"
#include "symbind/kvstore/values.h"

namespace symbind {

class DistStore final : public KVStore, public EarlyPush, public Agreement, public Replacement {
 public:
  enum class Kind { sync, async, allreduce };
  enum class SumOn { cpu, device };  // of a worker's devices
  DistStore(std::string type, Kind kind, SumOn sum_on, std::shared_ptr<Peers> peers);

  void init(const Keys& keys, const std::vector<NDArray>& values) override;
  void broadcast(const Keys& keys, const std::vector<NDArray>& values, const Values& outs, int priority = 0) override;
  void push(const Keys& keys, const Values& values, int priority = 0) override;
  void pull(const Keys& keys, const Values& outs, int priority = 0) override;
  // Reads the pushed arrays directly, without a copy.
  void pushpull(const Keys& keys, const Values& values, const Values& outs, int priority = 0) override;
  bool may_push_early() const override;
  bool returns_sums() const override;
  // Compressed gradients that are not complete yet are left to pushpull().
  void push_early(const Keys& keys, const Values& values, int priority,
                  const DeviceEventPtr& complete = nullptr) override;
  void row_sparse_pull(const Keys& keys, const Values& outs, const Values& row_ids, int priority = 0) override;
  void set_optimizer(OptimizerPtr optimizer) override;
  void set_updater(UpdateFunction updater) override;
  void set_gradient_compression(const std::map<std::string, std::string>& params) override;
  std::string type() const override { return member_->type(); }
  bool is_distributed() const override { return true; }
  int workers_per_update() const override { return kind_ == Kind::sync ? num_workers() : 1; }
  bool has_optimizer() const override { return kind_ != Kind::allreduce; }
  int rank() const override { return member_->peers().rank(); }
  int num_workers() const override { return member_->peers().workers(); }
  void barrier() override;
  bool all_agree(const std::string& subject, bool own) override;
  int begin_epoch(int epoch, const std::function<std::string()>& write,
                  const std::function<void(const std::string&)>& read) override;
  int num_dead_node() const override { return member_->peers().lost(); }
  void send_command_to_servers(int head, const std::string& body) override;
  void set_command_handler(CommandHandler handler) override;
  std::string get_optimizer_states(bool dump_optimizer = false) const override;
  void set_optimizer_states(const SavedStates& states) override;

 private:
  struct Push {
    DistEntry* entry;
    std::vector<NDArray> arrays;
  };
  InUse in_use(std::string_view call) const {
    return InUse(busy_, call, "this store", "a distributed store serves one thread at a time");
  }
  void refuse_for_allreduce(const char* call) const;
  std::vector<Push> checked_pushes(const Keys& keys, const Values& values);
  std::vector<DistEntry*> checked_pulls(const Keys& keys, const Values& outs);
  void start(std::vector<Push> pushes, int priority, bool in_place, const DeviceEventPtr& complete = nullptr);
  std::optional<Context> gpu_for(const Push& push) const;
  void take_gradient(Push& push, bool in_place, const DeviceEventPtr& complete) const;

  const Kind kind_;
  const SumOn sum_on_;
  std::shared_ptr<DistMember> member_;
  KindOfKeys kind_of_keys_;
  mutable BusyFlag busy_;
};

}  // namespace symbind
