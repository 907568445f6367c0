// Gradients that backward reports as it finishes them. (On a GPU: tests/backend/cuda_gradient_watch_test.cc.)
#include "symbind/exec/gradient_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/binding.h"
#include "symbind/exec/executor.h"
#include "symbind/ops/all.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// The gradients of its large weights are worth a report each.
constexpr int64_t wide = 600;
static_assert(wide * wide * sizeof(float) > GradientWatch::bytes_each);

Symbol network(int64_t hidden) {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = hidden}, "first");
  net = activation(net, {.act_type = act_type::relu});
  // The same weight twice: its gradient is complete after both.
  const Symbol shared = Symbol::variable("shared");
  net = fully_connected(net, shared, {.num_hidden = hidden, .no_bias = true});
  net = fully_connected(net, shared, {.num_hidden = hidden, .no_bias = true});
  return softmax_output(fully_connected(net, {.num_hidden = hidden}, "last"), {}, "softmax");
}

ExecutorPtr bound_network(int64_t hidden = 5, const SimpleBindOptions& options = {}) {
  ExecutorPtr executor = simple_bind(network(hidden), cpu(), {{"data", {4, hidden}}, {"softmax_label", {4}}}, options);
  uint64_t seed = 1;
  for (const NDArray& argument : executor->arg_arrays())
    random_array(argument.shape(), seed++, -0.1, 0.1).copyto(argument);
  return executor;
}

struct Reported {
  std::vector<std::vector<std::string>> groups;
  std::vector<std::string> names;
  std::vector<std::vector<float>> values;  // at that moment
};

Reported run(Executor& executor, const std::function<void(const Reported&)>& look = nullptr) {
  Reported reported;
  const GradientWatch watch([&](std::span<const NDArray> gradients, const DeviceEventPtr& complete) {
    EXPECT_EQ(complete, nullptr) << "a CPU has finished what it reports";
    std::vector<std::string>& group = reported.groups.emplace_back();
    for (const NDArray& gradient : gradients) {
      for (const auto& [name, array] : executor.grad_dict())
        if (array.same_memory(gradient)) group.push_back(name);
      reported.values.push_back(gradient.to_vector<float>());
    }
    reported.names.insert(reported.names.end(), group.begin(), group.end());
    if (look) look(reported);
  });
  executor.forward(true);
  executor.backward();
  return reported;
}

void expect_final_values(Executor& executor, const Reported& reported) {
  ASSERT_EQ(reported.names.size(), executor.grad_dict().size());
  for (size_t i = 0; i < reported.names.size(); ++i)
    EXPECT_EQ(reported.values[i], executor.grad_dict().at(reported.names[i]).to_vector<float>()) << reported.names[i];
}

TEST(GradientWatch, ReportsEachGradientOnceWithItsFinalValue) {
  for (const int64_t hidden : {int64_t{5}, wide}) {
    const ExecutorPtr executor = bound_network(hidden);
    for (int round = 0; round < 3; ++round) expect_final_values(*executor, run(*executor));
  }
}

TEST(GradientWatch, ReportsTheFinalValueOfGradientsThatAreAddedTo) {
  const ExecutorPtr executor = bound_network(wide, {.grad_req = "add"});
  for (int round = 0; round < 3; ++round) expect_final_values(*executor, run(*executor));
}

TEST(GradientWatch, ReportsTheLastLayersFirst) {
  const ExecutorPtr executor = bound_network();
  const std::vector<std::string> names = run(*executor).names;
  const auto position = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_LT(position("last_weight"), position("shared"));
  EXPECT_LT(position("shared"), position("first_weight"));
}

TEST(GradientWatch, ReportsLargeGradientsWhileOthersAreMissing) {
  const ExecutorPtr executor = bound_network(wide);
  const NDArray first = executor->grad_dict().at("first_weight"), shared = executor->grad_dict().at("shared");
  for (int round = 0; round < 2; ++round) {
    first.fill(std::numeric_limits<double>::quiet_NaN());
    shared.fill(std::numeric_limits<double>::quiet_NaN());
    const auto missing = [](const NDArray& gradient) { return std::isnan(gradient.to_vector<float>()[0]); };
    const Reported reported = run(*executor, [&](const Reported& so_far) {
      const auto is_reported = [&](const std::string& name) {
        return std::find(so_far.names.begin(), so_far.names.end(), name) != so_far.names.end();
      };
      EXPECT_TRUE(so_far.groups.size() > 1 || missing(shared)) << "the first report came late";
      EXPECT_TRUE(is_reported("first_weight") || missing(first)) << "a report came late";
    });
    EXPECT_GE(reported.groups.size(), 3u) << "one for each large weight";
  }
}

TEST(GradientWatch, ReportsSmallGradientsTogether) { EXPECT_EQ(run(*bound_network()).groups.size(), 1u); }

TEST(GradientWatch, LeavesMonitoredRunsAndSeveralContextsAlone) {
  const ExecutorPtr monitored = bound_network();
  monitored->set_monitor_callback([](const std::string&, const NDArray&) {});
  EXPECT_TRUE(run(*monitored).names.empty());
  monitored->set_monitor_callback(nullptr);
  expect_final_values(*monitored, run(*monitored));

  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 3}, "first");
  {
    const AttrScope other({{"ctx_group", "other"}});
    net = fully_connected(net, {.num_hidden = 3}, "second");
  }
  const ExecutorPtr placed =
      simple_bind(softmax_output(net, {}, "softmax"), cpu(0), {{"data", {4, 6}}, {"softmax_label", {4}}},
                  {.group2ctx = {{"other", cpu(1)}}});
  EXPECT_TRUE(run(*placed).names.empty());
}

// A gradient array of another type than its argument gets its value after backward.
TEST(GradientWatch, LeavesConvertedGradientsAlone) {
  const Symbol net = softmax_output(fully_connected(Symbol::variable("data"), {.num_hidden = 3}, "fc"), {}, "softmax");
  const NamedArrays args{{"data", random_array({4, 6}, 1)},
                         {"fc_weight", random_array({3, 6}, 2)},
                         {"fc_bias", zeros({3})},
                         {"softmax_label", zeros({4})}};
  const NamedArrays gradients{{"fc_weight", zeros({3, 6}, cpu(), DType::float64)}, {"fc_bias", zeros({3})}};
  const ExecutorPtr executor = bind(net, cpu(), args, {.args_grad = gradients});
  for (int round = 0; round < 2; ++round) EXPECT_EQ(run(*executor).names, std::vector<std::string>{"fc_bias"});
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
