// Servers, which are threads here, as the workers are: they hold the keys of dist_async stores, do what the workers
// would do with them, and are of no consequence for other stores.
#include "symbind/kvstore/server.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <gtest/gtest.h>

#include "symbind/files/states.h"
#include "symbind/kvstore/optimizer_text.h"

#include "tests/kvstore/dist_training.h"
#include "tests/kvstore/thread_transport.h"
#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using namespace std::chrono_literals;

std::vector<NDArray> arrays(uint64_t seed) {
  std::vector<NDArray> all;
  for (const auto& [name, shape] : parameters) all.push_back(random_array(shape, seed++, -1, 1, DType::float32));
  return all;
}

void push(KVStore& store, uint64_t step) {
  KVStore::Values values;
  for (const NDArray& each : arrays(1000 * (step + 1))) values.push_back({each});
  store.push(keys(), values);
}

OptimizerPtr optimizer(const std::string& name) {
  OptimizerParams params{{"learning_rate", 0.1}, {"wd", 0.01}, {"rescale_grad", 0.5}};
  params.emplace("lr_scheduler", std::make_shared<FactorScheduler>(FactorSchedule{.step = 2, .factor = 0.5}));
  OptimizerPtr made = Optimizer::create(name, params);
  made->set_lr_mult({{"fc_weight", 0.3}});
  made->set_wd_mult({{"conv_weight", 2}});
  return made;
}

std::vector<Floats> trained(KVStore& store, const std::string& name, bool compressed) {
  if (compressed) store.set_gradient_compression({{"type", "2bit"}, {"threshold", "0.25"}});
  store.set_optimizer(optimizer(name));
  store.init(keys(), arrays(1));
  for (uint64_t step = 0; step < 5; ++step) push(store, step);
  return pulled(store);
}

TEST(Servers, DoWhatAProcessWouldDoAlone) {
  for (const std::string& name : optimizers) {
    for (const bool compressed : {false, true}) {
      if (compressed && name != "sgd") continue;
      const auto expected = trained(*KVStore::create(compressed ? "device" : "local"), name, compressed);
      for (const int servers : {1, 3}) {
        if (servers > 1 && name == "lbsgd") continue;  // its rate depends on the keys that were updated before
        std::vector<Floats> got;
        const auto thrown =
            run_job(1, [&](Worker& worker) { got = trained(*worker.store("dist_async"), name, compressed); },
                    {.servers = servers});
        EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(1 + servers)));
        EXPECT_TRUE(same_bits(got, expected)) << name << " with " << servers << " servers";
      }
    }
  }
}

TEST(Servers, ApplyThePushesOfAllWorkers) {
  for (const int servers : {1, 2, 3}) {
    const auto thrown =
        run_job(4,
                [&](Worker& worker) {
                  const KVStorePtr store = worker.store("dist_async");
                  EXPECT_EQ(store->rank(), worker.rank);
                  EXPECT_EQ(store->num_workers(), 4);
                  store->set_optimizer(Optimizer::create("test", {}));  // adds the gradient to the weight
                  store->init({0, 1}, {full({3}, worker.rank), zeros({300, 200})});
                  for (int step = 0; step < 5; ++step) store->push({0, 1}, {{ones({3})}, {full({300, 200}, 2)}});
                  const NDArray small = zeros({3}), large = zeros({300, 200});
                  store->pull({0}, {{small}});
                  EXPECT_GE(small.to_vector<float>()[0], 5);  // its own pushes are in it
                  store->barrier();
                  store->pull({0, 1}, {{small}, {large}});
                  EXPECT_EQ(small.to_vector<float>(), Floats(3, 20.0f));
                  EXPECT_EQ(large.to_vector<float>(), Floats(60000, 40.0f));
                },
                {.servers = servers});
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(4 + servers)));
  }
}

