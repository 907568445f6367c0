#include <set>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::same_bits;
using testing::var;

TEST(Monitor, IsCalledAfterEveryNodeInOrder) {
  auto executor = testing::bind_with_values(testing::mlp());
  std::vector<std::string> seen;
  executor->set_monitor_callback([&](const std::string& name, const NDArray&) { seen.push_back(name); });
  executor->forward();
  EXPECT_EQ(seen, (std::vector<std::string>{"fc1_output", "relu1_output", "fc2_output", "relu2_output", "fc3_output",
                                            "softmax_output"}));
}

TEST(Monitor, SeesBackwardToo) {
  auto executor = testing::bind_with_values(testing::mlp());
  std::vector<std::string> seen;
  executor->set_monitor_callback([&](const std::string& name, const NDArray&) { seen.push_back(name); });
  executor->forward(true);
  const size_t forward = seen.size();
  executor->backward();
  EXPECT_GT(seen.size(), forward);
  // As MXNet names and counts them: one for each input of a node, without a number where there is one input.
  const std::set<std::string> found(seen.begin() + static_cast<std::ptrdiff_t>(forward), seen.end());
  std::set<std::string> expected{"relu1_backward_output", "relu2_backward_output", "softmax_backward_output0",
                                 "softmax_backward_output1"};
  for (const char* node : {"fc1", "fc2", "fc3"})
    for (const char* input : {"0", "1", "2"}) expected.insert(join(node, "_backward_output", input));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(seen.size() - forward, expected.size());
}

TEST(Monitor, ShowsTheValuesOfTheUnmonitoredNodes) {
  const auto network = testing::lenet();
  auto executor = testing::bind_with_values(network);
  NamedArrays seen;
  executor->set_monitor_callback([&](const std::string& name, const NDArray& array) { seen[name] = array.copy(); });
  executor->forward();
  const Symbol internals = network.symbol.get_internals();
  for (const std::string name : {"conv1_output", "tanh1_output", "pool2_output", "fc1_output"}) {
    auto part = simple_bind(internals[name], cpu(), {{"data", network.inputs.at("data")}});
    part->copy_params_from(executor->arg_dict(), {}, true);
    EXPECT_TRUE(testing::all_close(seen.at(name), part->forward()[0])) << name;
  }
}

TEST(Monitor, DoesNotChangeTheResults) {
  for (const Context context : testing::all_devices()) {
    for (const auto& network : testing::all_networks()) {
      auto plain = testing::bind_with_values(network, context), watched = testing::bind_with_values(network, context);
      int calls = 0;
      watched->set_monitor_callback([&](const std::string&, const NDArray&) { ++calls; }, true);
      const auto expected = testing::train(*plain, network.inputs, 3),
                 actual = testing::train(*watched, network.inputs, 3);
      EXPECT_GT(calls, 0);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(testing::all_close(actual[i], expected[i], {1e-4, 1e-5, 1e-5})) << network.name << " array " << i;
    }
  }
}

TEST(Monitor, OfAllSeesInputsAsTheNodeReadThem) {
  Symbol net = apply("negative", apply("exp", apply("square", var("x"), {}, "a"), {}, "b"), {}, "c");
  auto executor = bind(net, cpu(), {{"x", array({1, 2})}}, {.grad_req = "null"});
  NamedArrays seen;
  executor->set_monitor_callback([&](const std::string& name, const NDArray& array) { seen[name] = array.copy(); },
                                 true);
  executor->forward();
  ASSERT_TRUE(seen.contains("b_data")) << "inputs are named after the node and the input";
  EXPECT_EQ(seen.at("b_data").to_vector<float>(), (std::vector<float>{1, 4}));
  EXPECT_EQ(seen.at("a_data").to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_TRUE(same_bits(seen.at("c_data"), seen.at("b_output")));
}

TEST(Monitor, EndsWithAnEmptyFunction) {
  auto executor = testing::bind_with_values(testing::mlp());
  int calls = 0;
  executor->set_monitor_callback([&](const std::string&, const NDArray&) { ++calls; });
  executor->forward();
  const int before = calls;
  executor->set_monitor_callback(nullptr);
  executor->forward();
  EXPECT_EQ(calls, before);
}

TEST(Monitor, MovesStatisticsOnce) {
  const auto network = testing::batch_norm_net();
  auto plain = testing::bind_with_values(network), watched = testing::bind_with_values(network);
  watched->set_monitor_callback([](const std::string&, const NDArray&) {});
  for (auto& executor : {plain, watched}) executor->forward(true);
  for (size_t i = 0; i < plain->aux_arrays().size(); ++i)
    EXPECT_TRUE(testing::all_close(watched->aux_arrays()[i], plain->aux_arrays()[i])) << i;
}

}  // namespace
}  // namespace symbind
