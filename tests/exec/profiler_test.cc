#include "symbind/exec/profiler.h"

#include <set>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/all.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

std::multiset<std::string> names(const profiler::Recording& recording) {
  std::multiset<std::string> found;
  for (const auto& event : recording.events) found.insert(event.name);
  return found;
}

// Whatever a test does, nothing is recorded after it.
class Profiler : public ::testing::Test {
 protected:
  void SetUp() override { profiler::take(); }
  void TearDown() override {
    profiler::stop();
    profiler::take();
  }
};

TEST_F(Profiler, TimesEachStepOfAPlanAndChangesNoResult) {
  const Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 4}, "fc");
  const auto executor = simple_bind(softmax_output(net, {}, "softmax"), cpu(), {{"data", Shape{2, 3}}});
  for (const auto& [name, array] : executor->arg_dict()) array.fill(0.5);
  executor->forward(true);
  executor->backward();
  const auto expected = executor->grad_dict().at("fc_weight").to_vector<float>();
  profiler::start({.symbolic = true, .imperative = false, .memory = true});
  EXPECT_TRUE(profiler::is_running());
  for (int i = 0; i < 2; ++i) {
    executor->forward(true);
    executor->backward();
  }
  invoke("exp", {ones({2})});  // no step of a plan
  profiler::stop();
  EXPECT_EQ(executor->grad_dict().at("fc_weight").to_vector<float>(), expected);
  executor->forward(true);
  const profiler::Recording recording = profiler::take();
  EXPECT_EQ(names(recording).count("FullyConnected"), 2u);
  EXPECT_EQ(names(recording).count("SoftmaxOutput"), 2u);
  EXPECT_EQ(recording.memory.size(), 4u);  // after each forward and backward
  double last = 0;
  for (const auto& event : recording.events) {
    EXPECT_GE(event.seconds, 0);
    EXPECT_GE(event.begin, last);
    last = event.begin;
    EXPECT_EQ(event.context, cpu());
    EXPECT_NE(event.node, "");
  }
  EXPECT_TRUE(profiler::take().events.empty());
}

TEST_F(Profiler, TimesOperatorsOnArrays) {
  profiler::start({.symbolic = false, .imperative = true});
  invoke("dot", {ones({2, 2}), ones({2, 2})});
  profiler::stop();
  invoke("exp", {ones({2})});
  const auto found = names(profiler::take());
  EXPECT_EQ(found.count("dot"), 1u);
  EXPECT_EQ(found.count("exp"), 0u);
}

}  // namespace
}  // namespace symbind::testing
