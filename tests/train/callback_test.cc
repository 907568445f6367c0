#include "symbind/train/callback.h"

#include <cstdio>
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
  const auto metric = EvalMetric::create(std::vector<std::string>{"acc", "mse"});
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

TEST(Callback, SpeedometerBeginsAnewInEachEpoch) {
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
