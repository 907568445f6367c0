#include "tests/kvstore/thread_transport.h"

#include <algorithm>
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
  std::map<int, std::deque<Message>> inbox;  // by process
  std::vector<bool> lost;
  int size() const { return static_cast<int>(lost.size()); }
};

namespace {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Wires> wires, int rank) : wires_(std::move(wires)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return wires_->size(); }
  std::string host(int rank) const override { return "thread" + std::to_string(rank); }

  bool is_server(int rank) const override { return rank >= wires_->workers; }

  Ticket send(int to, int tag, std::span<const std::byte> data) override {
    {
      const std::lock_guard lock(wires_->mutex);
      const bool arrives = !wires_->lost[static_cast<size_t>(rank_)] && !wires_->lost[static_cast<size_t>(to)];
      if (arrives) wires_->inbox[to].push_back({rank_, tag, {data.begin(), data.end()}});
    }
    sent_.push_back(next_);
    return next_++;
  }

  Ticket receive(int from, int tag, std::span<std::byte> into) override {
    expected_.push_back({next_, from, tag, into});
    return next_++;
  }

  std::vector<Ticket> completed() override {
    std::vector<Ticket> done = std::move(sent_);
    sent_.clear();
    const std::lock_guard lock(wires_->mutex);  // a message that comes meanwhile is not for a later one
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

  std::optional<Letter> next_letter() override {
    const std::lock_guard lock(wires_->mutex);
    auto message = take([](const Wires::Message& one) { return one.tag == letter_tag; });
    if (!message) return std::nullopt;
    return Letter{message->from, std::move(message->data)};
  }

  void close() override {}

 private:
  struct Expected {
    Ticket ticket;
    int from, tag;
    std::span<std::byte> into;
  };

  template <class Fits>
  std::optional<Wires::Message> take(const Fits& fits) {
    auto& inbox = wires_->inbox[rank_];
    const auto found = std::find_if(inbox.begin(), inbox.end(), fits);
    if (found == inbox.end()) return std::nullopt;
    Wires::Message message = std::move(*found);
    inbox.erase(found);
    return message;
  }

  std::shared_ptr<Wires> wires_;
  int rank_;
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
}

KVStorePtr Worker::store(const std::string& type) const {
  const auto kind = type == "horovod"                         ? DistStore::Kind::allreduce
                    : type.find("async") != std::string::npos ? DistStore::Kind::async
                                                              : DistStore::Kind::sync;
  return std::make_shared<DistStore>(type, kind, DistStore::SumOn::cpu, peers);
}

std::vector<std::string> run_job(int workers, const std::function<void(Worker&)>& work, const JobOptions& options) {
  const auto wires = options.wires ? options.wires : make_wires(workers, options.servers);
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
