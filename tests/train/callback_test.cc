#include "symbind/train/callback.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <regex>

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include "symbind/core/log.h"
#include "symbind/files/checkpoint.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/train/metrics.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace symbind {
namespace {

using testing::fails_with;

// What is logged while it lives.
class Log {
 public:
  Log() {
    before_ = set_log_sink([this](LogLevel, std::string_view message) { lines.emplace_back(message); });
  }
  ~Log() { set_log_sink(before_); }
  std::vector<std::string> lines;

 private:
  LogSink before_;
};

EvalMetricPtr half_right() {
  auto metric = EvalMetric::create(std::vector<std::string>{"acc", "mse"});
  metric->update({array({0, 1})}, {array({0, 3})});
  return metric;
}

void expect_lines(const std::vector<std::string>& lines, const std::vector<std::string>& patterns) {
  ASSERT_EQ(lines.size(), patterns.size()) << comma_separated(lines);
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_TRUE(std::regex_match(lines[i], std::regex(patterns[i]))) << lines[i] << " is not " << patterns[i];
}

TEST(Callback, SpeedometerWritesMXNetsLines) {
  Log log;
  Speedometer speed(32, 2);
  const auto metric = half_right();
  for (int64_t i = 0; i < 5; ++i) speed({.epoch = 3, .nbatch = i, .eval_metric = metric.get()});
  const std::string rate = R"(\tSpeed: \d+\.\d\d samples/sec)";
  expect_lines(log.lines, {R"(Epoch\[3\] Batch \[0-2\])" + rate + R"(\taccuracy=0\.500000\tmse=2\.000000)",
                           R"(Epoch\[3\] Batch \[2-4\])" + rate + R"(\taccuracy=nan\tmse=nan)"});
  EXPECT_EQ(metric->get_global()[0].second, 0.5);
}

TEST(Callback, SpeedometerStartsOverInEachEpoch) {
  Log log;
  Speedometer speed(32, 2, /*auto_reset=*/false);
  const auto metric = half_right();
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < 4; ++i) speed({.epoch = epoch, .nbatch = i, .eval_metric = metric.get()});
  speed({.epoch = 1, .nbatch = 4, .eval_metric = metric.get()});
  speed({.epoch = 1, .nbatch = 6});
  const std::string rate = R"(\tSpeed: \d+\.\d\d samples/sec)", values = R"(\taccuracy=0\.500000\tmse=2\.000000)";
  expect_lines(log.lines, {R"(Epoch\[0\] Batch \[0-2\])" + rate + values, R"(Epoch\[1\] Batch \[0-2\])" + rate + values,
                           R"(Epoch\[1\] Batch \[0-4\])" + rate + values, R"(Iter\[1\] Batch \[6\])" + rate});
  EXPECT_TRUE(fails_with([] { Speedometer(32, 0); }, "frequent", "0"));
}

TEST(Callback, MetricsAreLogged) {
  Log log;
  const auto metric = half_right();
  const BatchEndCallback train = log_train_metric(2, /*auto_reset=*/true);
  for (int64_t i = 0; i < 3; ++i) train({.epoch = 1, .nbatch = i, .eval_metric = metric.get()});
  const auto validation = half_right();
  LogValidationMetricsCallback()({.epoch = 4, .nbatch = 9, .eval_metric = validation.get()});
  EXPECT_EQ(log.lines,
            (std::vector<std::string>{"Iter[1] Batch[0] Train-accuracy=0.500000", "Iter[1] Batch[0] Train-mse=2.000000",
                                      "Iter[1] Batch[2] Train-accuracy=nan", "Iter[1] Batch[2] Train-mse=nan",
                                      "Epoch[4] Validation-accuracy=0.500000", "Epoch[4] Validation-mse=2.000000"}));
}

