// Sums over workers on their GPUs, without GPUs: workers are threads, and the contexts cpu(1), cpu(2), … are the GPUs
// of a stand-in for NCCL. (On a GPU: tests/backend/cuda_nccl_test.cc.)
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/kvstore/dist.h"

#include "tests/kvstore/thread_transport.h"
#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using namespace std::chrono_literals;
using Floats = std::vector<float>;

// What the workers have in common: their sums by number, which all of them begin in the same order.
struct Hub {
  std::mutex mutex;
  std::map<size_t, std::map<int, std::vector<NDArray>>> pushed;  // by number and worker
  std::atomic<int> connections = 0, sums = 0, in_place = 0, aborts = 0;
  std::vector<std::pair<int64_t, bool>> log;  // worker 0's sums: their sizes, and whether they wait for the queue
  std::function<bool(int rank, size_t number)> takes_part = [](int, size_t) { return true; };
};

class StandInGpus final : public WorkerGpus {
 public:
  StandInGpus(std::shared_ptr<Hub> hub, Context gpu, int rank, int size)
      : hub_(std::move(hub)), gpu_(gpu), rank_(rank), size_(static_cast<size_t>(size)) {}

  void all_reduce(std::span<const Sum> sums) override {
    if (!hub_->takes_part(rank_, number_)) return;
    sums_ = sums;
    std::vector<NDArray> copies;
    for (const Sum& sum : sums) {
      EXPECT_EQ(sum.from.context(), gpu_);
      EXPECT_EQ(sum.to.context(), gpu_);
      copies.push_back(sum.from.as_copy_in(cpu()));
      ++hub_->sums;
      if (sum.from.data() == sum.to.data()) ++hub_->in_place;
    }
    const std::lock_guard lock(hub_->mutex);
    hub_->pushed[number_][rank_] = std::move(copies);
    for (const Sum& sum : sums)
      if (rank_ == 0) hub_->log.emplace_back(sum.to.size(), sum.after_queue);
  }

  bool finished() override {
    const std::lock_guard lock(hub_->mutex);
    const auto& pushed = hub_->pushed[number_];
    if (pushed.size() < size_) return false;
    for (size_t i = 0; i < sums_.size(); ++i) {
      NDArray total = zeros(sums_[i].to.shape(), cpu(), sums_[i].to.dtype());
      for (const auto& [worker, arrays] : pushed) total += arrays.at(i);  // fails where the orders differ
      total.copyto(sums_[i].to);
    }
    ++number_;
    return true;
  }

  void abort() override { ++hub_->aborts; }

 private:
  const std::shared_ptr<Hub> hub_;
  const Context gpu_;
  const int rank_;
  const size_t size_;
  size_t number_ = 0;
  std::span<const Sum> sums_;
};

class StandInConnector final : public GpuConnector {
 public:
  explicit StandInConnector(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}
  bool takes(Context context, DType dtype) const override { return context.id > 0 && dtype != DType::uint8; }
  std::string identity(Context gpu) const override { return gpu.str(); }
  Id make_id() const override {
    Id id;
    id.fill(std::byte{42});
    return id;
  }
  std::unique_ptr<WorkerGpus> connect(Context gpu, const Id& id, int rank, int size) const override {
    EXPECT_TRUE(std::all_of(id.begin(), id.end(), [](std::byte each) { return each == std::byte{42}; }));
    ++hub_->connections;
    return std::make_unique<StandInGpus>(hub_, gpu, rank, size);
  }

 private:
  const std::shared_ptr<Hub> hub_;
};

class GpuExchangeTest : public ::testing::Test {
 protected:
  // Each worker's part is run on its thread; throws nothing.
  void run(int workers, const std::function<void(Worker&)>& work) {
    for (const std::string& thrown : run_job(workers, work, options_)) EXPECT_EQ(thrown, "");
  }

  const std::shared_ptr<Hub> hub_ = std::make_shared<Hub>();
  JobOptions options_{.peers = {.gpus = std::make_shared<StandInConnector>(hub_)}};
};

KVStorePtr device_store(const Worker& worker, const std::string& type = "horovod") {
  const auto kind = type == "horovod" ? DistStore::Kind::allreduce : DistStore::Kind::sync;
  return std::make_shared<DistStore>(type, kind, DistStore::SumOn::device, worker.peers);
}

