// Jobs in which new workers take the place of lost ones.
#include "symbind/kvstore/replacement.h"

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/data/ndarray_iter.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/worker_sum.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/loss.h"
#include "symbind/train/module.h"

#include "tests/kvstore/dist_training.h"
#include "tests/kvstore/thread_transport.h"

namespace symbind::testing {
namespace {

using namespace std::chrono_literals;

const Peers::Options elastic{
    .timeout = 20s, .heartbeat = 50ms, .exit_delay = 1ms, .elastic = true, .start_within = 20s};

int begin_epoch(const KVStorePtr& store, int epoch) {
  return dynamic_cast<Replacement&>(*store).begin_epoch(
      epoch, [&] { return join("written in epoch ", epoch); },
      [](const std::string& bytes) { EXPECT_TRUE(bytes.starts_with("written in epoch ")) << bytes; });
}

// A worker is cut off before the second of the two steps of an epoch.
struct Loss {
  int epoch, worker;
};

struct Ending {
  std::vector<Floats> values;
  int workers = 0, rank = 0, dead = 0;
  SavedStates states;
};

// Three workers, and their replacements, over some epochs: how each ended that did.
std::map<int, Ending> endings(const Training& training, int epochs, const std::vector<Loss>& losses,
                              const JobOptions& given = {.peers = elastic}) {
  JobOptions options = given;
  options.wires = make_wires(3);
  std::map<int, Ending> all;
  std::mutex mutex;
  run_job(
      3,
      [&](Worker& worker) {
        const KVStorePtr store = worker.store();
        prepare(*store, training);
        for (int epoch = 0; epoch < epochs; ++epoch) {
          epoch = begin_epoch(store, epoch);
          for (int step = 2 * epoch; step < 2 * epoch + 2; ++step) {
            for (const Loss& loss : losses)
              if (step == 2 * loss.epoch + 1 && worker.rank == loss.worker) {
                cut_off(*options.wires, loss.worker);
                return;
              }
            push_step(*store, worker.rank, step, training.dtype);
            pulled(*store, training.dtype);
            if (step % 2 == 0) store->barrier();  // so that it is finished everywhere
          }
        }
        Ending ending{pulled(*store, training.dtype), store->num_workers(), store->rank(), store->num_dead_node(), {}};
        if (!training.optimizer.empty()) ending.states = read_states(store->get_optimizer_states(), "states");
        const std::lock_guard guard(mutex);
        all.emplace(worker.rank, std::move(ending));
      },
      options);
  return all;
}

// Who pushes in which step.
std::vector<Floats> expected_values(const Training& training, const std::vector<std::vector<int>>& workers_of_step) {
  const KVStorePtr store = KVStore::create("local");
  prepare(*store, training);
  for (size_t step = 0; step < workers_of_step.size(); ++step) {
    KVStore::Values values(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto& workers = workers_of_step[step];
      NDArray sum = gradient(i, workers[0], static_cast<int>(step), DType::float32);
      for (size_t k = 1; k < workers.size(); ++k)
        sum += gradient(i, workers[k], static_cast<int>(step), DType::float32);
      if (workers.size() < 3 && !training.optimizer.empty()) sum *= 3.0 / static_cast<double>(workers.size());
      values[i].push_back(sum);
    }
    store->push(keys(), values);
  }
  return pulled(*store);
}

void collect(const StateTree& tree, std::vector<Floats>& into) {
  if (tree.array) into.push_back(tree.array.to_vector<float>());
  for (const StateTree& each : tree.tuple) collect(each, into);
}

void expect_same_states(const SavedStates& some, const SavedStates& others) {
  ASSERT_EQ(some.states.size(), others.states.size());
  for (size_t i = 0; i < some.states.size(); ++i) {
    EXPECT_EQ(some.states[i].first, others.states[i].first);
    std::vector<Floats> a, b;
    collect(some.states[i].second, a);
    collect(others.states[i].second, b);
    EXPECT_TRUE(same_bits(a, b)) << "of key " << some.states[i].first;
  }
  ASSERT_TRUE(some.resume && others.resume);
  EXPECT_EQ(some.resume->num_update, others.resume->num_update);
  EXPECT_EQ(some.resume->index_update_count, others.resume->index_update_count);
  EXPECT_EQ(some.resume->numbers, others.resume->numbers);
}

TEST(Replacement, ANewWorkerGoesOnWithTheValuesAndStatesOfTheOthers) {
  const std::vector<Training> trainings = {{.params = {{"learning_rate", 0.1}, {"momentum", 0.9}}},
                                           {.optimizer = "adam", .params = {{"learning_rate", 0.1}}, .scheduled = true},
                                           {.optimizer = ""}};
  for (const Training& training : trainings)
    for (const int lost : {0, 1, 2}) {
      const auto got = endings(training, 3, {{0, lost}});
      std::vector<int> left{0, 1, 2};
      std::erase(left, lost);
      const std::vector<int> again{left[0], left[1], 3};
      const auto expected = expected_values(training, {{0, 1, 2}, left, again, again, again, again});
      ASSERT_EQ(got.size(), 3u) << training.optimizer << " without " << lost;
      for (const auto& [worker, ending] : got) {
        EXPECT_TRUE(same_bits(ending.values, expected)) << training.optimizer << ", " << worker << " without " << lost;
        EXPECT_EQ(ending.workers, 3);
        EXPECT_EQ(ending.rank, worker - (worker > lost ? 1 : 0));
        EXPECT_EQ(ending.dead, 0);
        if (!training.optimizer.empty()) expect_same_states(ending.states, got.begin()->second.states);
      }
    }
}

TEST(Replacement, EveryLostWorkerIsReplacedAndReplacementsAreToo) {
  const Training training{.optimizer = "adam", .params = {{"learning_rate", 0.1}}};
  const auto got = endings(training, 6, {{0, 1}, {0, 2}, {2, 3}, {3, 0}});
  ASSERT_EQ(got.size(), 3u);
  for (const auto& [worker, ending] : got) {
    EXPECT_GE(worker, 4);
    EXPECT_TRUE(same_bits(ending.values, got.begin()->second.values)) << worker;
    EXPECT_EQ(ending.workers, 3);
    expect_same_states(ending.states, got.begin()->second.states);
  }
}

TEST(Replacement, OneThatIsLostInItsFirstEpochIsNotReplaced) {
  const auto got = endings({}, 4, {{0, 1}, {1, 3}});
  ASSERT_EQ(got.size(), 2u);
  for (const auto& [worker, ending] : got) {
    EXPECT_LT(worker, 3);
    EXPECT_EQ(ending.workers, 2);
    EXPECT_EQ(ending.dead, 1);
  }
}

TEST(Replacement, TheJobGoesOnWithoutOneThatDoesNotCome) {
  Peers::Options impatient = elastic;
  impatient.start_within = 100ms;
  const auto got = endings({}, 3, {{0, 1}}, {.peers = impatient, .replacements = false});
  ASSERT_EQ(got.size(), 2u);
  for (const auto& [worker, ending] : got) EXPECT_EQ(ending.workers, 2);
}

// Its store is not one of the program's.
TEST(Replacement, SumsForOperatorsIncludeTheNewWorker) {
  const auto wires = make_wires(2);
  const auto thrown = run_job(2,
                              [&](Worker& worker) {
                                const KVStorePtr store = worker.store();
                                const WorkerSum sum = make_worker_sum(worker.peers);
                                prepare(*store, {});
                                for (int epoch = 0; epoch < 3; ++epoch) {
                                  epoch = begin_epoch(store, epoch);
                                  std::vector<double> values{1};
                                  sum("batch size", values);
                                  EXPECT_EQ(values[0], 2) << "in epoch " << epoch;
                                  store->barrier();  // so that every worker has its sum
                                  if (epoch == 0 && worker.rank == 1) return cut_off(*wires, 1);
                                  store->barrier();  // where the loss is noticed
                                }
                              },
                              {.peers = elastic, .wires = wires});
  EXPECT_EQ(thrown, std::vector<std::string>(3));
}

// What the new worker says where its program is another one; the others finish.
std::string refusal(const std::function<KVStorePtr(Worker&)>& other_program) {
  const auto wires = make_wires(3);
  std::atomic<int> finished = 0;
  const auto thrown = run_job(3,
                              [&](Worker& worker) {
                                KVStorePtr store;
                                if (worker.rank >= 3) {
                                  store = other_program(worker);
                                } else {
                                  store = worker.store();
                                  prepare(*store, {});
                                }
                                for (int epoch = 0; epoch < 3; ++epoch) {
                                  epoch = begin_epoch(store, epoch);
                                  for (int step = 0; step < 2; ++step) {
                                    if (epoch == 0 && step == 1 && worker.rank == 1) return cut_off(*wires, 1);
                                    push_step(*store, worker.rank, step, DType::float32);
                                    pulled(*store);
                                  }
                                }
                                EXPECT_EQ(store->num_workers(), 2);
                                ++finished;
                              },
                              {.peers = elastic, .wires = wires});
  EXPECT_EQ(finished, 2);
  EXPECT_EQ(thrown.size(), 4u);
  return thrown.back();
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' has no '" << part << "'";
}

TEST(Replacement, AnotherProgramIsRefused) {
  expect_part(refusal([](Worker& worker) {
                KVStorePtr store = worker.store();
                prepare(*store, {.optimizer = "adam", .params = {}});
                return store;
              }),
              "its store 0 has dist_sync, optimizer adam");
  expect_part(refusal([](Worker& worker) {
                KVStorePtr store = worker.store();
                prepare(*store, {});
                store->init({"more"}, {zeros({2})});
                return store;
              }),
              "it has key more in store 0, and worker 0 does not");
  expect_part(refusal([](Worker& worker) {
                KVStorePtr store = worker.store();
                store->set_optimizer(Optimizer::create("sgd", {}));
                store->init({"fc_bias"}, {zeros({7})});
                return store;
              }),
              "worker 0 has key bn_gamma in store 0, and this worker does not");
  expect_part(refusal([](Worker& worker) {
                KVStorePtr store = worker.store();
                store->set_optimizer(Optimizer::create("sgd", {}));
                std::vector<NDArray> values;
                for (const auto& [name, shape] : parameters)
                  values.push_back(zeros(name == "bn_gamma" ? Shape{65} : shape));
                store->init(keys(), values);
                return store;
              }),
              "its key bn_gamma has shape (65,), type float32, that of worker 0 shape (64,), type float32");
  expect_part(refusal([](Worker& worker) {
                worker.store();
                KVStorePtr second = worker.store();
                prepare(*second, {});
                return second;
              }),
              "its program trains by store 1");
  expect_part(refusal([](Worker& worker) {
                KVStorePtr store = worker.store();
                prepare(*store, {});
                push_step(*store, 0, 0, DType::float32);
                return store;
              }),
              "exchange nothing before the first epoch");
}

// Whenever others are lost: those that are left finish, with the same numbers.
TEST(Replacement, TheJobGoesOnWhenOthersAreLostMeanwhile) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    const Training training{.optimizer = "adam", .params = {{"learning_rate", 0.1}}};
    const auto wires = make_wires(4);
    const int second = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 3 : 4;  // the last is the replacement
    const std::chrono::microseconds pause(random() % 20000);
    std::atomic<bool> begun = false;
    std::map<int, std::vector<Floats>> got;
    std::mutex mutex;
    std::thread killer([&] {
      begun.wait(false);
      std::this_thread::sleep_for(pause);
      cut_off(*wires, second);
    });
    const auto thrown = run_job(4,
                                [&](Worker& worker) {
                                  if (worker.rank >= 4) begun = true;
                                  if (worker.rank >= 4) begun.notify_all();
                                  const KVStorePtr store = worker.store();
                                  prepare(*store, training);
                                  for (int epoch = 0; epoch < 6; ++epoch) {
                                    epoch = begin_epoch(store, epoch);
                                    for (int step = 2 * epoch; step < 2 * epoch + 2; ++step) {
                                      if (step == 1 && worker.rank == 1) return cut_off(*wires, 1);
                                      push_step(*store, worker.rank, step, training.dtype);
                                      pulled(*store);
                                    }
                                  }
                                  const std::lock_guard guard(mutex);
                                  got[worker.rank] = pulled(*store);
                                },
                                {.peers = elastic, .wires = wires});
    begun = true;
    begun.notify_all();
    killer.join();
    for (const int worker : {0, 2, 3})
      if (worker != second) {
        EXPECT_EQ(thrown[static_cast<size_t>(worker)], "") << worker << ", seed " << seed;
      }
    ASSERT_GE(got.size(), 2u) << "seed " << seed;
    for (const auto& [worker, values] : got)
      EXPECT_TRUE(same_bits(values, got.begin()->second)) << worker << ", seed " << seed;
  }
}