TEST(Callback, AProgressBarInALogIsALineForEachTenth) {
  Log log;
  ProgressBar bar(100, 10);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < 100; ++i) bar({.epoch = epoch, .nbatch = i});
  ASSERT_EQ(log.lines.size(), 20u);
  EXPECT_EQ(log.lines[0], "[=---------] 10%");
  EXPECT_EQ(log.lines[9], "[==========] 100%");
  EXPECT_EQ(log.lines[10], "[=---------] 10%");
  const auto metric = half_right();
  ProgressBar(3, 6)({.nbatch = 0, .eval_metric = metric.get()});
  EXPECT_EQ(log.lines.back(), "[==----] 34%  accuracy=0.500000  mse=2.000000");
  EXPECT_TRUE(fails_with([] { ProgressBar(0); }, "total", "0"));
}

// What a function writes to standard error while that is a terminal of 40 columns.
template <class Function>
std::string on_terminal(Function function) {
  int outside = -1, inside = -1;
  const winsize size{.ws_row = 10, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  require(openpty(&outside, &inside, nullptr, nullptr, &size) == 0, "no pseudo-terminal");
  const int saved = dup(STDERR_FILENO);
  std::fflush(stderr);
  dup2(inside, STDERR_FILENO);
  function();
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(inside);  // what was written can be read up to its end now
  std::string text;
  char part[4096];
  for (ssize_t length = 0; (length = read(outside, part, sizeof(part))) > 0;)
    text.append(part, static_cast<size_t>(length));
  close(outside);
  std::erase(text, '\r');
  return text;
}

TEST(Callback, AProgressBarOnATerminalIsOneLine) {
  const std::string text = on_terminal([] {
    ProgressBar bar(2, 10);
    bar({.nbatch = 0});
    log_info("a message");
    bar({.nbatch = 1});
    log_info("another");
    ProgressBar(2, 100)({.nbatch = 0});
    log_info("end");
  });
  const std::string clear = "\x1b[K";
  EXPECT_EQ(text, clear + "[=====-----] 50%" + clear + "a message\n" + clear + "[==========] 100%\nanother\n" + clear +
                      "[" + std::string(38, '=') + clear + "end\n");
}

// ---- by what validation finds ---------------------------------------------------------------------------------------

// A metric of this name whose value is whatever was given last.
class Given final : public EvalMetric {
 public:
  explicit Given(const std::string& name) : EvalMetric({name}) {}
  void update(const std::vector<NDArray>&, const std::vector<NDArray>&) override {}
  NameValues get_global() const override { return {{"other", -1}, {name(), value}}; }
  double value = 0;
};

// The epoch at which it stops, or -1.
int stops_at(EarlyStopping stopping, const std::string& metric, const std::vector<double>& values) {
  Given given(metric);
  for (size_t epoch = 0; epoch < values.size(); ++epoch) {
    given.value = values[epoch];
    try {
      stopping({.epoch = static_cast<int>(epoch), .eval_metric = &given});
    } catch (const StopTraining&) {
      return static_cast<int>(epoch);
    }
  }
  return -1;
}

TEST(Callback, EarlyStoppingWaitsForAnImprovement) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(stops_at(EarlyStopping(2, {.metric = "acc"}), "acc", {.1, .2, .2, .1, .9}), 3);
  EXPECT_EQ(stops_at(EarlyStopping(2, {.metric = "acc"}), "acc", {.1, .2, .1, .3, .1, .4}), -1);
  EXPECT_EQ(stops_at(EarlyStopping(1, {.metric = "mse"}), "mse", {3, 2, 1, 2}), 3) << "less is better";
  EXPECT_EQ(stops_at(EarlyStopping(1, {.metric = "mse", .mode = "max"}), "mse", {3, 2}), 1);
  EXPECT_EQ(stops_at(EarlyStopping(1, {.metric = "Val Accuracy"}), "Val Accuracy", {.1, .2, .2}), 2);
  EXPECT_EQ(stops_at(EarlyStopping(1, {.metric = "acc", .min_delta = 0.1}), "acc", {.5, .7, .75}), 2);
  EXPECT_EQ(stops_at(EarlyStopping(2, {.metric = "acc"}), "acc", {.5, nan, .6, nan, nan}), 4) << "NaN is never better";
  EXPECT_EQ(stops_at(EarlyStopping(2, {.metric = "acc"}), "acc", {nan, nan}), 1);
}

