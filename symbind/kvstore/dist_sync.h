// Exchanges in step: when all workers have pushed a key, the owner of each share adds what they pushed in the order of
// the workers, updates the share once, and sends the result to all. Two rounds of messages between all pairs, which
// move as many bytes as an allreduce; but every element is added in a fixed order, and the update is done once.
#pragma once

#include "symbind/kvstore/dist_member.h"

namespace symbind {

class SyncMember final : public DistMember {
 public:
  using DistMember::DistMember;
  void push(const std::vector<DistEntry*>& entries, int priority) override;
  std::vector<NDArray> pull(const std::vector<DistEntry*>& entries) override;

 protected:
  void exchange_pushed(const Exchange& exchange) override;

 private:
  // An exchange that is going on.
  struct Round {
    std::vector<DistEntry*> entries;
    int tag = 0;               // of gradients; the next is that of values
    size_t contributions = 0;  // to own shares, that are missing
    size_t others = 0;         // transfers that are missing
    bool updated = false;
  };
  void start(const std::shared_ptr<Round>& round);
  void update(Round& round);
  void publish(const std::shared_ptr<Round>& round);
  void finish_round(Round& round);
  void count(const DistEntry& entry);
  NDArray sent_part(const DistEntry& entry, const Share& share) const;
  NDArray& received_part(DistEntry& entry, const Share& share, int worker) const;
};

}  // namespace symbind
