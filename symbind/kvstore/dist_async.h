// Asynchronous workers: a push goes to the owners of its keys, which apply it when it arrives, and a pull requests
// their current values. A worker's own pushes are applied before its later pulls are answered. The owners are the
// servers of the job, and the workers where it has none; workers that have ended keep serving what they own until all
// have ended.
//
// A server uses this class, too. It runs no training program: worker 0 forwards the calls of the workers' programs to
// it.
#pragma once

#include "symbind/kvstore/dist_member.h"

namespace symbind {

class AsyncMember final : public DistMember {
 public:
  using DistMember::DistMember;
  void push(const std::vector<DistEntry*>& entries, int priority, const DeviceEventPtr& complete) override;
  std::vector<NDArray> pull(const std::vector<DistEntry*>& entries) override;

 protected:
  Owners owners() const override;
  void before_division() override;
  void keys_were_made(const std::vector<DistEntry*>& entries) override;
  void update_was_set() override;
  void compression_was_set() override;
  void states_were_set(const SavedStates& states) override;
  void finish_pushes() override;
  void exchange_pushed(const Exchange& exchange) override;
  void own_message(int from, MessageType kind, MessageReader& text) override;

 private:
  void apply(MessageReader& text);
  void answer_pull(int from, MessageReader& text);
  void ask_owners(MessageType kind, const std::vector<std::byte>& text);  // the same to all; waits for replies

  // ---- worker 0, to the servers ----
  bool informs_servers() const { return peers_->rank() == 0 && peers_->servers() > 0; }
  void send_shares(const std::vector<DistEntry*>& entries);
  // ---- a server, of worker 0 ----
  void take_keys(int from, MessageReader& text);
  void take_optimizer(int from, MessageReader& text);
  void take_compression(int from, MessageReader& text);
  void take_loaded(int from, MessageReader& text);
  void do_for(int from, uint64_t request, std::function<void()> job);  // and then reply

  bool has_pushed_ = false;  // since the last barrier
};

}  // namespace symbind
