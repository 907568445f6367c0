// Jobs that continue without lost workers.
#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/core/param_key.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/progress.h"

#include "tests/kvstore/dist_training.h"
#include "tests/kvstore/thread_transport.h"

namespace symbind::testing {
namespace {

using namespace std::chrono_literals;

const Peers::Options elastic{.timeout = 20s, .heartbeat = 50ms, .exit_delay = 1ms, .elastic = true};

// What some workers push in a step, added up in their order.
NDArray sum_of(size_t key, const std::vector<int>& workers, int step) {
  NDArray sum = gradient(key, workers[0], step, DType::float32);
  for (size_t i = 1; i < workers.size(); ++i) sum += gradient(key, workers[i], step, DType::float32);
  return sum;
}

// Three workers for three steps, and then those that are left.
std::vector<Floats> with_and_without(int lost, const Training& training) {
  const KVStorePtr store = KVStore::create("local");
  prepare(*store, training);
  for (int step = 0; step < training.steps; ++step) {
    std::vector<int> workers{0, 1, 2};
    if (step >= 3) std::erase(workers, lost);
    KVStore::Values values(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      NDArray sum = sum_of(i, workers, step);
      if (step >= 3 && !training.optimizer.empty()) sum *= 1.5;
      values[i].push_back(sum);
    }
    store->push(keys(), values);
  }
  return pulled(*store, training.dtype);
}

TEST(Elastic, HasTheBitsOfOneProcessWhileNobodyIsLost) {
  for (const std::string& name : optimizers) {
    if (name == "nadam") continue;  // depends on the order of keys
    const Training training{.optimizer = name, .params = {{"learning_rate", 0.1}}};
    const std::vector<Floats> expected = one_process(3, training);
    const auto thrown = run_job(3,
                                [&](Worker& worker) {
                                  const KVStorePtr store = worker.store();
                                  prepare(*store, training);
                                  for (int step = 0; step < training.steps; ++step)
                                    push_step(*store, worker.rank, step, training.dtype);
                                  EXPECT_TRUE(same_bits(pulled(*store, training.dtype), expected)) << name;
                                },
                                {.peers = elastic});
    EXPECT_EQ(thrown, std::vector<std::string>(3)) << name;
  }
}

TEST(Elastic, ContinuesWithoutAWorkerAndItsStatesAreNotLost) {
  const std::vector<Training> trainings = {
      {.params = {{"learning_rate", 0.1}, {"momentum", 0.9}}, .steps = 6},
      {.optimizer = "adam", .params = {{"learning_rate", 0.1}}, .steps = 6, .scheduled = true},
      {.optimizer = "lars", .params = {{"learning_rate", 0.1}}, .steps = 6},
      {.optimizer = "", .steps = 6}};
  for (const Training& training : trainings)
    for (const int lost : {0, 1, 2}) {
      const std::vector<Floats> expected = with_and_without(lost, training);
      const auto wires = make_wires(3);
      std::atomic<int> finished = 0;
      run_job(3,
              [&](Worker& worker) {
                const KVStorePtr store = worker.store();
                prepare(*store, training);
                for (int step = 0; step < training.steps; ++step) {
                  if (step == 3 && worker.rank == lost) {
                    cut_off(*wires, lost);
                    return;
                  }
                  push_step(*store, worker.rank, step, training.dtype);
                  if (step == 2) pulled(*store, training.dtype);  // so that it is finished here,
                  if (step == 2) store->barrier();                // and everywhere
                }
                EXPECT_TRUE(same_bits(pulled(*store, training.dtype), expected))
                    << training.optimizer << ", worker " << worker.rank << " without " << lost;
                EXPECT_EQ(store->num_workers(), 2);
                EXPECT_EQ(store->rank(), worker.rank - (worker.rank > lost ? 1 : 0));
                EXPECT_EQ(store->num_dead_node(), 1);
                ++finished;
              },
              {.peers = elastic, .wires = wires});
      EXPECT_EQ(finished, 2) << training.optimizer << " without " << lost;
    }
}

// Whenever it happens: the others finish, with the same numbers.
void expect_others_to_finish(int workers, int losses, uint64_t seed) {
  const Training training{.optimizer = "adam", .params = {{"learning_rate", 0.1}}, .steps = 12};
  const auto wires = make_wires(workers);
  std::vector<std::vector<Floats>> got(static_cast<size_t>(workers));
  std::mt19937_64 random(seed);
  std::vector<std::pair<int, std::chrono::microseconds>> when;
  for (int i = 0; i < losses; ++i)
    when.emplace_back((static_cast<int>(seed) + i) % workers, std::chrono::microseconds(random() % 15000));
  std::thread killer([&] {
    for (const auto& [worker, pause] : when) {
      std::this_thread::sleep_for(pause);
      cut_off(*wires, worker);
    }
  });
  const auto thrown = run_job(workers,
                              [&](Worker& worker) {
                                const KVStorePtr store = worker.store();
                                prepare(*store, training);
                                for (int step = 0; step < training.steps; ++step)
                                  push_step(*store, worker.rank, step, training.dtype);
                                got[static_cast<size_t>(worker.rank)] = pulled(*store, training.dtype);
                              },
                              {.peers = elastic, .wires = wires});
  killer.join();
  const int survivor = (static_cast<int>(seed) + losses) % workers;
  for (int worker = 0; worker < workers; ++worker) {
    const bool lost = std::any_of(when.begin(), when.end(), [&](const auto& each) { return each.first == worker; });
    if (lost) continue;
    EXPECT_EQ(thrown[static_cast<size_t>(worker)], "") << "worker " << worker << ", seed " << seed;
    EXPECT_TRUE(same_bits(got[static_cast<size_t>(worker)], got[static_cast<size_t>(survivor)]))
        << "worker " << worker << ", seed " << seed;
  }
}

TEST(Elastic, GoesOnWheneverAWorkerIsLost) {
  for (uint64_t seed = 0; seed < 12; ++seed) expect_others_to_finish(3, 1, seed);
}

TEST(Elastic, GoesOnWithoutSeveral) {
  for (uint64_t seed = 0; seed < 8; ++seed) expect_others_to_finish(5, 3, seed);
}

TEST(Elastic, GoesOnWithoutAWorkerThatEndsEarlyOrThrows) {
  for (const int lost : {0, 1}) {
    const auto thrown = run_job(2,
                                [&](Worker& worker) {
                                  const KVStorePtr store = worker.store();
                                  store->init({"a"}, {zeros({2})});
                                  const NDArray out = zeros({2});
                                  for (int step = 0; step < 4; ++step) {
                                    if (step == 2 && worker.rank == lost) fail("as asked for");
                                    store->pushpull({"a"}, {{ones({2})}}, {{out}});
                                  }
                                  EXPECT_EQ(out.to_vector<float>(), Floats(2, 1));
                                },
                                {.peers = elastic});
    EXPECT_EQ(thrown[static_cast<size_t>(lost)], "as asked for");
    EXPECT_EQ(thrown[static_cast<size_t>(1 - lost)], "");
  }
}

TEST(Elastic, SavesTheStatesThatOneProcessSaves) {
  const Training training{.optimizer = "adam", .params = {{"learning_rate", 0.1}}};
  const KVStorePtr local = KVStore::create("local");
  prepare(*local, training);
  std::string expected;
  {
    KVStore::Values values(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i)
      for (int context = 0; context < 2; ++context)
        values[i].push_back(gradient(i, context, 0, DType::float32).as_copy_in(cpu(context)));
    local->push(keys(), values);
    expected = local->get_optimizer_states();
  }
  run_job(2,
          [&](Worker& worker) {
            const KVStorePtr store = worker.store();
            prepare(*store, training);
            push_step(*store, worker.rank, 0, DType::float32);
            const SavedStates got = read_states(store->get_optimizer_states(), "got");
            const SavedStates wanted = read_states(expected, "wanted");
            ASSERT_EQ(got.states.size(), wanted.states.size());
            for (size_t i = 0; i < got.states.size(); ++i) {
              EXPECT_EQ(got.states[i].first, wanted.states[i].first);
              EXPECT_EQ(got.states[i].second.tuple.at(1).array.to_vector<float>(),
                        wanted.states[i].second.tuple.at(1).array.to_vector<float>());
            }
          },
          {.peers = elastic});
}

TEST(Elastic, RefusesWhatItCannotKeep) {
  const auto thrown = run_job(2,
                              [&](Worker& worker) {
                                EXPECT_THROW(worker.store("dist_async"), Error);
                                EXPECT_THROW(worker.store()->set_optimizer(Optimizer::create("sgld", {})), Error);
                              },
                              {.peers = elastic});
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

TEST(CatchUp, SendsTheLastStepToThoseThatMissedIt) {
  const std::vector<Progress> of_workers = {{.barriers = 2, .done = {{"a", 4}, {"b", 3}, {"c", -1}, {"d", 7}}},
                                            {.barriers = 3, .done = {{"a", 3}, {"b", 4}, {"c", -1}, {"d", 7}}},
                                            {.barriers = 3, .done = {{"a", 4}, {"b", 3}, {"c", 0}, {"d", 7}}}};
  const CatchUp plan = plan_catch_up(of_workers);
  EXPECT_EQ(plan.barriers, 3u);
  std::vector<std::string> transfers;
  for (const CatchUp::Transfer& each : plan.transfers) {
    std::string text = join(each.key, each.step, " from ", each.source, " to");
    for (const int worker : each.behind) text += join(" ", worker);
    transfers.push_back(text);
  }
  EXPECT_EQ(transfers, (std::vector<std::string>{"a4 from 0 to 1", "b4 from 1 to 0 2", "c0 from 2 to 0 1"}));
}

}  // namespace
}  // namespace symbind::testing
