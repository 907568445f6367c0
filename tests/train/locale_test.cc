// Training in a program whose locale writes commas: the lines of the log, the names and contents of files and
// everything read back are those of the classic locale.
#include <filesystem>

#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/support/comma_locale.h"
#include "tests/support/temp_dir.h"

namespace symbind::testing {
namespace {

Symbol network() {
  auto net = fully_connected(Symbol::variable("data"), {.num_hidden = 3}, "fc1");
  net = leaky_relu(net, {.slope = 0.125}, "act");
  net = dropout(net, {.p = 0.25}, "drop");
  return softmax_output(net, {}, "softmax");
}

struct Trace {
  std::vector<std::string> lines;
  std::map<std::string, std::string> files;
};

// Everything a training writes. Times are left out.
Trace train() {
  const TempDir dir;
  Trace trace;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view message) {
    if (message.find("Time cost") == std::string_view::npos && message.find("Saved") == std::string_view::npos)
      trace.lines.emplace_back(message);
  });
  seed(5);
  NDArrayIter data(arange(0, 1500 * 4).reshape({1500, 4}), zeros({1500}), {.batch_size = 250});
  const LRSchedulerPtr scheduler = factor_scheduler({.step = 4, .factor = 0.5});
  Module module(network());
  module.fit(data, {.eval_metric = "ce",
                    .optimizer_params = {{"learning_rate", 1e-5}, {"momentum", 0.5}, {"lr_scheduler", scheduler}},
                    .num_epoch = 2});
  module.save_checkpoint(dir.file("net"), 1500, true);
  set_log_sink(before);
  for (const auto& entry : std::filesystem::directory_iterator(dir.file("")))
    trace.files[entry.path().filename().string()] = read_file(entry.path().string());
  return trace;
}

TEST(Locale, OfTheProgramChangesNothingThatTrainingWrites) {
  const Trace classic = train();
  ASSERT_FALSE(classic.lines.empty());
  ASSERT_EQ(classic.files.count("net-1500.params"), 1u);
  const CommaLocale comma;
  const Trace commas = train();
  EXPECT_EQ(commas.lines, classic.lines);
  EXPECT_EQ(commas.files, classic.files);
}

TEST(Locale, OfTheProgramChangesNothingThatIsReadBack) {
  const CommaLocale comma;
  const Symbol net = network();
  EXPECT_EQ(Symbol::load_json(net.tojson()).tojson(), net.tojson());
  EXPECT_NE(net.tojson().find("\"slope\": \"0.125\""), std::string::npos) << net.tojson();
  const auto executor = simple_bind(net, cpu(), {{"data", {1500, 4}}});
  EXPECT_EQ(executor->debug_str().find("1.500"), std::string::npos) << executor->debug_str();
  EXPECT_EQ(with_digits(0.34, 6), "0.340000");
  const auto metric = EvalMetric::create("acc");
  metric->update({array({0, 1})}, {array({0, 3})});
  EXPECT_EQ(metric->str(), "EvalMetric: {'accuracy': 0.5}");
}

}  // namespace
}  // namespace symbind::testing
