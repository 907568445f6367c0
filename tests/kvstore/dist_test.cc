// Stores over several workers, which are threads here: the same bits as one process with as many contexts, keys in any
// order, states of the optimizer, and what happens when workers disagree or are lost.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/core/interrupt.h"
#include "symbind/core/param_key.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/agreement.h"
#include "symbind/kvstore/early_push.h"
#include "symbind/kvstore/kvstore.h"
#include "symbind/optim/options.h"

#include "tests/kvstore/dist_training.h"
#include "tests/kvstore/thread_transport.h"
#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using namespace std::chrono_literals;

void expect_the_bits_of_one_process(int workers, const Training& training) {
  const std::vector<Floats> expected = one_process(workers, training);
  std::vector<std::vector<Floats>> got(static_cast<size_t>(workers));
  const auto thrown = run_job(workers, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    prepare(*store, training);
    for (int step = 0; step < training.steps; ++step) push_step(*store, worker.rank, step, training.dtype);
    got[static_cast<size_t>(worker.rank)] = pulled(*store, training.dtype);
  });
  for (size_t worker = 0; worker < got.size(); ++worker) {
    EXPECT_EQ(thrown[worker], "");
    EXPECT_TRUE(same_bits(got[worker], expected)) << training.optimizer << ", worker " << worker << " of " << workers;
  }
}

TEST(DistSync, HasTheBitsOfOneProcessWithAsManyContexts) {
  for (const int workers : {1, 2, 4, 7}) expect_the_bits_of_one_process(workers, {});
}

TEST(DistSync, HasTheBitsOfOneProcessWithEveryOptimizer) {
  for (const std::string& name : optimizers) {
    expect_the_bits_of_one_process(4, {.optimizer = name, .params = {{"learning_rate", 0.1}}});
  }
}

TEST(DistSync, ReplacesTheValueByTheSumWithoutAnOptimizer) { expect_the_bits_of_one_process(4, {.optimizer = ""}); }

TEST(DistSync, AddsHalfPrecisionInFloat) {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    expect_the_bits_of_one_process(4, {.optimizer = "", .dtype = dtype});
    expect_the_bits_of_one_process(
        3, {.params = {{"learning_rate", 0.1}, {"momentum", 0.9}, {"multi_precision", true}}, .dtype = dtype});
  }
}

TEST(DistSync, ExchangesTwoBits) {
  expect_the_bits_of_one_process(4, {.compressed = true, .steps = 5});
  expect_the_bits_of_one_process(3, {.optimizer = "", .compressed = true});
}

TEST(DistSync, BoundsTheNormOfAllGradients) {
  for (const int workers : {1, 4})
    expect_the_bits_of_one_process(workers, {.params = {{"learning_rate", 0.1}, {"clip_global_norm", 1.0}}});
}

TEST(DistSync, FollowsASchedule) {
  for (const std::string name : {"sgd", "adam", "lbsgd", "lars"})
    expect_the_bits_of_one_process(4, {.optimizer = name, .steps = 5, .scheduled = true});
}

TEST(DistSync, TakesTheValuesOfWorkerZero) {
  const auto thrown = run_job(3, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    EXPECT_EQ(store->rank(), worker.rank);
    EXPECT_EQ(store->num_workers(), 3);
    const NDArray out = zeros({4});
    store->broadcast({1}, {full({4}, worker.rank + 5)}, {{out}});
    EXPECT_EQ(out.to_vector<float>(), Floats(4, 5.0f));
    store->barrier();
  });
  EXPECT_EQ(thrown, std::vector<std::string>(3));
}

TEST(DistStore, DescribesHowItSums) {
  const auto thrown = run_job(3, [&](Worker& worker) {
    const KVStorePtr sync = worker.store(), async = worker.store("dist_async"), sums = worker.store("horovod");
    for (const KVStorePtr& store : {sync, async, sums}) EXPECT_TRUE(store->is_distributed()) << store->type();
    EXPECT_EQ(sync->workers_per_update(), 3);
    EXPECT_EQ(async->workers_per_update(), 1);
    EXPECT_EQ(sums->workers_per_update(), 1);
    EXPECT_TRUE(sync->has_optimizer());
    EXPECT_TRUE(async->has_optimizer());
    EXPECT_FALSE(sums->has_optimizer());
  });
  EXPECT_EQ(thrown, std::vector<std::string>(3));
  EXPECT_FALSE(KVStore::create("local")->is_distributed());
}