// ---- a module -------------------------------------------------------------------------------------------------------

Symbol network() {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 8}, "fc1");
  net = activation(batch_norm(net, {.fix_gamma = false}, "bn"), {.act_type = act_type::relu});
  return softmax_output(fully_connected(net, {.num_hidden = 3}, "fc2"), {}, "softmax");
}

TEST(Replacement, FitGoesOnWithANewWorker) {
  for (const std::string kind : {"dist_sync", "horovod"}) {
    const auto wires = make_wires(3);
    std::map<int, NamedArrays> got;
    std::map<int, std::vector<int>> epochs;
    std::mutex mutex;
    const auto thrown =
        run_job(3,
                [&](Worker& worker) {
                  const KVStorePtr store = worker.store(kind);
                  const auto part = static_cast<uint64_t>(store->rank());
                  NDArrayIter data(random_array({24, 5}, 10 + part, -1, 1), zeros({24}), {.batch_size = 8});
                  Module module(network());
                  int batches = 0;
                  const auto lose = [&](const BatchEndParam&) {
                    if (worker.rank == 1 && ++batches == 4) {  // in the second epoch
                      cut_off(*wires, 1);
                      fail("cut off");
                    }
                  };
                  const auto end = [&](int epoch, const Symbol&, const NamedArrays&, const NamedArrays&) {
                    const std::lock_guard guard(mutex);
                    epochs[worker.rank].push_back(epoch);
                  };
                  module.fit(data, {.epoch_end_callback = {end},
                                    .batch_end_callback = {lose},
                                    .kvstore = store,
                                    .optimizer = "sgd",
                                    .optimizer_params = {{"learning_rate", 0.1}, {"momentum", 0.9}},
                                    .num_epoch = 4});
                  const std::lock_guard guard(mutex);
                  got[worker.rank] = module.get_params().arg_params;
                },
                {.peers = elastic, .wires = wires});
    EXPECT_EQ(thrown, (std::vector<std::string>{"", "cut off", "", ""})) << kind;
    ASSERT_EQ(got.size(), 3u) << kind;
    for (const auto& [worker, params] : got)
      for (const auto& [name, value] : params)
        EXPECT_EQ(value.to_vector<float>(), got.at(0).at(name).to_vector<float>()) << kind << ", " << worker << name;
    EXPECT_EQ(epochs[0], (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(epochs[3], (std::vector<int>{2, 3})) << kind;
  }
}

}  // namespace
}  // namespace symbind::testing