TEST(Callback, EarlyStoppingSaysWhatItDoesNotUnderstand) {
  Given given("quality");
  const BatchEndParam param{.eval_metric = &given};
  EXPECT_TRUE(fails_with([&] { EarlyStopping(1, {.metric = "quality"})(param); }, "quality", "max", "min"));
  EXPECT_TRUE(fails_with([&] { EarlyStopping(1, {.metric = "acc"})(param); }, "acc", "other, quality"));
  EXPECT_TRUE(fails_with([&] { EarlyStopping(1)(BatchEndParam{}); }, "metric"));
  EXPECT_TRUE(fails_with([] { EarlyStopping stopping(0); }, "patience", "0"));
  EXPECT_TRUE(fails_with([] { EarlyStopping(1, {.mode = "best"}); }, "mode", "best"));
}

TEST(Callback, EarlyStoppingEndsFit) {
  const testing::Quiet quiet;
  NDArrayIter data = testing::batches(), validation = testing::batches();
  Module module(testing::small_network());
  EarlyStopping stopping(2);
  int checkpoints = 0;
  // Without learning nothing improves after the first epoch.
  module.fit(
      data, {.eval_data = &validation,
             .epoch_end_callback = {[&](int, const Symbol&, const NamedArrays&, const NamedArrays&) { ++checkpoints; }},
             .optimizer = optim::Sgd{.learning_rate = 0},
             .eval_end_callback = {std::ref(stopping)},
             .num_epoch = 50});
  EXPECT_EQ(checkpoints, 3);
  EXPECT_EQ(stopping.best().epoch(), 0);
  EXPECT_EQ(stopping.waited(), 2);
  module.fit(data, {.num_epoch = 1});  // train_data was reset
}