TEST(DistSync, MatchesKeysThatWorkersPushInDifferentOrders) {
  const auto thrown = run_job(4, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->init({0, 1, 2, 3}, std::vector<NDArray>(4, zeros({5})));
    for (int step = 1; step <= 20; ++step) {
      for (int i = 0; i < 4; ++i) {
        const int key = (i + worker.rank * step) % 4;
        store->push({key}, {{full({5}, key * 100 + worker.rank + step)}}, -key);
      }
      for (int key = 3; key >= 0; --key) {
        const NDArray out = zeros({5});
        store->pull({key}, {{out}});
        EXPECT_EQ(out.to_vector<float>(), Floats(5, static_cast<float>(4 * key * 100 + 6 + 4 * step)));
      }
    }
  });
  EXPECT_EQ(thrown, std::vector<std::string>(4));
}

TEST(DistSync, CopiesWhatIsPushed) {
  run_job(2, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->init({0}, {zeros({40000})});
    const NDArray pushed = ones({40000}), out = zeros({40000});
    store->push({0}, {{pushed}});
    pushed.fill(100);
    store->pull({0}, {{out}});
    EXPECT_EQ(out.to_vector<float>(), Floats(40000, 2.0f));
  });
}

TEST(DistSync, SavesOnOneWorkerWhatAnyNumberOfWorkersResumes) {
  const Training training{.optimizer = "adam", .params = {{"learning_rate", 0.1}}, .steps = 4};
  const std::vector<Floats> expected = one_process(4, training);
  std::string states;
  std::vector<Floats> weights;
  run_job(4, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    prepare(*store, training);
    for (int step = 0; step < 2; ++step) push_step(*store, worker.rank, step, DType::float32);
    const std::vector<Floats> now = pulled(*store, DType::float32);
    if (worker.rank != 0) return;
    weights = now;
    states = store->get_optimizer_states();
  });
  ASSERT_EQ(read_states(states, "states").states.size(), parameters.size());
  for (const int workers : {1, 2, 3, 4}) {
    // The gradients of four workers, of which each has its share.
    std::vector<Floats> got;
    const auto thrown = run_job(workers, [&](Worker& worker) {
      const KVStorePtr store = worker.store();
      store->set_optimizer(Optimizer::create("adam", {{"learning_rate", 0.1}}));
      std::vector<NDArray> values;
      for (size_t i = 0; i < parameters.size(); ++i) values.push_back(array(weights[i], parameters[i].second));
      store->init(keys(), values);
      store->set_optimizer_states(read_states(states, "states"));
      for (int step = 2; step < 4; ++step) {
        KVStore::Values grads(parameters.size());
        for (size_t i = 0; i < parameters.size(); ++i) {
          // All are summed by the last worker, in order; the others push zeros.
          NDArray sum = zeros(parameters[i].second);
          if (worker.rank == workers - 1)
            for (int each = 0; each < 4; ++each) sum += gradient(i, each, step, DType::float32);
          grads[i].push_back(sum);
        }
        store->push(keys(), grads);
      }
      const std::vector<Floats> now = pulled(*store, DType::float32);
      if (worker.rank == 0) got = now;
    });
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(workers)));
    EXPECT_EQ(got, expected) << workers << " workers";
  }
}

TEST(DistSync, GivesWholeValuesToAnUpdaterAndEachWorkerItsPart) {
  std::vector<int64_t> elements(4);
  run_job(4, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->set_updater([&](const ParamKey&, const NDArray& pushed, const NDArray& stored) {
      elements[static_cast<size_t>(worker.rank)] += stored.size();
      pushed.copyto(stored);
    });
    store->init({0, 1, 2, 3}, std::vector<NDArray>(4, zeros({50})));
    store->pushpull({0, 1, 2, 3}, KVStore::Values(4, {ones({50})}), KVStore::Values(4, {zeros({50})}));
  });
  EXPECT_EQ(elements, std::vector<int64_t>(4, 50));
}

TEST(DistSync, HandsCommandsToEveryWorker) {
  std::atomic<int> sum = 0;
  run_job(3, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->set_command_handler([&](int head, const std::string& body) { sum += head + static_cast<int>(body.size()); });
    store->barrier();
    if (worker.rank == 1) store->send_command_to_servers(5, "ab");
    store->barrier();
    EXPECT_EQ(sum, 21);
  });
}

