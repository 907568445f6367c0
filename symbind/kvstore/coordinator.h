// Decides which exchanges may start. Workers reach their pushes at different times and in different orders; worker 0
// collects what each is ready for, and when all are ready for an exchange, all perform it, in the same order. It also
// tracks which workers are late. Bookkeeping only: messages are sent by peers.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace symbind {

enum class ExchangeKind : uint8_t { init, push, barrier, vote, admission };

// An announcement of a worker: it is ready to exchange these keys.
struct Ready {
  int store = 0;  // by number, from the first that was created
  ExchangeKind kind = ExchangeKind::push;
  std::vector<std::string> keys;
  std::vector<uint64_t> bytes;       // of each key
  std::vector<std::string> details;  // of each key, or one for all: must be equal on all workers
  int priority = 0;
  bool together = false;         // all keys in one exchange, in the order of worker 0
  bool vote = true;              // of a vote, whose key is its subject
  std::vector<int64_t> steps{};  // of each key, or the number of the barrier, vote or admission; known to this worker
};

// An exchange that all workers perform now.
struct Exchange {
  uint64_t number = 0;  // from 1, over all stores
  int store = 0;
  ExchangeKind kind = ExchangeKind::push;
  std::vector<std::string> keys;
  bool unanimous = true;  // of a vote: did all vote yes?
  bool admits = false;    // of an admission: do new workers join?
};

class Coordinator {
 public:
  using Clock = std::chrono::steady_clock;
  // `hosts` of the workers, for messages.
  explicit Coordinator(std::vector<std::string> hosts);

  // Adds workers; requires that nothing is being exchanged.
  void admit(std::vector<std::string> hosts);
  // Throws an Error that names both workers if they disagree about an exchange.
  void add(int worker, const Ready& ready, Clock::time_point now = Clock::now());
  // The exchanges for which all are ready: keys of higher priority first, in pieces of about this size.
  std::vector<Exchange> take(size_t bytes_each = size_t{16} << 20);

  // What others wait for because this worker is not ready for it: "key w at step 3". None: nothing.
  std::optional<std::string> missed(int worker) const;
  // "worker 1 on host b has not come to key w at step 3, for which worker 0 on host a waits; …"; empty: no worker
  // waits.
  std::string disagreements() const;
  // A warning about exchanges that some workers have been waiting for longer than `patience`, once for each step;
  // empty: none.
  std::string slow(std::chrono::seconds patience, Clock::time_point now = Clock::now());
  std::string worker_text(int worker) const;  // "worker 1 on host b"
  uint64_t exchanges() const { return exchanges_; }

 private:
  struct Offer {
    uint64_t order;  // of arrival
    int priority;
    std::vector<std::string> keys;
    uint64_t bytes;
    std::string detail;
    bool vote;
    Clock::time_point since;
  };
  // Keys that are exchanged as one, and the workers that are ready for that; a worker may be several steps ahead of
  // others.
  struct Unit {
    int store = 0;
    ExchangeKind kind = ExchangeKind::push;
    std::vector<std::deque<Offer>> offers;
    size_t workers_ready = 0;
    uint64_t step = 1;
    bool warned = false;
  };
  void offer(int worker, Unit& unit, Offer given);
  static std::string text_of(const Unit& unit);
  std::vector<int> absent(const Unit& unit) const;
  const Offer* first_offer(const Unit& unit, int* worker = nullptr) const;
  const Unit* oldest_missing(int worker) const;

  std::vector<std::string> hosts_;
  std::map<std::string, Unit> units_;
  std::vector<Unit*> ready_;
  uint64_t arrived_ = 0, exchanges_ = 0;
};

}  // namespace symbind
