// The store of one process. A value is stored where its gradients are summed: on the CPU for `local`, on the device of
// the first array that was pushed for `device` and `nccl`.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "symbind/kvstore/compression.h"
#include "symbind/kvstore/gpu_group.h"
#include "symbind/kvstore/kvstore.h"
#include "symbind/kvstore/values.h"
#include "symbind/optim/updater.h"

namespace symbind {

class LocalStore : public KVStore {
 public:
  enum class SumOn { cpu, device };
  // Arrays of GPUs for which there is a group are summed and copied by it.
  LocalStore(std::string type, SumOn sum_on, GpuGroups groups = {})
      : type_(std::move(type)), sum_on_(sum_on), groups_(std::move(groups)) {}

  void init(const Keys& keys, const std::vector<NDArray>& values) override;
  void push(const Keys& keys, const Values& values, int priority = 0) override;
  void pull(const Keys& keys, const Values& outs, int priority = 0) override;
  void pushpull(const Keys& keys, const Values& values, const Values& outs, int priority = 0) override;
  void row_sparse_pull(const Keys& keys, const Values& outs, const Values& row_ids, int priority = 0) override;
  void set_optimizer(OptimizerPtr optimizer) override;
  void set_updater(UpdateFunction updater) override;
  void set_gradient_compression(const std::map<std::string, std::string>& params) override;
  std::string type() const override { return type_; }
  std::string get_optimizer_states(bool dump_optimizer = false) const override;
  void set_optimizer_states(const SavedStates& states) override;

 private:
  // What a key holds. All but the value are buffers that the first push allocates and later ones reuse.
  struct Entry {
    NDArray stored;
    bool placed = false;             // `stored` is on the device of the sums
    NDArray sum;                     // of a push, for the updater
    std::vector<NDArray> copies;     // of arrays that cannot be read from there
    std::vector<NDArray> residuals;  // per position in the pushed list
    std::vector<NDArray> words;      // likewise
    NDArray host_sum;                // of compressed gradients, before it is copied to a GPU
  };
  // The arrays of one key in a push.
  struct Push {
    const ParamKey* key;
    Entry* entry;
    std::vector<NDArray> arrays;
  };

  Entry& entry_of(const ParamKey& key, const char* call);
  std::vector<Push> checked_pushes(const Keys& keys, const Values& values);
  void check_pull(const Keys& keys, const Values& outs);
  bool updates() const { return updater_ || update_function_; }
  void place(Entry& entry, const NDArray& first) const;
  GpuGroup* group_of(const std::vector<NDArray>& arrays, const NDArray& stored) const;
  std::vector<NDArray> sums_of(std::vector<Push>& pushes) const;
  NDArray place_of_sum(Push& push) const;
  void sum_into(const NDArray& out, Push& push) const;
  void sum_compressed(const NDArray& out, Push& push) const;

  const std::string type_;
  const SumOn sum_on_;
  const GpuGroups groups_;
  // One call at a time; recursive since an updater may call the store.
  mutable std::recursive_mutex mutex_;
  std::map<ParamKey, Entry> entries_;
  KindOfKeys kind_;
  UpdaterPtr updater_;  // at most one of these two is set
  UpdateFunction update_function_;
  std::optional<GradientCompression> compression_;
};

}  // namespace symbind