Context own_gpu(const Worker& worker) { return cpu(worker.rank + 1); }
Floats values(const NDArray& array) { return array.to_vector<float>(); }

NDArray summed(KVStore& store, const ParamKey& key, const NDArray& array, Context to) {
  NDArray out = zeros(array.shape(), to, array.dtype());
  store.pushpull({key}, {{array}}, {{out}});
  return out;
}

TEST_F(GpuExchangeTest, SumsWhereTheArraysAre) {
  for (const int workers : {1, 2, 4}) {
    hub_->pushed.clear();
    hub_->connections = 0;
    run(workers, [&](Worker& worker) {
      const KVStorePtr store = device_store(worker);
      for (int step = 0; step < 3; ++step)
        for (const std::string key : {"a", "b"}) {
          const NDArray array = full({5}, worker.rank + step, own_gpu(worker));
          const double expected = workers * step + workers * (workers - 1) / 2;
          EXPECT_EQ(values(summed(*store, key, array, own_gpu(worker))), Floats(5, static_cast<float>(expected)));
          EXPECT_EQ(values(array), Floats(5, static_cast<float>(worker.rank + step))) << "the pushed array changed";
        }
    });
    EXPECT_EQ(hub_->connections, workers) << "one connection serves the job";
  }
}

// An array that is pushed and returned is summed in place; another result leaves it as it is, also for the same key.
TEST_F(GpuExchangeTest, SumsInPlaceWhatIsReturnedThere) {
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    const NDArray array = full({5}, worker.rank + 1, own_gpu(worker));
    for (const float expected : {3.0f, 6.0f}) {
      store->pushpull({"a"}, {{array}}, {{array}});
      EXPECT_EQ(values(array), Floats(5, expected));
    }
    EXPECT_EQ(values(summed(*store, "a", array, own_gpu(worker))), Floats(5, 12.0f));
    EXPECT_EQ(values(array), Floats(5, 6.0f)) << "the pushed array changed";

    auto& early = dynamic_cast<EarlyPush&>(*store);
    early.push_early({"a"}, {{array}}, 0);
    store->pushpull({"a"}, {{array}}, {{array}});
    EXPECT_EQ(values(array), Floats(5, 12.0f));
  });
  EXPECT_EQ(hub_->in_place, 2 * 3);
}

TEST_F(GpuExchangeTest, SumsKeysInAnyOrderOfSeveralStores) {
  run(3, [&](Worker& worker) {
    const KVStorePtr first = device_store(worker), second = device_store(worker, "dist_device_sync");
    const auto own = [&](double value) { return full({3}, value, own_gpu(worker)); };
    for (const char* key : {"a", "b", "c"}) second->init({key}, {zeros({3})});
    for (int step = 1; step <= 4; ++step) {
      std::vector<std::string> keys = {"a", "b", "c"};
      std::rotate(keys.begin(), keys.begin() + (worker.rank + step) % 3, keys.end());
      for (const std::string& key : keys) second->push({key}, {{own(key[0] * step)}});
      EXPECT_EQ(values(summed(*first, "w", own(step), cpu())), Floats(3, static_cast<float>(3 * step)));
      for (const std::string& key : keys) {
        const NDArray out = zeros({3});
        second->pull({key}, {{out}});
        EXPECT_EQ(values(out), Floats(3, static_cast<float>(3 * key[0] * step))) << key;
      }
    }
  });
  EXPECT_EQ(hub_->connections, 3);
  EXPECT_EQ(hub_->sums, 3 * 4 * 4);
}

TEST_F(GpuExchangeTest, SumsTheDevicesOfAWorkerFirst) {
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    const Context first = cpu(10 * worker.rank + 1), other = cpu(10 * worker.rank + 2);
    const std::vector<NDArray> outs = {zeros({2}, first), zeros({2}, other)};
    for (int step = 0; step < 3; ++step) {
      store->pushpull({"w"}, {{full({2}, 1, first), full({2}, 10 + step, other)}}, {outs});
      for (const NDArray& out : outs) EXPECT_EQ(values(out), Floats(2, static_cast<float>(22 + 2 * step)));
    }
  });
  EXPECT_EQ(hub_->sums, 2 * 3);
}