TEST(Servers, HaveAppliedEveryPushBeforeABarrierEnds) {
  for (const int servers : {0, 1}) {
    const auto thrown = run_job(3,
                                [&](Worker& worker) {
                                  const KVStorePtr store = worker.store("dist_async");
                                  store->set_optimizer(Optimizer::create("test", {}));
                                  store->init({"a"}, {zeros({2})});
                                  const NDArray out = zeros({2});
                                  for (int step = 1; step <= 50; ++step) {
                                    store->push({"a"}, {{ones({2})}});
                                    store->barrier();
                                    store->pull({"a"}, {{out}});
                                    EXPECT_EQ(out.to_vector<float>(), Floats(2, static_cast<float>(3 * step)))
                                        << servers << " servers";
                                    store->barrier();
                                  }
                                },
                                {.servers = servers});
    for (const std::string& each : thrown) EXPECT_EQ(each, "");
  }
}

TEST(Servers, HoldSeveralStores) {
  const auto thrown =
      run_job(2,
              [&](Worker& worker) {
                const KVStorePtr in_step = worker.store("dist_sync");
                const std::vector<KVStorePtr> stores = {worker.store("dist_async"), worker.store("dist_async")};
                for (size_t i = 0; i < 2; ++i) {
                  stores[i]->set_optimizer(Optimizer::create("test", {}));
                  stores[i]->init({"w"}, {full({4}, static_cast<double>(i))});
                }
                for (size_t i = 0; i < 2; ++i) {
                  const NDArray out = zeros({4});
                  stores[i]->push({"w"}, {{full({4}, 10)}});
                  stores[i]->barrier();
                  stores[i]->pull({"w"}, {{out}});
                  EXPECT_EQ(out.to_vector<float>(), Floats(4, 20.0f + static_cast<float>(i)));
                }
                in_step->init({"w"}, {zeros({4})});
                const NDArray sum = zeros({4});
                in_step->pushpull({"w"}, {{full({4}, worker.rank + 1)}}, {{sum}});
                EXPECT_EQ(sum.to_vector<float>(), Floats(4, 3.0f));
              },
              {.servers = 2});
  EXPECT_EQ(thrown, std::vector<std::string>(4));
}

// Workers update in step themselves: the bits are those without servers.
TEST(Servers, HaveNothingToDoInStep) {
  std::vector<std::vector<Floats>> got;
  for (const int servers : {0, 2}) {
    std::vector<Floats> one;
    const auto thrown = run_job(3,
                                [&](Worker& worker) {
                                  const KVStorePtr store = worker.store("dist_sync");
                                  EXPECT_EQ(store->num_workers(), 3);
                                  auto values = trained(*store, "adam", false);
                                  if (worker.rank == 0) one = std::move(values);
                                  const KVStorePtr sums = worker.store("horovod");
                                  const NDArray sum = full({2}, worker.rank);
                                  sums->pushpull({"g"}, {{sum}}, {{sum}});
                                  EXPECT_EQ(sum.to_vector<float>(), Floats(2, 3.0f));
                                },
                                {.servers = servers});
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(3 + servers)));
    got.push_back(std::move(one));
  }
  EXPECT_TRUE(got[0] == got[1]);
}

TEST(Servers, EndWhereNobodyNeedsThem) {
  EXPECT_EQ(run_job(2, [](Worker&) {}, {.servers = 2}), std::vector<std::string>(4));
  EXPECT_EQ(run_job(0, [](Worker&) {}, {.servers = 2}), std::vector<std::string>(2));
}

TEST(Servers, SaveStatesThatAnyNumberOfServersResumes) {
  std::vector<Floats> expected, weights;
  std::string states;
  run_job(1,
          [&](Worker& worker) {
            const KVStorePtr store = worker.store("dist_async");
            store->set_optimizer(optimizer("adam"));
            store->init(keys(), arrays(1));
            for (uint64_t step = 0; step < 2; ++step) push(*store, step);
            weights = pulled(*store);
            states = store->get_optimizer_states();
            for (uint64_t step = 2; step < 4; ++step) push(*store, step);
            expected = pulled(*store);
          },
          {.servers = 3});
  EXPECT_EQ(read_states(states, "states").states.size(), parameters.size());
  for (const int servers : {0, 1, 2})
    for (const bool before_init : {false, true}) {
      std::vector<Floats> got;
      const auto thrown = run_job(1,
                                  [&](Worker& worker) {
                                    const KVStorePtr store = worker.store("dist_async");
                                    store->set_optimizer(optimizer("adam"));
                                    std::vector<NDArray> values;
                                    for (size_t i = 0; i < parameters.size(); ++i)
                                      values.push_back(array(weights[i], parameters[i].second));
                                    if (before_init) store->set_optimizer_states(read_states(states, "states"));
                                    store->init(keys(), values);
                                    if (!before_init) store->set_optimizer_states(read_states(states, "states"));
                                    for (uint64_t step = 2; step < 4; ++step) push(*store, step);
                                    got = pulled(*store);
                                  },
                                  {.servers = servers});
      EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(1 + servers)));
      EXPECT_TRUE(got == expected) << servers << " servers";
    }
}

