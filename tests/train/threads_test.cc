// Modules, optimizers, metrics and stores used by several threads. Also run under the thread sanitizer.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/training.h"

namespace symbind {

using namespace symbind::testing;

namespace {

// Lets two threads meet: one reports that it is inside a call, the other says when it may leave.
class Meeting {
 public:
  void arrive() {
    std::unique_lock lock(mutex_);
    inside_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return leave_; });
  }
  void wait_for_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    leave_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool inside_ = false, leave_ = false;
};

TEST(ModuleThreads, AModuleThatIsTrainingRefusesOtherThreads) {
  NDArrayIter data = batches();
  Module module(small_network());
  Meeting meeting;
  bool first = true;
  std::thread training([&] {
    module.fit(data, {.batch_end_callback = {[&](const BatchEndParam&) {
                        if (std::exchange(first, false)) meeting.arrive();
                      }},
                      .num_epoch = 1});
  });
  meeting.wait_for_arrival();
  EXPECT_TRUE(fails_with([&] { module.get_params(); }, "[get_params] this module", "another thread", "Predictor"));
  EXPECT_TRUE(fails_with([&] { module.forward(DataBatch{}); }, "[forward] this module"));
  EXPECT_TRUE(fails_with([&] { module.update(); }, "[update] this module"));
  EXPECT_EQ(module.param_names().size(), 4u);
  meeting.let_go();
  training.join();
  EXPECT_EQ(module.get_params().arg_params.size(), 4u);
}

TEST(ModuleThreads, CallbacksMayUseTheModule) {
  NDArrayIter data = batches();
  Module module(small_network(), {.context = {cpu(0), cpu(1)}});
  int calls = 0;
  module.fit(data, {.batch_end_callback = {[&](const BatchEndParam&) {
                      ++calls;
                      EXPECT_EQ(module.get_params().arg_params.size(), 4u);
                      EXPECT_EQ(module.get_outputs()[0].shape(), (Shape{10, 3}));
                    }},
                    .num_epoch = 1});
  EXPECT_EQ(calls, 4);
}

TEST(ModuleThreads, ModulesTrainConcurrently) {
  const auto train = [](NamedArrays& result) {
    NDArrayIter data = batches();
    Module module(small_network(), {.context = {cpu(0), cpu(1)}});
    module.fit(data, {.kvstore = "device", .arg_params = first_values(), .num_epoch = 3});
    result = module.get_params().arg_params;
  };
  std::vector<NamedArrays> results(3);
  std::vector<std::thread> threads;
  for (NamedArrays& result : results) threads.emplace_back([&] { train(result); });
  for (std::thread& thread : threads) thread.join();
  for (const NamedArrays& result : results) expect_equal(result, results[0], {0, 0});
}

// An optimizer that stops in the middle of an update.
class SlowOptimizer final : public Optimizer {
 public:
  explicit SlowOptimizer(Meeting& meeting) : Optimizer(OptimizerParams{}), meeting_(meeting) {}
  std::string name() const override { return "slow"; }
  StateTree create_state(const ParamKey&, const NDArray&) override { return {}; }
  void update(const Update& each) override {
    update_count(each.key);
    meeting_.arrive();
  }

 private:
  Meeting& meeting_;
};

TEST(OptimizerThreads, AnUpdaterAndItsOptimizerServeOneThreadAtATime) {
  Meeting meeting;
  const auto optimizer = std::make_shared<SlowOptimizer>(meeting);
  Updater updater(optimizer), other_updater(optimizer);
  std::thread busy([&] { updater(0, zeros({1}), zeros({1})); });
  meeting.wait_for_arrival();
  EXPECT_TRUE(fails_with([&] { updater(1, zeros({1}), zeros({1})); }, "[update] this updater", "another thread"));
  EXPECT_TRUE(fails_with([&] { other_updater(1, zeros({1}), zeros({1})); }, "[update] this optimizer"));
  EXPECT_TRUE(fails_with([&] { updater.get_states(); }, "[get_states] this updater"));
  meeting.let_go();
  busy.join();
  EXPECT_EQ(optimizer->num_update(), 1);
}

TEST(MetricThreads, AMetricIsUpdatedByOneThreadAtATime) {
  Meeting meeting;
  bool first = true;
  const auto metric = std::make_shared<symbind::metric::CustomMetric>([&](const NDArray&, const NDArray&) {
    if (std::exchange(first, false)) meeting.arrive();
    return symbind::metric::Score{1, 1};
  });
  std::thread busy([&] { metric->update_dict({{"label", zeros({1})}}, {{"output", zeros({1})}}); });
  meeting.wait_for_arrival();
  EXPECT_TRUE(fails_with(
      [&] {
        metric->update_dict({{"label", zeros({1})}}, {{"output", zeros({1})}});
      },
      "[update_dict] this metric", "another thread"));
  EXPECT_TRUE(fails_with([&] { metric->reset(); }, "[reset] this metric"));
  meeting.let_go();
  busy.join();
  EXPECT_EQ(metric->get()[0].second, 1.0);
}

TEST(StoreThreads, CallsOfAStoreComeOneAfterTheOther) {
  const KVStorePtr store = KVStore::create("local");
  store->init({0}, {zeros({64})});
  store->set_updater([](const ParamKey&, const NDArray& pushed, const NDArray& stored) {
    NDArray sum = stored;
    sum += pushed;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const NDArray one = ones({64}), into({64});
      for (int k = 0; k < 50; ++k) {
        store->push({0}, {{one}});
        store->pull({0}, {{into}});
      }
    });
  for (std::thread& thread : threads) thread.join();
  const NDArray sum({64});
  store->pull({0}, {{sum}});
  EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(64, 200));
}

}  // namespace
}  // namespace symbind
