// Exchanges in step for elastic jobs (peers.h). As in dist_sync.h each share is summed by one worker; but it sends the
// sum to the others, and every worker updates every value. So all have the whole optimizer state, and losing a worker
// loses none of it. That costs memory and time for updates, but no additional messages.
//
// A worker that is a step behind after a regrouping is sent the sums of that step, and updates by itself. Sums are
// stored until the next exchange of their key. Gradients are stored until their exchange is finished: an interrupted
// exchange is repeated by the remaining workers. Sums are scaled to the number of workers for which the optimizer was
// set, so that the scale of gradients does not change.
//
// A new worker takes over worker 0's values, counts and states when it joins (begin_epoch).
#pragma once

#include "symbind/kvstore/dist_sync.h"

namespace symbind {

class ElasticMember final : public SyncMember {
 public:
  ElasticMember(std::shared_ptr<Peers> peers, std::string type, bool keys_need_init)
      : SyncMember(std::move(peers), std::move(type)), keys_need_init_(keys_need_init) {}
  int begin_epoch(int epoch, const std::function<std::string()>& write,
                  const std::function<void(const std::string&)>& read) override;

  // ---- Peers::Member ----
  bool can_regroup() const override { return true; }
  void regrouped() override;
  Progress progress() const override;
  void catch_up(const CatchUp& what, std::function<void()> done) override;
  bool waits_for(const Ready& ready) const override;
  void admitted() override { take_new_shares(); }
  void send_state(const std::vector<int>& to) override;

 protected:
  Shares divided(const DistEntry& entry) override;
  std::vector<int> holders_of_states() const override { return {peers_->rank()}; }
  const Shares& summed_shares(const DistEntry& entry) const override { return shares_.at(&entry); }
  const NDArray& result_of(DistEntry& entry) override;
  void update(Round& round) override;
  void finish_round(const std::shared_ptr<Round>& round) override;
  void own_message(int from, MessageType kind, MessageReader& text) override;

 private:
  struct State;
  void take_keys(State& state, MessageReader& text);
  void receive_state(int from, MessageReader& text);
  void take_state(const State& state);
  void apply(const std::vector<DistEntry*>& entries);
  void take_new_shares();

  const bool keys_need_init_;
  std::map<const DistEntry*, Shares> shares_;
  // Of worker 0, for new workers; of a new one, from worker 0.
  int epoch_ = 0;
  std::string program_state_;
};

}  // namespace symbind