// Another optimizer may need whole values where the last one worked on pieces: keys change their owners.
TEST(Servers, KeepTheValuesWhenTheOptimizerChanges) {
  for (const int servers : {0, 2}) {
    const auto thrown = run_job(2,
                                [&](Worker& worker) {
                                  const KVStorePtr store = worker.store("dist_async");
                                  store->init({"w"}, {zeros({300, 200})});
                                  store->set_optimizer(Optimizer::create("sgd", {{"learning_rate", 1.0}, {"wd", 0.0}}));
                                  for (int step = 0; step < 3; ++step) store->push({"w"}, {{full({300, 200}, -1)}});
                                  store->set_optimizer(Optimizer::create("lamb", {{"learning_rate", 0.0}}));
                                  const NDArray out = zeros({300, 200});
                                  store->pull({"w"}, {{out}});
                                  EXPECT_EQ(out.to_vector<float>(), Floats(60000, 6.0f)) << servers << " servers";
                                },
                                {.servers = servers});
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(2 + servers)));
  }
}

TEST(Servers, TakeCommands) {
  std::atomic<int> handled = 0;
  const auto thrown = run_job(2,
                              [&](Worker& worker) {
                                const KVStorePtr store = worker.store("dist_async");
                                store->set_command_handler([&](int, const std::string&) { ++handled; });
                                store->barrier();
                                if (worker.rank == 1) store->send_command_to_servers(5, "ab");
                                store->barrier();
                              },
                              {.servers = 2});
  EXPECT_EQ(thrown, std::vector<std::string>(4));
  EXPECT_EQ(handled, 0);  // the servers have logged it
}

TEST(Servers, CannotCallAnUpdaterOfTheWorkers) {
  const auto thrown =
      run_job(1,
              [&](Worker& worker) {
                worker.store("dist_async")->set_updater([](const ParamKey&, const NDArray&, const NDArray&) {});
              },
              {.servers = 1});
  EXPECT_NE(thrown[0].find("use set_optimizer, or start the job without servers (-s 0)"), std::string::npos)
      << thrown[0];
}

// ---- failures -------------------------------------------------------------------------------------------------------

class Failing final : public Optimizer {
 public:
  Failing() : Optimizer({}) {}
  std::string name() const override { return "failing"; }
  StateTree create_state(const ParamKey&, const NDArray&) override { return {}; }
  void update(const Update&) override { fail("no room"); }
};

TEST(Servers, AreNamedWhereTheyFail) {
  register_optimizer("failing", [](const OptimizerParams&) { return std::make_shared<Failing>(); });
  const auto thrown = run_job(2,
                              [&](Worker& worker) {
                                const KVStorePtr store = worker.store("dist_async");
                                store->set_optimizer(std::make_shared<Failing>());
                                store->init({"a"}, {zeros({2})});
                                for (;;) store->pushpull({"a"}, {{ones({2})}}, {{zeros({2})}});
                              },
                              {.servers = 1});
  for (const std::string& text : thrown)
    EXPECT_NE(text.find("server 0 on host thread2 failed: no room"), std::string::npos) << text;
}

TEST(Servers, AreNamedWhereTheyAreLost) {
  const auto wires = make_wires(2, 2);
  const auto thrown = run_job(2,
                              [&](Worker& worker) {
                                const KVStorePtr store = worker.store("dist_async");
                                store->set_optimizer(Optimizer::create("sgd", {}));
                                store->init({"a", "b"}, {zeros({2}), zeros({2})});
                                if (worker.rank == 0) cut_off(*wires, 3);
                                for (;;)
                                  store->pushpull({"a", "b"}, {{ones({2})}, {ones({2})}}, {{zeros({2})}, {zeros({2})}});
                              },
                              {.peers = {.timeout = 1000ms, .heartbeat = 100ms}, .wires = wires});
  for (const size_t survivor : {0, 1, 2})
    EXPECT_NE(thrown[survivor].find("server 1 on host thread3 is lost: no sign of life"), std::string::npos)
        << thrown[survivor];
  EXPECT_NE(thrown[0].find("it is missed at a pull of key a after step "), std::string::npos) << thrown[0];
}

