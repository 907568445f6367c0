// What happens when several threads use executors. Also run under the thread sanitizer.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/core/busy.h"
#include "symbind/core/parallel.h"
#include "symbind/core/workers.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::error_of;
using testing::fails_with;
using testing::same_bits;
using testing::var;

// Runs jobs on threads of their own and waits for all.
void run_all(const std::vector<std::function<void()>>& jobs) {
  std::vector<std::thread> threads;
  threads.reserve(jobs.size());
  for (const auto& job : jobs) threads.emplace_back(job);
  for (std::thread& thread : threads) thread.join();
}

// Calls `body` on this thread while `executor` runs on another, in the middle of a forward pass.
void while_it_runs(Executor& executor, const std::function<void()>& body) {
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false, leave = false;
  executor.set_monitor_callback([&](const std::string&, const NDArray&) {
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    changed.wait(lock, [&] { return leave; });
  });
  std::thread other([&] { executor.forward(); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside; });
  }
  body();
  {
    const std::lock_guard lock(mutex);
    leave = true;
    changed.notify_all();
  }
  other.join();
  executor.set_monitor_callback({});
}

TEST(ExecutorThreads, AnExecutorThatIsRunningRefusesOtherThreads) {
  auto executor = testing::bind_with_values(testing::mlp());
  while_it_runs(*executor, [&] {
    EXPECT_TRUE(fails_with([&] { executor->forward(); }, "[forward] this executor", "another thread", "Predictor"));
    EXPECT_TRUE(fails_with([&] { executor->backward(); }, "[backward] this executor"));
    EXPECT_TRUE(fails_with([&] { executor->copy_params_from({}); }, "[copy_params_from]"));
    EXPECT_TRUE(fails_with([&] { executor->set_monitor_callback({}); }, "[set_monitor_callback]"));
    EXPECT_TRUE(fails_with([&] { executor->debug_str(); }, "[debug_str]"));
    EXPECT_EQ(executor->arg_dict().count("fc1_weight"), 1u);  // what never changes may be asked for
  });
  EXPECT_EQ(executor->forward().size(), 1u) << "it is free again";
}

TEST(ExecutorThreads, ExecutorsThatShareMemoryRefuseToRunConcurrently) {
  auto first = testing::bind_with_values(testing::mlp());
  auto second = first->reshape({{"data", {3, 12}}, {"softmax_label", {3}}});
  while_it_runs(*first, [&] {
    EXPECT_TRUE(fails_with([&] { second->forward(); }, "working memory", "reshape()", "Predictor", "own_memory"));
  });
  second->forward();
}

TEST(ExecutorThreads, AnExecutorIsFreeAgainAfterAnError) {
  auto executor = testing::bind_with_values(testing::mlp());
  executor->set_monitor_callback([](const std::string&, const NDArray&) { fail("stop"); });
  EXPECT_TRUE(fails_with([&] { executor->forward(); }, "stop"));
  std::string error = "not run";
  run_all({[&] { error = error_of([&] { executor->forward(); }); }});
  EXPECT_EQ(error, "stop");
}

TEST(ExecutorThreads, AMonitorMayUseItsExecutor) {
  auto executor = testing::bind_with_values(testing::mlp());
  int calls = 0;
  executor->set_monitor_callback([&](const std::string&, const NDArray&) {
    ++calls;
    executor->copy_params_from({});
  });
  executor->forward();
  EXPECT_GT(calls, 0);
}

TEST(ExecutorThreads, AMonitorMayClearOrReplaceItself) {
  auto executor = testing::bind_with_values(testing::mlp());
  int first = 0, second = 0;
  // What the function holds must outlive the call that drops it.
  const auto held = std::make_shared<std::string>("held");
  executor->set_monitor_callback([&, mine = held](const std::string&, const NDArray&) {
    ++first;
    executor->set_monitor_callback({});
    EXPECT_EQ(*mine, "held");
  });
  executor->forward();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(held.use_count(), 1) << "the monitor is gone";
  executor->set_monitor_callback([&](const std::string&, const NDArray&) {
    ++first;
    executor->set_monitor_callback([&](const std::string&, const NDArray&) { ++second; });
  });
  executor->forward();
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 5) << "it sees the nodes that follow";
}

