// One process's part of a distributed store: its values, which of them it updates, and how it handles requests of other
// processes. Two kinds differ in how a push reaches the values: dist_sync.h and dist_async.h. The store that users see
// is dist.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbind/core/device_event.h"
#include "symbind/core/transfer.h"
#include "symbind/kvstore/compression.h"
#include "symbind/kvstore/kvstore.h"
#include "symbind/kvstore/peers.h"
#include "symbind/kvstore/shares.h"
#include "symbind/optim/updater.h"

namespace symbind {

// A key. Between a push and the end of its exchange it belongs to the threads of Peers, else to the store's caller.
struct DistEntry {
  ParamKey key = 0;
  NDArray stored;          // on the CPU
  bool is_on_gpu = false;  // the value is `device_sum`, and `stored` is out of date
  Shares shares;
  int64_t pushes = 0;
  int64_t done = -1;     // the last push whose exchange is finished here, 0: the initial value; under the lock of Peers
  bool pending = false;  // under the lock of Peers
  bool early = false;    // pushed by push_early() for the next pushpull()

  // What this worker pushes: the sum over its devices, or its compressed words.
  NDArray gradient, words;
  bool by_gpu = false;                 // the gradient is on the GPU on which the workers may sum it, to device_sum
  bool after_queue = false;            // the GPU must finish its queued work before that
  std::shared_ptr<Download> download;  // of a gradient that is on its way to the host
  // Buffers that the first push allocates and later ones reuse.
  NDArray local_sum, device_sum, residual, total, pulled;
  bool is_sum_shared = false;  // device_sum is an array of the store's caller
  std::vector<NDArray> copies;
  std::vector<NDArray> received;  // by worker: its part of the own share, or the words

  const Share* share_of(int process) const;
};

class DistMember : public Peers::Member, public std::enable_shared_from_this<DistMember> {
 public:
  DistMember(std::shared_ptr<Peers> peers, std::string type) : peers_(std::move(peers)), type_(std::move(type)) {}
  void join() { number_ = peers_->join(shared_from_this()); }

  Peers& peers() const { return *peers_; }
  const std::string& type() const { return type_; }

  // ---- for the store's caller ----
  bool has(const ParamKey& key) const;
  DistEntry& entry_of(const ParamKey& key, const char* call);
  void init(const std::vector<ParamKey>& keys, const std::vector<NDArray>& values);  // by all workers
  void barrier();
  bool all_agree(const std::string& subject, bool own);  // votes yes or no; did every worker vote yes?
  // The entries have their gradients, or will have them when a GPU has reached `complete`; the exchange starts when all
  // workers have theirs.
  virtual void push(const std::vector<DistEntry*>& entries, int priority, const DeviceEventPtr& complete) = 0;
  virtual std::vector<NDArray> pull(const std::vector<DistEntry*>& entries) = 0;
  void finish(const std::vector<DistEntry*>& entries);  // waits for the exchanges of these
  void finish_all();
  // The GPU on which an array of this context is summed over the workers; none: it is exchanged through the host.
  virtual std::optional<Context> gpu_for(Context, DType) const { return std::nullopt; }

  struct Update {  // how pushed values change the stored ones: at most one of these is set
    UpdaterPtr updater;
    KVStore::UpdateFunction function;
    UpdateUnit unit() const;
    explicit operator bool() const { return updater || function; }
  };
  const Update& update() const { return update_; }
  void set_update(Update update);
  void set_compression(const GradientCompression& compression);
  const std::optional<GradientCompression>& compression() const { return compression_; }
  SavedStates states(bool dump_optimizer);
  void set_states(const SavedStates& states);
  // New workers join an elastic job here (replacement.h).
  virtual int begin_epoch(int epoch, const std::function<std::string()>& /*write*/,
                          const std::function<void(const std::string&)>& /*read*/) {
    return epoch;
  }
  void set_command_handler(KVStore::CommandHandler handler);
  void send_command(int head, const std::string& body);

  // ---- Peers::Member ----
  void exchange(const Exchange& exchange) override;
  void message(int from, MessageReader& text) override;
  std::string awaited() const override;
  void regrouped() override;