TEST_F(GpuExchangeTest, GoesThroughTheHostWhereAWorkerHasNoGpu) {
  run(3, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    const Context context = worker.rank == 1 ? cpu() : own_gpu(worker);
    for (int step = 1; step < 4; ++step)
      EXPECT_EQ(values(summed(*store, "w", full({4}, step, context), context)),
                Floats(4, static_cast<float>(3 * step)));
  });
  EXPECT_EQ(hub_->connections, 0);
}

TEST_F(GpuExchangeTest, GoesThroughTheHostWhereTwoWorkersShareAGpu) {
  std::atomic<int> messages = 0;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view text) {
    if (text.find("same GPU") != std::string_view::npos) ++messages;
  });
  run(3, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    const Context gpu = cpu(worker.rank == 0 ? 1 : 2);
    for (int step = 1; step < 5; ++step)
      EXPECT_EQ(values(summed(*store, "w", full({4}, step, gpu), gpu)), Floats(4, static_cast<float>(3 * step)));
  });
  set_log_sink(before);
  EXPECT_EQ(hub_->connections, 0);
  EXPECT_EQ(messages, 1);
}

TEST_F(GpuExchangeTest, GoesThroughTheHostForWhatNcclDoesNotAdd) {
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    const Context gpu = own_gpu(worker);
    EXPECT_EQ(values(summed(*store, "bytes", full({4}, 3, gpu, DType::uint8), gpu)), Floats(4, 6));
    EXPECT_EQ(summed(*store, "empty", zeros({0, 2}, gpu), gpu).size(), 0);
  });
  EXPECT_EQ(hub_->sums, 0);
}

// An optimizer needs sums in the order of the workers, on the worker that updates.
TEST_F(GpuExchangeTest, GoesThroughTheHostFromTheFirstOptimizerOn) {
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker, "dist_device_sync");
    const Context gpu = own_gpu(worker);
    store->init({"w"}, {zeros({2})});
    store->push({"w"}, {{full({2}, 3, gpu)}});
    store->set_optimizer(Optimizer::create("sgd", {{"learning_rate", 1.0}}));
    EXPECT_EQ(hub_->sums, 2);
    EXPECT_EQ(values(summed(*store, "w", full({2}, 1, gpu), gpu)), Floats(2, 4)) << "6 - 2 · 1";
    const NDArray out = zeros({2});
    store->pull({"w"}, {{out}});
    EXPECT_EQ(values(out), Floats(2, 4));
  });
  EXPECT_EQ(hub_->sums, 2);
}

TEST_F(GpuExchangeTest, LeavesStoresThatSumOnTheCpuAlone) {
  run(2, [&](Worker& worker) {
    EXPECT_EQ(values(summed(*worker.store("horovod"), "w", ones({2}, own_gpu(worker)), cpu())), Floats(2, 2));
  });
  EXPECT_EQ(hub_->connections, 0);
}

TEST_F(GpuExchangeTest, BroadcastsTheValueOfWorkerZero) {
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    const NDArray out = zeros({2}, own_gpu(worker));
    summed(*store, "w", ones({2}, own_gpu(worker)), cpu());
    store->broadcast({"w"}, {full({2}, worker.rank + 7, own_gpu(worker))}, {{out}});
    EXPECT_EQ(values(out), Floats(2, 7)) << "not the sum before it";
  });
}

// ---- gradients that a GPU still computes ----------------------------------------------------------------------------

// The GPU writes the array and then reaches the event, when the test says so.
class StandInEvent final : public DeviceEvent {
 public:
  void record() override { reached_ = false; }
  bool reached() const override { return reached_; }
  void compute(const NDArray& array, double value) {
    array.fill(value);
    reached_ = true;
  }

 private:
  std::atomic<bool> reached_ = false;
};

struct Computed {
  NDArray array;
  std::shared_ptr<StandInEvent> event = std::make_shared<StandInEvent>();
  explicit Computed(NDArray unfinished) : array(std::move(unfinished)) { array.fill(-1000); }
  void push(KVStore& store, const std::string& key, int priority = 0) const {
    dynamic_cast<EarlyPush&>(store).push_early({key}, {{array}}, priority, event);
  }
  void finish(double value) const { event->compute(array, value); }
};

