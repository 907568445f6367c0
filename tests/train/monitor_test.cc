#include "symbind/train/monitor.h"

#include <thread>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/data/ndarray_iter.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/loss.h"
#include "symbind/train/module.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fails_with;

// Each argument runs from 0.1 to 1.
ExecutorPtr small_executor() {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 2}, "fc");
  net = activation(net, {.act_type = "relu"}, "act");
  auto executor = simple_bind(softmax_output(net, {}, "sm"), cpu(), {{"data", {3, 4}}});
  for (const NDArray& array : executor->arg_arrays()) {
    std::vector<double> values(static_cast<size_t>(array.size()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 0.1 + 0.9 * static_cast<double>(i) / static_cast<double>(values.size() - 1);
    array.copy_from(values);
  }
  return executor;
}

std::vector<std::string> names_of(const std::vector<Monitor::Entry>& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

using Names = std::vector<std::string>;
const Names forward_names = {"fc_output", "act_output", "sm_output", "data", "fc_weight", "fc_bias", "sm_label"};

TEST(Monitor, ShowsWhatMXNetShows) {
  const auto executor = small_executor();
  Monitor monitor(1);
  monitor.install(*executor);
  monitor.tic();
  executor->forward(true);
  const auto entries = monitor.toc();
  ASSERT_EQ(names_of(entries), forward_names);
  const std::vector<double> recorded = {2.17677, 2.17677, 0.6261076, 0.61828214, 0.62392765, 0.7106336, 0.66143787};
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].step, 1);
    EXPECT_NEAR(std::stod(entries[i].value), recorded[i], 1e-6) << entries[i].name;
    EXPECT_TRUE(entries[i].value.ends_with('\t'));
  }
}

TEST(Monitor, ListensEveryInterval) {
  const auto executor = small_executor();
  Monitor monitor(2);
  monitor.install(*executor);
  std::vector<int64_t> steps;
  for (int batch = 0; batch < 5; ++batch) {
    monitor.tic();
    executor->forward();
    const auto entries = monitor.toc();
    steps.push_back(entries.empty() ? 0 : entries[0].step);
    EXPECT_EQ(entries.size(), batch % 2 ? 0u : forward_names.size());
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 0, 3, 0, 5}));
  EXPECT_TRUE(monitor.toc().empty());
}

TEST(Monitor, SeesBackward) {
  const auto executor = small_executor();
  Monitor monitor(1, {.pattern = "fc_backward"});
  monitor.install(*executor);
  monitor.tic();
  executor->forward(true);
  executor->backward();
  EXPECT_FALSE(monitor.toc().empty());
}

TEST(Monitor, ChoosesAndSortsByName) {
  const auto executor = small_executor();
  const auto seen = [&](const MonitorOptions& options) {
    Monitor monitor(1, options);
    monitor.install(*executor);
    monitor.tic();
    executor->forward();
    return names_of(monitor.toc());
  };
  EXPECT_EQ(seen({.pattern = ".*weight|sm"}), (Names{"sm_output", "fc_weight", "sm_label"}));
  EXPECT_EQ(seen({.pattern = "output"}), Names{});
  EXPECT_EQ(seen({.sort = true}),
            (Names{"act_output", "data", "fc_bias", "fc_output", "fc_weight", "sm_label", "sm_output"}));
  const Names all = seen({.pattern = "fc_", .monitor_all = true});
  EXPECT_EQ(all,
            (Names{"fc_data", "fc_weight", "fc_weight", "fc_bias", "fc_bias", "fc_output", "fc_weight", "fc_bias"}));
  EXPECT_TRUE(fails_with([] { Monitor(1, {.pattern = "(fc"}); }, "pattern", "(fc"));
  EXPECT_TRUE(fails_with([] { Monitor(0); }, "interval", "0"));
}

