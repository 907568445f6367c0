// Forward and backward in one call: the same numbers as by two, whether the plan runs them as one unit or not.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/core/random.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/gradient_watch.h"
#include "symbind/graph/attributes.h"
#include "symbind/ops/custom.h"

#include "tests/support/arrays.h"
#include "tests/support/doubled_op.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

// After a run by `together` in one call and a run by `apart` in two.
void expect_same_bits(const Executor& together, const Executor& apart, const std::string& when) {
  for (size_t i = 0; i < apart.outputs().size(); ++i)
    EXPECT_TRUE(same_bits(together.outputs()[i].as_copy_in(cpu()), apart.outputs()[i].as_copy_in(cpu())))
        << "output " << i << " " << when;
  for (const auto& [name, gradient] : apart.grad_dict())
    EXPECT_TRUE(same_bits(together.grad_dict().at(name).as_copy_in(cpu()), gradient.as_copy_in(cpu())))
        << "gradient of " << name << " " << when;
  for (const auto& [name, state] : apart.aux_dict())
    EXPECT_TRUE(same_bits(together.aux_dict().at(name).as_copy_in(cpu()), state.as_copy_in(cpu())))
        << name << " " << when;
}

void run_both(Executor& together, Executor& apart, int64_t classes, uint64_t step) {
  for (Executor* const executor : {&together, &apart}) set_values(*executor, classes, 1 + step);
  seed(step);
  together.forward_backward();
  seed(step);
  apart.forward(true);
  apart.backward();
  expect_same_bits(together, apart, join("of step ", step));
}

// With a step on the host in the middle of both passes.
Network interrupted_net() {
  register_custom_op("doubled_by_host", [](const Attributes&) { return std::make_shared<DoubledProp>(); });
  const Symbol doubled = custom(fc(var("data"), 12, "fc1"), {.op_type = "doubled_by_host"}, "doubled");
  return {"interrupted", softmax(fc(doubled, 4, "fc2")), {{"data", {6, 9}}, {"softmax_label", {6}}}, 4};
}

// Networks whose outputs are losses.
std::vector<Network> networks_of_losses() {
  std::vector<Network> networks = all_networks();
  std::erase_if(networks, [](const Network& network) { return network.name == several_outputs_net().name; });
  networks.push_back(unrolled_lstm());
  networks.push_back(inception_net());
  networks.push_back(dropout_net());
  networks.push_back(interrupted_net());
  return networks;
}

TEST(ForwardBackward, GivesTheBitsOfTwoCalls) {
  for (const Context context : all_devices())
    for (const Network& network : networks_of_losses()) {
      SCOPED_TRACE(join(network.name, " on ", context));
      const auto together = bind_with_values(network, context), apart = bind_with_values(network, context);
      for (uint64_t step = 0; step < 5; ++step) run_both(*together, *apart, network.classes, step);
    }
}

TEST(ForwardBackward, AddsToGradients) {
  for (const Context context : all_devices()) {
    const auto together = bind_with_values(lenet(), context, {.grad_req = "add"}),
               apart = bind_with_values(lenet(), context, {.grad_req = "add"});
    for (uint64_t step = 0; step < 4; ++step) run_both(*together, *apart, lenet().classes, step);
  }
}

TEST(ForwardBackward, MayAlternateWithOtherCalls) {
  for (const Context context : all_devices()) {
    const Network network = batch_norm_net();
    const auto together = bind_with_values(network, context), apart = bind_with_values(network, context);
    for (uint64_t step = 0; step < 8; ++step) {
      run_both(*together, *apart, network.classes, step);
      for (Executor* const executor : {together.get(), apart.get()}) {
        if (step % 4 == 1) executor->forward(false);
        if (step % 4 == 2) {
          executor->forward(true);
          executor->backward();
        }
        if (step % 4 == 3) executor->backward();  // of the same forward
      }
      expect_same_bits(*together, *apart, join("after step ", step));
    }
  }
}

// Executors that share working memory, which moves when a larger one is bound.
TEST(ForwardBackward, FollowsWorkingMemoryThatMoves) {
  for (const Context context : all_devices()) {
    const auto bound = [&](int64_t batch, const ExecutorPtr& shared) {
      Network network = lenet();
      for (auto& [name, shape] : network.inputs) shape[0] = batch;
      return bind_with_values(network, context, {.shared_exec = shared});
    };
    const ExecutorPtr together = bound(2, nullptr), apart = bound(2, nullptr);
    for (uint64_t step = 0; step < 3; ++step) run_both(*together, *apart, lenet().classes, step);
    const ExecutorPtr larger = bound(16, together), larger_apart = bound(16, apart);
    for (uint64_t step = 3; step < 7; ++step) {
      run_both(*larger, *larger_apart, lenet().classes, step);
      run_both(*together, *apart, lenet().classes, step);
    }
  }
}

TEST(ForwardBackward, TakesInputsByName) {
  const Network network = mlp();
  const auto executor = bind_with_values(network), other = bind_with_values(network);
  const NDArray data = random_array(executor->arg_dict().at("data").shape(), 9);
  executor->forward_backward({{"data", data}});
  other->forward(true, {{"data", data}});
  other->backward();
  expect_same_bits(*executor, *other, "");
  EXPECT_TRUE(fails_with([&] { executor->forward_backward({{"dat", data}}); }, "the network has no argument 'dat'"));
}