// Waits until the communication threads of all workers have handled what happened so far.
void settle(KVStore& other) {
  for (int i = 0; i < 3; ++i) other.barrier();
}

TEST_F(GpuExchangeTest, ReadsAGradientWhenItsGpuHasFinishedIt) {
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker), other = worker.store("dist_sync");
    store->broadcast({"w"}, {zeros({5}, own_gpu(worker))}, {{zeros({5}, own_gpu(worker))}});
    for (int step = 1; step <= 3; ++step) {
      const Computed gradient(zeros({5}, own_gpu(worker)));
      gradient.push(*store, "w");
      settle(*other);
      EXPECT_EQ(hub_->sums, 2 * (step - 1)) << "summed before it was complete";
      other->barrier();
      gradient.finish(10 * worker.rank + step);
      const NDArray out = zeros({5}, own_gpu(worker));
      store->pushpull({"w"}, {{gradient.array}}, {{out}});
      EXPECT_EQ(values(out), Floats(5, static_cast<float>(10 + 2 * step)));
      other->barrier();
    }
  });
  // Gradients that are complete are summed where they are and wait for nothing.
  EXPECT_EQ(hub_->log, (std::vector<std::pair<int64_t, bool>>{{5, false}, {5, false}, {5, false}}));
}

// All are pushed at once when a captured plan is launched: the priority must not put the last ones first.
TEST_F(GpuExchangeTest, SumsGradientsInTheOrderInWhichTheyAreFinished) {
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker), other = worker.store("dist_sync");
    for (int size = 1; size <= 3; ++size)
      store->broadcast({std::to_string(size)}, {zeros({size}, own_gpu(worker))}, {{zeros({size}, own_gpu(worker))}});
    std::vector<Computed> gradients;
    for (int size = 3; size >= 1; --size) gradients.emplace_back(zeros({size}, own_gpu(worker)));
    for (const Computed& gradient : gradients)
      gradient.push(*store, std::to_string(gradient.array.size()), -static_cast<int>(gradient.array.size()));
    for (size_t i = 0; i < gradients.size(); ++i) {
      gradients[i].finish(1);
      while (hub_->sums < 2 * static_cast<int>(i + 1)) std::this_thread::sleep_for(1ms);
      other->barrier();
    }
    for (const Computed& gradient : gradients) {
      const NDArray out = zeros(gradient.array.shape(), own_gpu(worker));
      store->pushpull({std::to_string(out.size())}, {{gradient.array}}, {{out}});
      EXPECT_EQ(values(out), Floats(static_cast<size_t>(out.size()), 2));
    }
  });
  ASSERT_EQ(hub_->log.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(hub_->log[i].first, 3 - static_cast<int64_t>(i));
}

TEST_F(GpuExchangeTest, ExchangesThroughTheHostWhatItsGpuHasFinished) {
  run(3, [&](Worker& worker) {
    const KVStorePtr store = worker.store("dist_sync"), other = worker.store("horovod");
    store->set_optimizer(Optimizer::create("test", {}));  // adds the gradient to the weight
    store->init({"w"}, {zeros({60000})});
    const NDArray out = zeros({60000}, own_gpu(worker));
    for (int step = 1; step <= 3; ++step) {
      const Computed gradient(zeros({60000}, own_gpu(worker)));
      gradient.push(*store, "w");
      settle(*other);
      gradient.finish(1);
      store->pushpull({"w"}, {{gradient.array}}, {{out}});
      EXPECT_EQ(values(out), Floats(60000, static_cast<float>(3 * step)));
    }
  });
}

TEST_F(GpuExchangeTest, LeavesCompressedGradientsToTheUpdate) {
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker, "dist_device_sync");
    store->set_gradient_compression({{"type", "2bit"}, {"threshold", "0.5"}});
    store->init({"w"}, {zeros({40})});
    const Computed gradient(zeros({40}, own_gpu(worker)));
    gradient.push(*store, "w");
    gradient.finish(0.75);
    const NDArray out = zeros({40});
    store->pushpull({"w"}, {{gradient.array}}, {{out}});
    EXPECT_EQ(values(out), Floats(40, 1)) << "twice the threshold";
  });
}

