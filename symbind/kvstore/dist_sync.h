// Synchronous exchanges: when all workers have pushed a key, the owner of each share sums their pushes in the order of
// the workers, updates the share once, and sends the result to all. Two rounds of messages between all pairs move as
// many bytes as an allreduce; but every element is summed in a fixed order, and the update is done once.
//
// Sums without an update, of arrays that all workers have on GPUs, are left to NCCL (gpu_exchange.h), in an order of
// its own. In its push a worker votes for that; otherwise its gradient is copied to the host when the exchange starts.
//
// A worker announces a push when its gradients are complete, even if a GPU still computes them when push() is called:
// exchanges start in the order in which gradients become complete, and never wait for a GPU.
#pragma once

#include "symbind/kvstore/dist_member.h"

namespace symbind {

class SyncMember : public DistMember {
 public:
  using DistMember::DistMember;
  void push(const std::vector<DistEntry*>& entries, int priority, const DeviceEventPtr& complete) override;
  std::vector<NDArray> pull(const std::vector<DistEntry*>& entries) override;
  std::optional<Context> gpu_for(Context context, DType dtype) const override;

 protected:
  void exchange_pushed(const Exchange& exchange) override;

  // An exchange in progress.
  struct Round {
    std::vector<DistEntry*> entries;
    int tag = 0;               // of gradients; the next is that of results
    size_t contributions = 0;  // missing contributions to own shares
    size_t others = 0;         // missing transfers
    bool updated = false;
  };
  // The steps of an exchange that differ in elastic jobs (dist_elastic.h): the shares that are each summed on one
  // worker, where their results are stored, what happens when this worker's shares are summed, and when all results
  // have arrived.
  virtual const Shares& summed_shares(const DistEntry& entry) const { return entry.shares; }
  virtual const NDArray& result_of(DistEntry& entry) { return entry.stored; }
  virtual void update(Round& round);  // on the thread that updates
  virtual void finish_round(const std::shared_ptr<Round>& round);

  void finish_entries(const Round& round);
  // The pushes of the workers, in their order.
  std::vector<NDArray> pushed_parts(DistEntry& entry, const Share& share);

 private:
  void sum_by_gpu(const std::shared_ptr<Round>& round);
  void start_on_host(const std::shared_ptr<Round>& round);
  void start(const std::shared_ptr<Round>& round);
  void publish(const std::shared_ptr<Round>& round);
  void count(const DistEntry& entry);
  NDArray sent_part(const DistEntry& entry, const Share& share) const;
  NDArray& received_part(DistEntry& entry, const Share& share, int worker) const;
};

}  // namespace symbind
