#include "tests/kvstore/thread_transport.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "symbind/kvstore/dist.h"
#include "symbind/kvstore/server.h"

namespace symbind::testing {

class Wires {
 public:
  Wires(int number, int servers)
      : workers(number),
        processes(number + servers),
        lost(static_cast<size_t>(processes), false),
        closed(static_cast<size_t>(processes), false) {}

  struct Message {
    int from, tag;
    std::vector<std::byte> data;
  };
  const int workers, processes;  // at the beginning
  std::mutex mutex;
  // By process, in the numbers they began with, which also name senders.
  std::map<int, std::deque<Message>> inbox;
  std::vector<bool> lost;
  std::vector<bool> closed;  // left an orderly job

  // ---- for jobs that go on without those that are lost ----
  bool tells = false;           // that a worker is gone
  std::vector<int> left;        // that regrouped last
  uint64_t groupings = 0;       // how often they have
  std::vector<int> regrouping;  // that wait for the others to do so
  bool lets_in = false;         // the first of those does
  std::condition_variable changed;

  // ---- threads in place of lost workers ----
  std::function<void()> start;  // one
  int wanted = 0;               // that were started for process 0
  std::vector<int> waiting;     // to be let in

  int size() const { return static_cast<int>(lost.size()); }
  // Of the job; neither those that have left nor those that wait.
  std::vector<int> living() const {
    std::vector<int> all;
    for (int i = 0; i < size(); ++i)
      if (!lost[static_cast<size_t>(i)] && !closed[static_cast<size_t>(i)] &&
          std::count(waiting.begin(), waiting.end(), i) == 0)
        all.push_back(i);
    return all;
  }
  void admit() {
    left.insert(left.end(), waiting.begin(), waiting.end());
    waiting.clear();
    wanted = 0;
  }
};

namespace {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Wires> wires, int rank) : wires_(std::move(wires)), first_rank_(rank) {
    for (int i = 0; i < wires_->processes; ++i) group_.push_back(i);
  }
  // In place of a lost one: waits to be let in.
  explicit ThreadTransport(std::shared_ptr<Wires> wires)
      : wires_(std::move(wires)), first_rank_(arrival(*wires_)), is_replacement_(true) {
    std::unique_lock lock(wires_->mutex);
    const bool in_time = wires_->changed.wait_for(lock, std::chrono::seconds(20), [&] {
      return std::count(wires_->waiting.begin(), wires_->waiting.end(), first_rank_) == 0;
    });
    const auto& left = wires_->left;
    require(in_time && std::count(left.begin(), left.end(), first_rank_) > 0, "nobody waits for this thread any more");
    group_ = left;
  }
  ~ThreadTransport() override {
    if (closed_ || !wires_->tells) return;
    const std::lock_guard lock(wires_->mutex);
    wires_->lost[static_cast<size_t>(first_rank_)] = true;
    wires_->changed.notify_all();
  }
  int rank() const override { return rank_of(first_rank_); }
  int size() const override { return static_cast<int>(group_.size()); }
  std::string host(int rank) const override { return "thread" + std::to_string(first(rank)); }

  bool is_server(int rank) const override { return first(rank) >= wires_->workers && first(rank) < wires_->processes; }

  Ticket send(int to, int tag, std::span<const std::byte> data) override {
    {
      const std::lock_guard lock(wires_->mutex);
      check_peers();
      const int receiver = first(to);
      const bool arrives =
          !wires_->lost[static_cast<size_t>(first_rank_)] && !wires_->lost[static_cast<size_t>(receiver)];
      if (arrives) wires_->inbox[receiver].push_back({first_rank_, tag, {data.begin(), data.end()}});
    }
    sent_.push_back(next_);
    return next_++;
  }

  Ticket receive(int from, int tag, std::span<std::byte> into) override {
    expected_.push_back({next_, first(from), tag, into});
    return next_++;
  }