// Workers whose programs wait for long computations of their GPUs do not wait for each other.
TEST_F(GpuExchangeTest, TakesALongComputationForNoDisagreement) {
  options_.peers.heartbeat = 10ms;
  run(2, [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    const NDArray out = zeros({2}, own_gpu(worker));
    store->broadcast({"w"}, {out}, {{out}});
    const Computed gradient(zeros({2}, own_gpu(worker)));
    gradient.push(*store, "w");
    std::thread gpu([&] {
      std::this_thread::sleep_for(300ms);
      gradient.finish(4);
    });
    store->pushpull({"w"}, {{gradient.array}}, {{out}});
    gpu.join();
    EXPECT_EQ(values(out), Floats(2, 8));
  });
}

TEST_F(GpuExchangeTest, NamesAWorkerThatIsLostWhileAGpuComputes) {
  options_.peers.timeout = 1000ms;
  options_.peers.heartbeat = 100ms;
  options_.wires = make_wires(3);
  const auto work = [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    const NDArray out = zeros({2}, own_gpu(worker));
    store->broadcast({"w"}, {out}, {{out}});
    const Computed gradient(zeros({2}, own_gpu(worker)));  // never finished
    gradient.push(*store, "w");
    store->barrier();
    if (worker.rank == 2) cut_off(*options_.wires, worker.rank);
    store->pushpull({"w"}, {{gradient.array}}, {{out}});
    ADD_FAILURE() << "worker " << worker.rank << " has a sum of unfinished gradients";
  };
  const std::vector<std::string> thrown = run_job(3, work, options_);
  for (const size_t worker : {0, 1})
    EXPECT_NE(thrown[worker].find("worker 2 on host thread2 is lost"), std::string::npos) << thrown[worker];
  EXPECT_EQ(hub_->sums, 0);
}

// The remaining workers of an elastic job exchange what their GPUs were computing when one was lost.
TEST_F(GpuExchangeTest, ContinuesWithoutAWorkerThatIsLostWhileAGpuComputes) {
  options_.peers = {.timeout = 20s, .heartbeat = 50ms, .exit_delay = 1ms, .elastic = true};
  options_.wires = make_wires(3);
  options_.replacements = false;
  const std::vector<std::string> thrown = run_job(
      3,
      [&](Worker& worker) {
        const KVStorePtr store = worker.store("dist_sync");
        store->init({"w"}, {zeros({20000})});
        const Computed gradient(zeros({20000}, own_gpu(worker)));
        gradient.push(*store, "w");
        store->barrier();
        if (worker.rank == 1) {
          cut_off(*options_.wires, worker.rank);
          return;
        }
        while (store->num_workers() == 3) std::this_thread::sleep_for(1ms);
        gradient.finish(worker.rank + 1);
        const NDArray out = zeros({20000});
        store->pushpull({"w"}, {{gradient.array}}, {{out}});
        EXPECT_EQ(values(out), Floats(20000, 1 + 3)) << "of workers 0 and 2";
      },
      options_);
  EXPECT_EQ(thrown[0], "");
  EXPECT_EQ(thrown[2], "");
}

// A worker that is lost when the others' GPUs wait for it: the sum is aborted, and all throw.
TEST_F(GpuExchangeTest, AbortsASumThatWaitsForALostWorker) {
  options_.peers.timeout = 1000ms;
  options_.peers.heartbeat = 100ms;
  options_.wires = make_wires(3);
  hub_->takes_part = [&](int rank, size_t number) {
    const bool is_lost = rank == 2 && number == 1;
    if (is_lost) cut_off(*options_.wires, rank);
    return !is_lost;
  };
  const auto work = [&](Worker& worker) {
    const KVStorePtr store = device_store(worker);
    summed(*store, "w", ones({2}, own_gpu(worker)), cpu());
    summed(*store, "w", ones({2}, own_gpu(worker)), cpu());
    ADD_FAILURE() << "worker " << worker.rank << " has a sum without worker 2";
  };
  const std::vector<std::string> thrown = run_job(3, work, options_);
  for (const size_t worker : {0, 1})
    EXPECT_NE(thrown[worker].find("worker 2 on host thread2 is lost"), std::string::npos) << thrown[worker];
  EXPECT_EQ(hub_->aborts, 3);
}

}  // namespace
}  // namespace symbind::testing