TEST(DistSync, DecidesTogether) {
  for (const std::string type : {"dist_sync", "horovod"}) {
    const auto thrown = run_job(3, [&](Worker& worker) {
      const KVStorePtr store = worker.store(type);
      auto& workers = dynamic_cast<Agreement&>(*store);
      for (int step = 0; step < 8; ++step) {
        const bool own = step % 4 == 3 || step % 4 != worker.rank;  // worker 0, 1 or 2 says no, then none does
        EXPECT_EQ(workers.all_agree("the check", own), step % 4 == 3) << type << ", step " << step;
      }
    });
    EXPECT_EQ(thrown, std::vector<std::string>(3));
  }
}

TEST(DistSync, PushesEarlyOnce) {
  const auto thrown = run_job(3, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    auto& early = dynamic_cast<EarlyPush&>(*store);
    store->set_optimizer(Optimizer::create("test", {}));  // adds the gradient to the weight
    store->init({0, 1}, {zeros({3}), zeros({60000})});
    EXPECT_TRUE(early.may_push_early());
    const NDArray small = zeros({3}), large = zeros({60000});
    for (int step = 1; step <= 3; ++step) {
      early.push_early({1}, {{ones({60000})}}, 0);
      store->pushpull({0, 1}, {{ones({3})}, {ones({60000})}}, {{small}, {large}});
      EXPECT_EQ(small.to_vector<float>(), Floats(3, static_cast<float>(3 * step)));
      EXPECT_EQ(large.to_vector<float>(), Floats(60000, static_cast<float>(3 * step)));
    }
    store->set_optimizer(Optimizer::create("lars", {}));
    EXPECT_FALSE(early.may_push_early());
  });
  EXPECT_EQ(thrown, std::vector<std::string>(3));
}

TEST(DistSync, ReturnsSumsUnlessItUpdatesOrCompresses) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const auto returns_sums = [](const KVStorePtr& store) { return dynamic_cast<EarlyPush&>(*store).returns_sums(); };
    EXPECT_TRUE(returns_sums(worker.store()));
    EXPECT_TRUE(returns_sums(worker.store("horovod")));
    EXPECT_FALSE(returns_sums(worker.store("dist_async")));
    const KVStorePtr updates = worker.store(), compresses = worker.store();
    updates->set_optimizer(Optimizer::create("sgd", {}));
    EXPECT_FALSE(returns_sums(updates));
    compresses->set_gradient_compression({{"type", "2bit"}});
    EXPECT_FALSE(returns_sums(compresses));
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

// A number that is not finite reaches all workers, and so does a sum that overflows in a type of 16 bits.
TEST(DistSync, SumsOfInfinityAndNaNAreNotFiniteOnAnyWorker) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float32, DType::float16})
    for (const double bad : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 40000.0}) {
      const bool overflows = std::isfinite(bad);
      if (overflows && dtype == DType::float32) continue;
      const auto thrown = run_job(3, [&](Worker& worker) {
        const KVStorePtr store = worker.store("horovod");
        store->init({0}, {zeros({1000}, cpu(), dtype)});
        const NDArray own = full({1000}, worker.rank == 1 || overflows ? bad : 1, cpu(), dtype);
        store->pushpull({0}, {{own}}, {{own}});
        for (const double sum : own.to_vector<double>()) EXPECT_FALSE(std::isfinite(sum)) << bad << " in " << dtype;
      });
      EXPECT_EQ(thrown, std::vector<std::string>(3));
    }
}

// ---- disagreement ---------------------------------------------------------------------------------------------------

void expect_all_contain(const std::vector<std::string>& texts, const std::vector<std::string>& parts) {
  for (size_t worker = 0; worker < texts.size(); ++worker)
    for (const std::string& part : parts)
      EXPECT_NE(texts[worker].find(part), std::string::npos) << "worker " << worker << " says: " << texts[worker];
}

TEST(DistSync, NamesBothWorkersOfDifferentShapes) {
  const auto thrown = run_job(3, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->init({"w"}, {zeros({worker.rank == 1 ? 4 : 3, 2})});
  });
  expect_all_contain(thrown, {"key w", "worker 1 on host thread1", "(4,2)", "(3,2)"});
}

