// Aggregates gradients over devices and workers: values by key, pushed from and pulled to any number of arrays.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/core/param_key.h"
#include "symbind/optim/optimizer.h"

namespace SYMBIND_API symbind {

struct SavedStates;

class KVStore {
 public:
  virtual ~KVStore() = default;
  // local, local_update_cpu, local_allreduce_cpu: sums on the CPU. device, local_allreduce_device: sums where the
  // arrays are; nccl: the same, by NCCL. dist_sync, dist_device_sync, dist_sync_device, dist_async, dist_device_async,
  // dist_async_device and horovod sum over the workers of a job that mpirun started (docs/distributed.md): every worker
  // creates its stores in the same order. They serve one thread at a time.
  static std::shared_ptr<KVStore> create(const std::string& type = "local");
  // Ends this process's part in a distributed job, as the end of the program does: tells the other workers that it
  // leaves, serves them until all have left, and returns. Does nothing without a job.
  static void leave_job();
  // The main loop of a server, a process of the job whose DMLC_ROLE is "server": holds the keys of the workers'
  // dist_async stores, applies what they push, and returns when they have all left; throws where the job fails.
  // create() does so for any distributed kind, and then ends the program: a server runs the program of the workers up
  // to there.
  static void serve_job();
  // Does a store of this type sum over the workers of a job? Fails, listing the known types, on an unknown one.
  static bool is_distributed(const std::string& type);

  using Keys = std::vector<ParamKey>;
  using Values = std::vector<std::vector<NDArray>>;  // per key: one array per device

  // With several workers, all must call it, and all get the value of worker 0.
  virtual void init(const Keys& keys, const std::vector<NDArray>& values) = 0;
  // init, then pull.
  virtual void broadcast(const Keys& keys, const std::vector<NDArray>& values, const Values& outs, int priority = 0);
  // The sum over a key's arrays goes to the updater, or without one replaces the stored value. Over several workers
  // push returns before the exchange, and pull waits for it; keys of a higher priority are exchanged first.
  virtual void push(const Keys& keys, const Values& values, int priority = 0) = 0;
  virtual void pull(const Keys& keys, const Values& outs, int priority = 0) = 0;
  virtual void pushpull(const Keys& keys, const Values& values, const Values& outs, int priority = 0);
  virtual void row_sparse_pull(const Keys& keys, const Values& outs, const Values& row_ids, int priority = 0) = 0;

  // From now on the store updates its values with this optimizer.
  virtual void set_optimizer(OptimizerPtr optimizer) = 0;
  using UpdateFunction = std::function<void(const ParamKey& key, const NDArray& pushed, const NDArray& stored)>;
  virtual void set_updater(UpdateFunction updater) = 0;

  // {{"type", "2bit"}, {"threshold", "0.5"}}
  virtual void set_gradient_compression(const std::map<std::string, std::string>& params) = 0;

  virtual std::string type() const = 0;
  // Over several workers, each of which starts with the parameters of the first.
  virtual bool is_distributed() const { return false; }
  // The number of workers whose gradients one update adds up: Module divides the sum by it.
  virtual int workers_per_update() const { return 1; }
  virtual bool has_optimizer() const { return true; }  // set_optimizer() is supported
  virtual int rank() const { return 0; }
  virtual int num_workers() const { return 1; }
  virtual void barrier() {}
  // Workers that were lost and have not come back.
  virtual int num_dead_node() const { return 0; }
  // Calls the handler of every worker's store with these arguments, on a thread of the store. Where servers hold the
  // keys, the servers receive the command and log it.
  virtual void send_command_to_servers(int head, const std::string& body);
  using CommandHandler = std::function<void(int head, const std::string& body)>;
  virtual void set_command_handler(CommandHandler handler);

  // The states as the bytes of a .states file, and back; keyed as the values are. With several workers, any one may get
  // the states of all, but every worker must set them.
  virtual std::string get_optimizer_states(bool dump_optimizer = false) const = 0;
  virtual void set_optimizer_states(const SavedStates& states) = 0;
  void save_optimizer_states(const std::string& path, bool dump_optimizer = false) const;
  void load_optimizer_states(const std::string& path);

 private:
  CommandHandler command_handler_;
};
using KVStorePtr = std::shared_ptr<KVStore>;

}  // namespace symbind