  std::vector<Ticket> completed() override {
    const std::lock_guard lock(wires_->mutex);  // a message that comes meanwhile is not for a later one
    check_peers();
    std::vector<Ticket> done = std::move(sent_);
    sent_.clear();
    std::erase_if(expected_, [&](const Expected& each) {
      const auto message =
          take([&](const Wires::Message& one) { return one.from == each.from && one.tag == each.tag; });
      if (!message) return false;
      require(message->data.size() == each.into.size(), "a message of ", message->data.size(), " bytes came where ",
              each.into.size(), " were expected");
      std::copy(message->data.begin(), message->data.end(), each.into.begin());
      done.push_back(each.ticket);
      return true;
    });
    return done;
  }

  std::optional<Message> next_message() override {
    const std::lock_guard lock(wires_->mutex);
    check_peers();
    auto message = take([](const Wires::Message& one) { return one.tag == message_tag; });
    if (!message) return std::nullopt;
    return Message{rank_of(message->from), std::move(message->data)};
  }

  bool can_regroup() const override { return wires_->tells; }

  // The last of those that are left empties the inboxes; nobody sends before that.
  std::vector<int> regroup(bool let_in) override {
    std::unique_lock lock(wires_->mutex);
    const uint64_t before = wires_->groupings;
    wires_->regrouping.push_back(first_rank_);
    if (rank() == 0) wires_->lets_in = let_in;
    wires_->changed.notify_all();
    wires_->changed.wait(lock, [&] {
      require(!wires_->lost[static_cast<size_t>(first_rank_)], "this thread is gone");
      if (wires_->groupings > before) return true;
      const std::vector<int> living = wires_->living();
      const bool all = std::all_of(living.begin(), living.end(), [&](int worker) {
        return std::count(wires_->regrouping.begin(), wires_->regrouping.end(), worker) > 0;
      });
      if (!all) return false;
      wires_->left = living;
      if (std::exchange(wires_->lets_in, false)) wires_->admit();
      ++wires_->groupings;
      wires_->regrouping.clear();
      wires_->inbox.clear();
      wires_->changed.notify_all();
      return true;
    });
    std::vector<int> former;
    for (const int worker : wires_->left)
      if (const int rank = rank_of(worker); rank < size()) former.push_back(rank);
    group_ = wires_->left;
    sent_.clear();
    expected_.clear();
    return former;
  }

  void start_replacements(int count) override {
    {
      const std::lock_guard lock(wires_->mutex);
      wires_->wanted = count;
    }
    for (int i = 0; i < count && wires_->start; ++i) wires_->start();
  }
  Replacements replacements() override {
    const std::lock_guard lock(wires_->mutex);
    if (wires_->wanted == 0) return Replacements::none;
    return static_cast<int>(wires_->waiting.size()) < wires_->wanted ? Replacements::starting : Replacements::waiting;
  }
  void drop_replacements() override {
    const std::lock_guard lock(wires_->mutex);
    wires_->wanted = 0;
    wires_->waiting.clear();
    wires_->changed.notify_all();
  }
  bool is_replacement() const override { return is_replacement_; }

  // A worker that is lost at this moment may make others regroup, which must not wait for this one.
  void close() override {
    closed_ = true;
    const std::lock_guard lock(wires_->mutex);
    wires_->closed[static_cast<size_t>(first_rank_)] = true;
    wires_->changed.notify_all();
  }

 private:
  struct Expected {
    Ticket ticket;
    int from, tag;
    std::span<std::byte> into;
  };

  static int arrival(Wires& wires) {
    const std::lock_guard lock(wires.mutex);
    wires.lost.push_back(false);
    wires.closed.push_back(false);
    wires.waiting.push_back(wires.size() - 1);
    return wires.waiting.back();
  }

  int first(int rank) const { return group_.at(static_cast<size_t>(rank)); }
  int rank_of(int first_rank) const {
    return static_cast<int>(std::find(group_.begin(), group_.end(), first_rank) - group_.begin());
  }

  // Throws where one of the group is gone, or another has begun to regroup.
  void check_peers() const {
    if (!wires_->tells) return;
    require(!wires_->lost[static_cast<size_t>(first_rank_)], "this thread is gone");
    for (const int worker : group_)
      if (wires_->lost[static_cast<size_t>(worker)]) throw PeerLost(rank_of(worker), "its thread is gone");
    if (!wires_->regrouping.empty()) throw PeerLost(PeerLost::unknown, "another thread said so");
  }