TEST(DistSync, NamesTheKeysThatWorkersWaitForInVain) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->init({"a", "b"}, {zeros({2}), zeros({2})});
    const std::string key = worker.rank == 0 ? "a" : "b";
    store->push({key}, {{ones({2})}});
    store->pull({key}, {{zeros({2})}});
  });
  expect_all_contain(thrown, {"worker 0 on host thread0 has not come to key b at step 1",
                              "worker 1 on host thread1 has not come to key a at step 1"});
}

TEST(DistSync, NamesTheDecisionThatAWorkerDoesNotTake) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    auto& workers = dynamic_cast<Agreement&>(*store);
    workers.all_agree("the check", true);
    worker.rank == 0 ? workers.all_agree("the check", true) : (store->barrier(), true);
  });
  expect_all_contain(thrown, {"worker 1 on host thread1 has not come to the check at step 2", "barrier 1"});
}

TEST(DistSync, NamesTheWorkerWithoutTheOptimizer) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->init({"a"}, {zeros({2})});
    store->set_optimizer(Optimizer::create(worker.rank ? "adam" : "sgd", {}));
    store->pushpull({"a"}, {{ones({2})}}, {{zeros({2})}});
  });
  expect_all_contain(thrown, {"optimizer sgd", "optimizer adam", "worker 1"});
}

TEST(DistSync, NamesTheWorkerThatEndsEarly) {
  const auto thrown = run_job(3, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->init({"a"}, {zeros({2})});
    for (int step = 0; step < 5; ++step) {
      if (step == 3 && worker.rank == 1) return;
      store->pushpull({"a"}, {{ones({2})}}, {{zeros({2})}});
    }
  });
  EXPECT_EQ(thrown[1], "");
  expect_all_contain({thrown[0], thrown[2]}, {"worker 1 on host thread1 has ended", "key a at step 4"});
}

TEST(DistSync, NamesTheWorkerThatFailsToUpdate) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const KVStorePtr store = worker.store();
    store->init({"a"}, {zeros({2})});
    store->set_updater([](const ParamKey&, const NDArray&, const NDArray&) { fail("no room"); });
    store->pushpull({"a"}, {{ones({2})}}, {{zeros({2})}});
  });
  expect_all_contain(thrown, {"worker 0 on host thread0 failed: no room"});
}

TEST(DistSync, NamesTheWorkerThatIsCutOff) {
  for (const int lost : {0, 2}) {
    const auto wires = make_wires(3);
    const auto thrown = run_job(3,
                                [&](Worker& worker) {
                                  const KVStorePtr store = worker.store();
                                  store->init({"a"}, {zeros({2})});
                                  for (int step = 0; step < 5; ++step) {
                                    if (step == 3 && worker.rank == lost) cut_off(*wires, lost);
                                    store->pushpull({"a"}, {{ones({2})}}, {{zeros({2})}});
                                  }
                                },
                                {.peers = {.timeout = 1000ms, .heartbeat = 100ms}, .wires = wires});
    std::vector<std::string> survivors = thrown;
    survivors.erase(survivors.begin() + lost);
    expect_all_contain(
        survivors, {join("worker ", lost, " on host thread", lost, " is lost: no sign of life"), "key a at step 4"});
  }
}

