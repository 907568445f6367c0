// Gradients that backward reports as it finishes them.
#include "symbind/exec/gradient_watch.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "symbind/exec/binding.h"
#include "symbind/exec/executor.h"
#include "symbind/ops/all.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

ExecutorPtr bound_network() {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 5}, "first");
  net = activation(net, {.act_type = act_type::relu});
  // The same weight twice: its gradient is complete after both.
  const Symbol shared = Symbol::variable("shared");
  net = fully_connected(net, shared, {.num_hidden = 5, .no_bias = true});
  net = fully_connected(net, shared, {.num_hidden = 5, .no_bias = true});
  net = softmax_output(fully_connected(net, {.num_hidden = 3}, "last"), {}, "softmax");
  ExecutorPtr executor = simple_bind(net, cpu(), {{"data", {4, 6}}, {"softmax_label", {4}}});
  uint64_t seed = 1;
  for (const NDArray& argument : executor->arg_arrays()) random_array(argument.shape(), seed++).copyto(argument);
  return executor;
}

struct Reported {
  std::vector<std::string> names;
  std::vector<std::vector<float>> values;  // at that moment
};

Reported run(Executor& executor) {
  Reported reported;
  const GradientWatch watch([&](const NDArray& gradient) {
    for (const auto& [name, array] : executor.grad_dict())
      if (array.same_memory(gradient)) reported.names.push_back(name);
    reported.values.push_back(gradient.to_vector<float>());
  });
  executor.forward(true);
  executor.backward();
  return reported;
}

TEST(GradientWatch, ReportsEachGradientOnceWithItsFinalValue) {
  const ExecutorPtr executor = bound_network();
  EXPECT_TRUE(run(*executor).names.empty());  // the first run learns the order
  for (int round = 0; round < 2; ++round) {
    const Reported reported = run(*executor);
    ASSERT_EQ(reported.names.size(), executor->grad_dict().size());
    for (size_t i = 0; i < reported.names.size(); ++i)
      EXPECT_EQ(reported.values[i], executor->grad_dict().at(reported.names[i]).to_vector<float>())
          << reported.names[i];
  }
}

TEST(GradientWatch, ReportsTheLastLayersFirst) {
  const ExecutorPtr executor = bound_network();
  run(*executor);
  const std::vector<std::string> names = run(*executor).names;
  const auto position = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_LT(position("last_weight"), position("shared"));
  EXPECT_LT(position("shared"), position("first_weight"));
}

TEST(GradientWatch, ChangesNothing) {
  const ExecutorPtr executor = bound_network();
  executor->forward(true);
  executor->backward();
  const std::vector<float> expected = executor->grad_dict().at("shared").to_vector<float>();
  run(*executor);
  run(*executor);
  EXPECT_EQ(executor->grad_dict().at("shared").to_vector<float>(), expected);
}

TEST(GradientWatch, EndsWithItsScope) {
  const ExecutorPtr executor = bound_network();
  run(*executor);
  EXPECT_EQ(GradientWatch::current(), nullptr);
}

}  // namespace
}  // namespace symbind::testing