TEST(Servers, NoticeThatAWorkerIsLost) {
  const auto wires = make_wires(2, 1);
  const auto thrown = run_job(2,
                              [&](Worker& worker) {
                                const KVStorePtr store = worker.store("dist_async");
                                store->barrier();
                                if (worker.rank == 1) cut_off(*wires, 1);
                                for (;;) store->barrier();
                              },
                              {.peers = {.timeout = 1000ms, .heartbeat = 100ms}, .wires = wires});
  for (const size_t survivor : {0, 2})
    EXPECT_NE(thrown[survivor].find("worker 1 on host thread1 is lost"), std::string::npos) << thrown[survivor];
}

// ---- optimizers on their way ----------------------------------------------------------------------------------------

TEST(OptimizerText, HasSchedulesOfEveryKind) {
  const WarmUp warm_up{.steps = 2, .begin_lr = 0.01};
  for (const LRSchedulerPtr& schedule :
       {factor_scheduler({.step = 3, .factor = 0.5, .base_lr = 0.4, .warm_up = warm_up}),
        multi_factor_scheduler({.step = {3, 5}, .factor = 0.1, .base_lr = 0.4, .warm_up = warm_up}),
        poly_scheduler({.max_update = 9, .base_lr = 0.4, .pwr = 1.5, .final_lr = 0.1, .warm_up = warm_up}),
        cosine_scheduler({.max_update = 9, .base_lr = 0.4, .final_lr = 0.1, .warm_up = warm_up})}) {
    const OptimizerPtr given = Optimizer::create("sgd", {{"lr_scheduler", schedule}});
    for (int i = 0; i < 4; ++i) {
      given->update_count("w");
      given->learning_rate();
    }
    const OptimizerPtr read = read_optimizer(write_optimizer(given));
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(read->learning_rate(), given->learning_rate()) << i;
      EXPECT_EQ(read->num_update(), given->num_update());
      read->update_count("w");
      given->update_count("w");
    }
  }
}

TEST(OptimizerText, HasArgumentsNamesAndMultipliers) {
  const OptimizerPtr given = Optimizer::create(
      "sgd",
      {{"learning_rate", 0.3}, {"momentum", 0.9}, {"wd", 0.1}, {"clip_gradient", 2.0}, {"multi_precision", true}});
  given->set_names({{3, "fc_weight"}}, {{"fc_weight", {{"__lr_mult__", "0.5"}}}});
  given->set_wd_mult({{3, 4.0}, {"other", 0.25}});
  const OptimizerPtr read = read_optimizer(write_optimizer(given));
  EXPECT_EQ(read->name(), "sgd");
  EXPECT_EQ(std::get<double>(read->argument("momentum").get()), 0.9);
  EXPECT_EQ(read->clip_gradient, 2.0);
  EXPECT_EQ(read->clip_global_norm, std::nullopt);
  EXPECT_TRUE(read->multi_precision);
  EXPECT_EQ(read->lr_of(3), 0.15);
  EXPECT_EQ(read->wd_of(3), 0.4);
  EXPECT_EQ(read->wd_of("other"), 0.025);
}

TEST(OptimizerText, HasNoSchedulesOfOnesOwn) {
  class Own final : public LRScheduler {
   public:
    Own() : LRScheduler(0.1, {}) {}

   protected:
    double after_warm_up(int64_t) override { return 1; }
  };
  const OptimizerPtr given = Optimizer::create("sgd", {{"lr_scheduler", LRSchedulerPtr(std::make_shared<Own>())}});
  EXPECT_TRUE(fails_with([&] { write_optimizer(given); }, "schedule", "without servers"));
}

}  // namespace
}  // namespace symbind::testing