  template <class Fits>
  std::optional<Wires::Message> take(const Fits& fits) {
    auto& inbox = wires_->inbox[first_rank_];
    const auto found = std::find_if(inbox.begin(), inbox.end(), fits);
    if (found == inbox.end()) return std::nullopt;
    Wires::Message message = std::move(*found);
    inbox.erase(found);
    return message;
  }

  std::shared_ptr<Wires> wires_;
  const int first_rank_;
  const bool is_replacement_ = false;
  std::vector<int> group_;  // those of the workers that are left
  bool closed_ = false;
  Ticket next_ = 1;
  std::vector<Ticket> sent_;
  std::vector<Expected> expected_;
};

}  // namespace

std::shared_ptr<Wires> make_wires(int workers, int servers) { return std::make_shared<Wires>(workers, servers); }

std::unique_ptr<Transport> open_thread_transport(std::shared_ptr<Wires> wires, int rank) {
  return std::make_unique<ThreadTransport>(std::move(wires), rank);
}

std::unique_ptr<Transport> open_replacement(std::shared_ptr<Wires> wires) {
  return std::make_unique<ThreadTransport>(std::move(wires));
}

void cut_off(Wires& wires, int rank) {
  const std::lock_guard lock(wires.mutex);
  wires.lost[static_cast<size_t>(rank)] = true;
  wires.changed.notify_all();
}

KVStorePtr Worker::store(const std::string& type) const {
  const auto kind = type == "horovod"                         ? DistStore::Kind::allreduce
                    : type.find("async") != std::string::npos ? DistStore::Kind::async
                                                              : DistStore::Kind::sync;
  return std::make_shared<DistStore>(type, kind, DistStore::SumOn::cpu, peers);
}

namespace {

// The threads of a job.
class Job {
 public:
  Job(const std::function<void(Worker&)>& work, std::shared_ptr<Wires> wires, const Peers::Options& options)
      : work_(work), wires_(std::move(wires)), options_(options) {}

  // Workers, and then servers; without a rank, a worker in place of a lost one.
  void start(std::optional<int> given) {
    const std::lock_guard lock(mutex_);
    const int rank = given.value_or(static_cast<int>(threads_.size()));
    thrown_.emplace_back();
    threads_.emplace_back([this, rank, is_new = !given] {
      std::shared_ptr<Peers> peers;
      try {
        const auto open = [&] { return is_new ? open_replacement(wires_) : open_thread_transport(wires_, rank); };
        Worker worker{rank, peers = std::make_shared<Peers>(open, options_)};
        is_new || rank < wires_->workers ? work_(worker) : serve(peers);
      } catch (const std::exception& error) {
        const std::lock_guard guard(mutex_);
        thrown_[static_cast<size_t>(rank)] = error.what();
      }
      if (peers) peers->leave();
    });
  }

  // What they threw. More may be started meanwhile.
  std::vector<std::string> join() {
    for (size_t i = 0;; ++i) {
      std::thread next;
      {
        const std::lock_guard lock(mutex_);
        if (i == threads_.size()) break;
        next = std::move(threads_[i]);
      }
      next.join();
    }
    return {thrown_.begin(), thrown_.end()};
  }

 private:
  const std::function<void(Worker&)>& work_;
  const std::shared_ptr<Wires> wires_;
  const Peers::Options options_;
  std::mutex mutex_;
  std::deque<std::thread> threads_;
  std::deque<std::string> thrown_;
};

}  // namespace

std::vector<std::string> run_job(int workers, const std::function<void(Worker&)>& work, const JobOptions& options) {
  const auto wires = options.wires ? options.wires : make_wires(workers, options.servers);
  wires->tells = options.peers.elastic;
  Job job(work, wires, options.peers);
  if (options.replacements) wires->start = [&] { job.start(std::nullopt); };
  for (int rank = 0; rank < wires->processes; ++rank) job.start(rank);
  std::vector<std::string> thrown = job.join();
  wires->start = nullptr;
  return thrown;
}

}  // namespace symbind::testing
