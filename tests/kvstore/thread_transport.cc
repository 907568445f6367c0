#include "tests/kvstore/thread_transport.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "symbind/kvstore/dist.h"
#include "symbind/kvstore/server.h"

namespace symbind::testing {

class Wires {
 public:
  Wires(int number, int servers) : workers(number), lost(static_cast<size_t>(number + servers), false) {}

  struct Message {
    int from, tag;
    std::vector<std::byte> data;
  };
  const int workers;
  std::mutex mutex;
  // By process, in the numbers they began with, which also name senders.
  std::map<int, std::deque<Message>> inbox;
  std::vector<bool> lost;

  // ---- for jobs that go on without those that are lost ----
  bool tells = false;           // that a worker is gone
  std::vector<int> left;        // that regrouped last
  uint64_t groupings = 0;       // how often they have
  std::vector<int> regrouping;  // that wait for the others to do so
  std::condition_variable changed;

  int size() const { return static_cast<int>(lost.size()); }
  std::vector<int> living() const {
    std::vector<int> processes;
    for (int i = 0; i < size(); ++i)
      if (!lost[static_cast<size_t>(i)]) processes.push_back(i);
    return processes;
  }
};

namespace {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Wires> wires, int rank) : wires_(std::move(wires)), first_rank_(rank) {
    for (int i = 0; i < wires_->size(); ++i) group_.push_back(i);
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

  bool is_server(int rank) const override { return first(rank) >= wires_->workers; }

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
      std::memcpy(each.into.data(), message->data.data(), each.into.size());
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
  std::vector<int> regroup() override {
    std::unique_lock lock(wires_->mutex);
    const uint64_t before = wires_->groupings;
    wires_->regrouping.push_back(first_rank_);
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
      ++wires_->groupings;
      wires_->regrouping.clear();
      wires_->inbox.clear();
      wires_->changed.notify_all();
      return true;
    });
    std::vector<int> former;
    for (const int worker : wires_->left) former.push_back(rank_of(worker));
    group_ = wires_->left;
    sent_.clear();
    expected_.clear();
    return former;
  }

  void close() override { closed_ = true; }

 private:
  struct Expected {
    Ticket ticket;
    int from, tag;
    std::span<std::byte> into;
  };

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

std::vector<std::string> run_job(int workers, const std::function<void(Worker&)>& work, const JobOptions& options) {
  const auto wires = options.wires ? options.wires : make_wires(workers, options.servers);
  wires->tells = options.peers.elastic;
  std::vector<std::string> thrown(static_cast<size_t>(wires->size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < wires->size(); ++rank)
    threads.emplace_back([&, rank] {
      Worker worker{rank, std::make_shared<Peers>([&] { return open_thread_transport(wires, rank); }, options.peers)};
      try {
        rank < workers ? work(worker) : serve(worker.peers);
      } catch (const std::exception& error) {
        thrown[static_cast<size_t>(rank)] = error.what();
      }
      worker.peers->leave();
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace symbind::testing