TEST(Monitor, TakesAStatisticOfOnesOwn) {
  const auto executor = small_executor();
  const auto value = [&](StatFunc stat_func) {
    Monitor monitor(1, {.stat_func = std::move(stat_func), .pattern = "fc_bias"});
    monitor.install(*executor);
    monitor.tic();
    executor->forward();
    return monitor.toc().at(0).value;
  };
  EXPECT_EQ(value([](const NDArray& array) { return static_cast<double>(array.size()); }), "2.0\t");
  EXPECT_EQ(value([](const NDArray&) { return 0.00001; }), "1e-05\t");
  EXPECT_EQ(value([](const NDArray& array) { return array.copy(); }), "[0.1 1. ]\t");
  EXPECT_EQ(value([](const NDArray& array) {
              return std::vector<NDArray>{array.copy(), full({1}, 7, cpu(), DType::int32)};
            }),
            "[0.1 1. ]\t7\t");
}

TEST(Monitor, SeveralExecutorsRunAtTheSameTime) {
  std::vector<ExecutorPtr> executors = {small_executor(), small_executor(), small_executor()};
  Monitor monitor(1);
  for (const auto& executor : executors) monitor.install(*executor);
  monitor.tic();
  std::vector<std::thread> threads;
  for (const auto& executor : executors) threads.emplace_back([&] { executor->forward(true); });
  for (auto& thread : threads) thread.join();
  Names expected;
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), forward_names.begin(), forward_names.begin() + 3);
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), forward_names.begin() + 3, forward_names.end());
  EXPECT_EQ(names_of(monitor.toc()), expected);

  // Those that do not run are not shown.
  monitor.tic();
  executors[1]->forward();
  EXPECT_EQ(names_of(monitor.toc()), forward_names);
}

TEST(Monitor, EitherMayGoFirst) {
  const auto stays = small_executor();
  std::function<void(Executor&)> installer;
  {
    Monitor monitor(1);
    installer = monitor.installer();
    monitor.install(*small_executor());
    installer(*stays);
    monitor.tic();
    stays->forward();
    EXPECT_EQ(names_of(monitor.toc()), forward_names);
    monitor.tic();
  }
  stays->forward();
  installer(*stays);  // nothing
}

// What a module and fit call may be overridden.
class Counting : public Monitor {
 public:
  Counting() : Monitor(1, {.pattern = "fc_output"}) {}
  void install(Executor& executor) override {
    calls.push_back("install");
    Monitor::install(executor);
  }
  void tic() override {
    calls.push_back("tic");
    Monitor::tic();
  }
  std::vector<Entry> toc() override {
    auto entries = Monitor::toc();
    for (const Entry& entry : entries) calls.push_back(entry.name);
    return entries;
  }
  Names calls;
};

TEST(Monitor, MayBeOverridden) {
  Module module(softmax_output(fully_connected(Symbol::variable("data"), {.num_hidden = 2}, "fc"), {}, "softmax"));
  NDArrayIter data(zeros({4, 3}), zeros({4}), {.batch_size = 2});
  Counting monitor;
  module.fit(data, {.num_epoch = 1, .monitor = &monitor});
  EXPECT_EQ(monitor.calls, (Names{"install", "tic", "fc_output", "tic", "fc_output"}));
}

TEST(Monitor, KnowsTheExecutorsItIsInstalledIn) {
  const auto stays = small_executor();
  Monitor monitor(1);
  EXPECT_TRUE(monitor.executors().empty());
  monitor.install(*small_executor());
  monitor.install(*stays);
  EXPECT_EQ(monitor.executors(), (std::vector{stays}));
}

TEST(Monitor, PrintsMXNetsLines) {
  const auto executor = small_executor();
  Monitor monitor(1, {.stat_func = [](const NDArray&) { return 0.5; }, .pattern = "fc_output"});
  monitor.install(*executor);
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  monitor.tic();
  executor->forward();
  monitor.toc_print();
  set_log_sink(before);
  EXPECT_EQ(lines, (Names{"Batch:       1 fc_output                      0.5\t"}));
}

}  // namespace
}  // namespace symbind