 protected:
  enum class MessageType : uint8_t { states, command, push, pull, reply, keys, optimizer, compression, loaded, joined };
  // The processes that hold the keys.
  virtual Owners owners() const { return {0, peers_->workers()}; }
  // Hooks that inform servers of changes; called by all workers: the first before the change, the others after it.
  virtual void before_division() {}
  virtual void keys_were_made(const std::vector<DistEntry*>& /*entries*/) {}
  virtual void update_was_set() {}
  virtual void compression_was_set() {}
  virtual void states_were_set(const SavedStates& /*states*/) {}
  const std::vector<DistEntry*>& entries_in_order() const { return in_order_; }
  // On the thread that updates.
  void take_states(const SavedStates& states);
  void take_share(const ParamKey& key, const NDArray& stored, const Share& share);
  virtual void finish_pushes() {}  // before a barrier: pushes of this worker must be visible after it
  virtual void exchange_pushed(const Exchange& exchange) = 0;
  virtual Shares divided(const DistEntry& entry);      // which worker updates what of it
  virtual std::vector<int> holders_of_states() const;  // the processes that together hold all states
  virtual void own_message(int from, MessageType kind, MessageReader& text);
  DistEntry& entry_named(const std::string& name);
  std::string settings() const;                 // must be equal on all workers
  void require_worker(const char* call) const;  // throws on a worker that is still joining
  void update_now(std::vector<Updater::Item> items);
  NDArray summed(DistEntry& entry, const Share& share, std::span<const NDArray> inputs, bool words, const NDArray& out);

  // Sends every process of `texts` its message and waits for the replies; `what` is for errors.
  std::map<int, std::vector<std::byte>> ask(MessageType kind, const std::map<int, std::vector<std::byte>>& texts,
                                            const std::string& what = "");
  void reply(int to, uint64_t request, std::vector<std::byte> text);
  void on_updater(std::function<void()> job);

  void divide();

  // Exchanges without values, of one kind: how many this worker has announced, and how many are finished.
  struct Count {
    uint64_t announced = 0, finished = 0;
  };
  // Announces the next barrier, vote or admission, and waits until all workers have announced it.
  void synchronize(ExchangeKind kind, std::vector<std::string> keys = {}, bool vote = true);
  template <class Self>
  static auto& count_of(Self& self, ExchangeKind kind) {
    if (kind == ExchangeKind::barrier) return self.barriers_;
    return kind == ExchangeKind::vote ? self.votes_ : self.admissions_;
  }

  const std::shared_ptr<Peers> peers_;
  const std::string type_;
  int number_ = 0;
  Update update_;  // changed on the thread that updates
  std::optional<GradientCompression> compression_;
  std::map<std::string, DistEntry> entries_;  // under the lock of Peers, as long as it grows
  std::vector<DistEntry*> in_order_;          // of their init, the same for all workers
  Division division_{Owners{}};
  // Under the lock of Peers.
  Count barriers_, votes_, admissions_;
  bool unanimous_ = false;     // result of the last vote
  int workers_of_update_ = 1;  // number of workers when it was set
  int loads_ = 0;              // of states

 private:
  struct Question {
    size_t missing = 0;
    bool abandoned = false;  // workers were lost
    std::map<int, std::vector<std::byte>> replies;
  };
  void exchange_init(const Exchange& exchange);
  void restore_state(const DistEntry& entry);
  void answer_states(int from, uint64_t request);

  std::map<std::string, StateTree> loaded_;  // states of keys that init has not seen yet
  std::string subject_;                      // of the last vote; under the lock of Peers
  uint64_t questions_ = 0;
  std::map<uint64_t, Question> open_;  // under the lock of Peers
  std::string asked_;                  // subject of the last request, while it is open; likewise
  KVStore::CommandHandler handler_;    // of the thread that updates
};

std::span<const std::byte> bytes_of(const NDArray& array);
std::span<std::byte> mutable_bytes_of(const NDArray& array);

}  // namespace symbind