TEST(ExecutorThreads, ThreadsOfAGroupMayUseWhatTheirCallerUses) {
  BusyFlag flag;
  const InUse mine(flag, "test", "this object");
  Workers workers(3, 1);
  workers.run([&](size_t) { const InUse nested(flag, "test", "this object"); });
  std::string error;
  run_all({[&] { error = error_of([&] { const InUse other(flag, "test", "this object"); }); }});
  EXPECT_NE(error.find("[test] this object is in use by another thread"), std::string::npos) << error;
}

// Every thread has an executor of its own over the same parameters, and compiles it there.
TEST(ExecutorThreads, ExecutorsWithMemoryOfTheirOwnPredictConcurrently) {
  for (const auto& network : {testing::mlp(), testing::lenet(), testing::batch_norm_net()}) {
    auto base = testing::bind_with_values(network);
    const NDArray expected = base->forward()[0].copy();
    std::atomic<int> wrong = 0;
    const auto predict = [&] {
      auto mine = base->reshape(network.inputs, {.own_memory = true});
      for (const auto& [name, shape] : network.inputs) base->arg_dict().at(name).copyto(mine->arg_dict().at(name));
      for (int i = 0; i < 20; ++i)
        if (!same_bits(mine->forward()[0], expected)) ++wrong;
    };
    run_all({predict, predict, predict, predict});
    EXPECT_EQ(wrong, 0) << network.name;
  }
}

TEST(ExecutorThreads, MemoryOfItsOwnLeavesOnlyTheParametersShared) {
  const auto network = testing::mlp();
  auto base = testing::bind_with_values(network);
  auto other = base->reshape(network.inputs, {.own_memory = true});
  EXPECT_TRUE(other->arg_dict().at("fc1_weight").same_memory(base->arg_dict().at("fc1_weight")));
  EXPECT_FALSE(other->arg_dict().at("data").same_memory(base->arg_dict().at("data")));
  EXPECT_FALSE(other->grad_dict().at("fc1_weight").same_memory(base->grad_dict().at("fc1_weight")));
  base->forward(true);
  other->forward();
  base->backward();  // the activations are still there
  EXPECT_TRUE(fails_with([&] { base->reshape({{"data", {3, 5}}, {"softmax_label", {3}}}, {.own_memory = true}); }, ""));
}

// Caches of imperative arithmetic, the operators' registry, devices and logs are shared by everybody.
TEST(ExecutorThreads, ArithmeticRunsConcurrently) {
  std::atomic<int> wrong = 0;
  const auto compute = [&](int seed) {
    for (int i = 1; i <= 50; ++i) {
      const NDArray a = full({8, 8}, seed + i), b = full({8, 8}, 2, cpu(seed % 3));
      const NDArray c = a * a.as_in_context(cpu()) + b.as_in_context(cpu()) * 3.0;
      if (c.to_vector<float>()[63] != static_cast<float>((seed + i) * (seed + i) + 6)) ++wrong;
    }
  };
  run_all({[&] { compute(1); }, [&] { compute(2); }, [&] { compute(3); }, [&] { compute(4); }});
  EXPECT_EQ(wrong, 0);
}

TEST(ExecutorThreads, NetworksAreWrittenAndBoundConcurrently) {
  std::atomic<int> wrong = 0;
  const auto build = [&] {
    for (int i = 0; i < 5; ++i) {
      const Symbol net = testing::softmax(testing::fc(testing::relu(testing::fc(var("data"), 8, "a"), "r"), 4, "b"));
      auto executor = simple_bind(net, cpu(), {{"data", {2, 3}}});
      executor->forward(true);
      executor->backward();
      if (executor->outputs()[0].to_vector<float>()[0] != 0.25f) ++wrong;
    }
  };
  run_all({build, build, build, build});
  EXPECT_EQ(wrong, 0);
}

TEST(ExecutorThreads, AnyNumberOfLoopThreadsMayBeAskedFor) {
  const ThreadScope share({.threads = 100000});
  EXPECT_LT(available_threads(), 10000);
  std::atomic<int64_t> sum = 0;
  parallel_for(1 << 20, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 1 << 20);
}

}  // namespace
}  // namespace symbind