TEST(DistSync, WaitsForASlowWorker) {
  const auto thrown = run_job(2,
                              [&](Worker& worker) {
                                const KVStorePtr store = worker.store();
                                store->init({"a"}, {zeros({2})});
                                if (worker.rank == 1) std::this_thread::sleep_for(1500ms);
                                store->pushpull({"a"}, {{ones({2})}}, {{zeros({2})}});
                              },
                              {.peers = {.timeout = 500ms, .heartbeat = 50ms, .patience = 1s}, .wires = nullptr});
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

// ---- the other kinds ------------------------------------------------------------------------------------------------

TEST(DistAsync, AppliesEveryPushOnce) {
  const auto thrown = run_job(4, [&](Worker& worker) {
    const KVStorePtr store = worker.store("dist_async");
    store->set_optimizer(Optimizer::create("test", {}));  // adds the gradient to the weight
    store->init({0, 1}, {zeros({3}), zeros({300, 200})});
    for (int step = 0; step < 5; ++step) store->push({0, 1}, {{ones({3})}, {full({300, 200}, 2)}});
    const NDArray own = zeros({3});
    store->pull({0}, {{own}});
    EXPECT_GE(own.to_vector<float>()[0], 5);  // its own pushes are in it
    store->barrier();
    const NDArray small = zeros({3}), large = zeros({300, 200});
    store->pull({0, 1}, {{small}, {large}});
    EXPECT_EQ(small.to_vector<float>(), Floats(3, 20.0f));
    EXPECT_EQ(large.to_vector<float>(), Floats(60000, 40.0f));
  });
  EXPECT_EQ(thrown, std::vector<std::string>(4));
}

TEST(DistAsync, ServesItsValuesUntilAllHaveEnded) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const KVStorePtr store = worker.store("dist_async");
    store->set_optimizer(Optimizer::create("test", {}));
    store->init({0, 1}, {zeros({3}), zeros({3})});
    if (worker.rank == 0) return;
    std::this_thread::sleep_for(200ms);
    for (int step = 0; step < 3; ++step)
      store->pushpull({0, 1}, {{ones({3})}, {ones({3})}}, {{zeros({3})}, {zeros({3})}});
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

TEST(DistAsync, LeavesEachWorkerItsOwnDecision) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const KVStorePtr store = worker.store("dist_async");
    EXPECT_EQ(dynamic_cast<Agreement&>(*store).all_agree("the check", worker.rank == 0), worker.rank == 0);
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

TEST(DistAsync, ForgetsAPullThatWasInterrupted) {
  const auto wires = make_wires(2);
  const std::thread::id nobody{};
  std::atomic<std::thread::id> interrupted = nobody;
  std::atomic<bool> may_update = false;
  const auto before = set_interrupt_check([&] {
    if (std::this_thread::get_id() == interrupted) throw std::runtime_error("stop");
  });
  const auto thrown = run_job(2,
                              [&](Worker& worker) {
                                const KVStorePtr store = worker.store("dist_async");
                                store->set_updater([&](const ParamKey&, const NDArray&, const NDArray&) {
                                  while (!may_update) std::this_thread::sleep_for(1ms);
                                });
                                store->init({0, 1}, {zeros({3}), zeros({3})});
                                if (worker.rank == 0) {
                                  store->push({0, 1}, {{ones({3})}, {ones({3})}});
                                  interrupted = std::this_thread::get_id();
                                  EXPECT_THROW(store->pull({0, 1}, {{zeros({3})}, {zeros({3})}}), std::runtime_error);
                                  interrupted = nobody;
                                  cut_off(*wires, 1);
                                }
                                while (worker.peers->failure().empty()) std::this_thread::sleep_for(1ms);
                                may_update = true;
                                worker.peers->check_failure();
                              },
                              {.peers = {.timeout = 1000ms, .heartbeat = 100ms}, .wires = wires});
  set_interrupt_check(before);
  EXPECT_TRUE(thrown[0].find("worker 1 on host thread1 is lost") != std::string::npos &&
              thrown[0].find("it is missed while nothing is exchanged") != std::string::npos)
      << thrown[0];
}

TEST(DistAsync, NeedsAnOptimizer) {
  const auto thrown = run_job(1, [&](Worker& worker) {
    const KVStorePtr store = worker.store("dist_async");
    store->init({0}, {zeros({3})});
    store->push({0}, {{ones({3})}});
  });
  expect_all_contain(thrown, {"dist_async applies each push by an optimizer: call set_optimizer first"});
}

TEST(Horovod, BroadcastsAndSums) {
  const auto thrown = run_job(3, [&](Worker& worker) {
    const KVStorePtr store = worker.store("horovod");
    for (int round = 0; round < 2; ++round) {
      const NDArray out = zeros({3}), sum = full({2}, worker.rank);
      store->broadcast({"w"}, {full({3}, worker.rank + 7 + round)}, {{out}});
      EXPECT_EQ(out.to_vector<float>(), Floats(3, static_cast<float>(7 + round)));
      store->pushpull({"g"}, {{sum}}, {{sum}});
      EXPECT_EQ(sum.to_vector<float>(), Floats(2, 3.0f));
    }
  });
  EXPECT_EQ(thrown, std::vector<std::string>(3));
}

TEST(Horovod, HasNothingElse) {
  run_job(1, [&](Worker& worker) {
    const KVStorePtr store = worker.store("horovod");
    EXPECT_THROW(store->push({0}, {{ones({2})}}), Error);
    EXPECT_THROW(store->set_optimizer(Optimizer::create("sgd", {})), Error);
  });
}

}  // namespace
}  // namespace symbind::testing