// Given by value, each kind of callback is one object for the whole of fit.
TEST(Callback, EachKeepsItsStateFromEpochToEpoch) {
  const testing::Quiet quiet;
  std::map<std::string, std::vector<int>> counts;
  const auto counting = [&](const std::string& event) {
    return [&counts, event, calls = 0](auto&&...) mutable { counts[event].push_back(++calls); };
  };
  NDArrayIter data = testing::batches(), validation = testing::batches();  // 4 batches each
  Module module(testing::small_network());
  module.fit(data, {.eval_data = &validation,
                    .epoch_end_callback = {counting("epoch")},
                    .batch_end_callback = {counting("batch")},
                    .eval_end_callback = {counting("eval")},
                    .eval_batch_end_callback = {counting("eval batch")},
                    .num_epoch = 2});
  EXPECT_EQ(counts["epoch"], (std::vector{1, 2}));
  EXPECT_EQ(counts["batch"], (std::vector{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(counts["eval"], (std::vector{1, 2}));
  EXPECT_EQ(counts["eval batch"], (std::vector{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Callback, AnyCallbackMayStopFitAndTheOthersOfItsEventStillRun) {
  Log log;
  NDArrayIter data = testing::batches(), validation = testing::batches();
  const auto stop_batch = [](const BatchEndParam& param) {
    if (param.nbatch == 1) throw StopTraining("enough");
  };
  const auto stop_epoch = [](int, const Symbol&, const NamedArrays&, const NamedArrays&) { throw StopTraining(); };
  int batch_calls = 0, epoch_calls = 0;
  const BatchEndCallback count_batch = [&](const BatchEndParam&) { ++batch_calls; };
  const EpochEndCallback count_epoch = [&](int, const Symbol&, const NamedArrays&, const NamedArrays&) {
    ++epoch_calls;
  };
  Module module(testing::small_network());
  module.fit(data,
             {.epoch_end_callback = {count_epoch}, .batch_end_callback = {stop_batch, count_batch}, .num_epoch = 9});
  EXPECT_EQ(batch_calls, 2);
  EXPECT_EQ(epoch_calls, 0) << "the epoch was not finished";
  EXPECT_NE(std::find(log.lines.begin(), log.lines.end(), "Epoch[0] enough"), log.lines.end());
  module.fit(data, {.epoch_end_callback = {stop_epoch, count_epoch}, .num_epoch = 9});
  EXPECT_EQ(epoch_calls, 1);
  batch_calls = 0;
  module.fit(data, {.eval_data = &validation, .eval_batch_end_callback = {stop_batch, count_batch}, .num_epoch = 9});
  EXPECT_EQ(batch_calls, 2);
}

TEST(Callback, SaveBestKeepsTheFilesOfTheBestEpoch) {
  const testing::Quiet quiet;
  const testing::TempDir folder;
  Module module(testing::small_network());
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module.init_params({.arg_params = testing::first_values()});
  module.init_optimizer();
  SaveBest best(module, folder.file("best"), {.metric = "acc"}, /*save_optimizer_states=*/true);
  Given given("acc");
  const auto validate = [&](int epoch, double value) {
    NamedArrays params = testing::first_values();
    params.at("fc1_bias").fill(epoch);
    module.set_params(params, {});
    given.value = value;
    best({.epoch = epoch, .eval_metric = &given});
  };
  const auto saved = [&] {
    return load_checkpoint(folder.file("best"), 0).arg_params.at("fc1_bias").to_vector<int>()[0];
  };
  validate(0, 0.5);
  EXPECT_EQ(saved(), 0);
  validate(1, 0.7);
  EXPECT_EQ(saved(), 1);
  validate(2, 0.6);
  EXPECT_EQ(saved(), 1);
  EXPECT_EQ(best.best().epoch(), 1);
  EXPECT_EQ(best.best().value(), 0.7);
  EXPECT_TRUE(std::filesystem::exists(states_path(folder.file("best"), 0)));
}

TEST(Callback, DoCheckpointSavesEveryPeriod) {
  const testing::TempDir folder;
  const Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 2}, "fc");
  const NamedArrays arg_params = {{"fc_weight", ones({2, 3})}, {"fc_bias", zeros({2})}};
  const EpochEndCallback save = do_checkpoint(folder.file("net"), 2);
  for (int epoch = 0; epoch < 4; ++epoch) save(epoch, net, arg_params, {});
  EXPECT_EQ(load_checkpoint(folder.file("net"), 4).arg_params.size(), 2u);
  EXPECT_EQ(load_checkpoint(folder.file("net"), 2).symbol.tojson(), net.tojson());
  EXPECT_THROW(load_checkpoint(folder.file("net"), 1), Error);
  EXPECT_THROW(load_checkpoint(folder.file("net"), 3), Error);
  const EpochEndCallback always = do_checkpoint(folder.file("each"), 0);
  for (int epoch = 0; epoch < 2; ++epoch) always(epoch, net, arg_params, {});
  for (int epoch = 1; epoch <= 2; ++epoch) EXPECT_NO_THROW(load_checkpoint(folder.file("each"), epoch)) << epoch;
}

TEST(Callback, ModuleCheckpointAsksTheModule) {
  struct Saves {
    std::vector<std::string> calls;
    void save_checkpoint(const std::string& prefix, int epoch, bool states) {
      calls.push_back(join(prefix, epoch, states));
    }
  } module;
  const EpochEndCallback save = module_checkpoint(module, "p", 2, true);
  const Symbol net = Symbol::variable("data");
  for (int epoch = 0; epoch < 5; ++epoch) save(epoch, net, {}, {});
  EXPECT_EQ(module.calls, (std::vector<std::string>{"p21", "p41"}));
}

}  // namespace
}  // namespace symbind