TEST(ForwardBackward, NeedsOutputsThatAreLosses) {
  for (const Context context : all_devices()) {
    const auto executor = simple_bind(var("a") * var("b"), context, {{"a", {2}}, {"b", {2}}});
    EXPECT_TRUE(fails_with([&] { executor->forward_backward(); }, "out_grads are needed"));
  }
}

TEST(ForwardBackward, WithoutGradientsIsForward) {
  for (const Context context : all_devices()) {
    const auto executor = bind_with_values(mlp(), context, {.grad_req = "null"}),
               other = bind_with_values(mlp(), context, {.grad_req = "null"});
    executor->forward_backward();
    other->forward(true);
    expect_same_bits(*executor, *other, "");
  }
}

// Each runs the steps one by one, or does something between them.
TEST(ForwardBackward, IsTimedPoisonedAndMonitoredLikeTwoCalls) {
  for (const Context context : all_devices()) {
    for (const CompileOptions& options :
         {CompileOptions{.profile = true}, CompileOptions{.poison = true}, CompileOptions{.capture = false}}) {
      const auto together = bind_with_values(lenet(), context, {.options = options}),
                 apart = bind_with_values(lenet(), context, {.options = options});
      for (uint64_t step = 0; step < 3; ++step) run_both(*together, *apart, lenet().classes, step);
      if (options.profile) {
        EXPECT_GT(together->operator_costs().size(), 0u);
      }
    }
    const auto together = bind_with_values(lenet(), context), apart = bind_with_values(lenet(), context);
    std::vector<std::string> seen_together, seen_apart;
    for (uint64_t step = 0; step < 9; ++step) {
      if (step == 3) {
        together->set_monitor_callback([&](const std::string& name, const NDArray&) { seen_together.push_back(name); });
        apart->set_monitor_callback([&](const std::string& name, const NDArray&) { seen_apart.push_back(name); });
      }
      if (step == 6) {
        together->set_monitor_callback({});
        apart->set_monitor_callback({});
      }
      run_both(*together, *apart, lenet().classes, step);
    }
    EXPECT_EQ(seen_together, seen_apart);
    EXPECT_FALSE(seen_apart.empty());
  }
}

TEST(ForwardBackward, RunsOnSeveralContexts) {
  const auto in_group = [](const char* group, const std::function<Symbol()>& make) {
    const AttrScope scope(Attributes{{"ctx_group", group}});
    return make();
  };
  const Symbol hidden = in_group("near", [] { return relu(fc(var("data"), 6, "fc1"), "relu"); });
  const Network network{"split",
                        in_group("far", [&] { return softmax(fc(hidden, 3, "fc2")); }),
                        {{"data", {4, 5}}, {"softmax_label", {4}}},
                        3};
  for (const Context context : all_devices()) {
    const SimpleBindOptions groups{.group2ctx = {{"near", context}, {"far", cpu(1)}}};
    const auto together = bind_with_values(network, context, groups),
               apart = bind_with_values(network, context, groups);
    for (uint64_t step = 0; step < 4; ++step) run_both(*together, *apart, network.classes, step);
  }
}

// Gradients in arrays of another type are converted when backward has run.
TEST(ForwardBackward, ConvertsGradientsToTheTypeOfTheirArrays) {
  for (const Context context : all_devices()) {
    const auto bound = [&] {
      const Symbol net = apply("MakeLoss", apply("square", var("x"), {}, "square"), {}, "loss");
      return bind(net, context, {{"x", array({1, 2, 3}, context)}},
                  {.args_grad = {{"x", zeros({3}, context, DType::float64)}}});
    };
    const auto together = bound(), apart = bound();
    for (int step = 0; step < 4; ++step) {
      together->forward_backward();
      apart->forward(true);
      apart->backward();
      expect_same_bits(*together, *apart, join("of step ", step));
    }
  }
}

TEST(ForwardBackward, ReportsGradientsToAWatch) {
  for (const Context context : all_devices()) {
    const auto together = bind_with_values(lenet(), context), apart = bind_with_values(lenet(), context);
    for (uint64_t step = 0; step < 5; ++step) {
      std::vector<const void*> reported;
      const auto note = [&](std::span<const NDArray> gradients, const DeviceEventPtr&) {
        for (const NDArray& gradient : gradients) reported.push_back(gradient.data());
      };
      if (step % 2 == 0) {
        run_both(*together, *apart, lenet().classes, step);  // without a watch
        continue;
      }
      {
        const GradientWatch watch(note);
        set_values(*together, lenet().classes, 1 + step);
        together->forward_backward();
      }
      set_values(*apart, lenet().classes, 1 + step);
      apart->forward(true);
      apart->backward();
      expect_same_bits(*together, *apart, join("of step ", step));
      EXPECT_EQ(reported.size(), together->grad_dict().size()) << "each once";
    }
  }
}

}  // namespace
}  // namespace symbind::testing
