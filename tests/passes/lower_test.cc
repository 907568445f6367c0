#include "symbind/passes/lower.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fc;
using testing::relu;
using testing::var;

constexpr int layers = 6;

Symbol deep_network() {
  Symbol net = var("x");
  for (int i = 0; i < layers; ++i) net = relu(fc(net, 64, "fc" + std::to_string(i)), "relu" + std::to_string(i));
  return net;
}

// A network, and a request for the gradients of everything but the data.
struct Case {
  Graph network = testing::inference_graph(deep_network(), {{"x", {256, 16}}});
  LowerRequest request = {.context = cpu(), .build_kernels = [](Graph& graph) { build_kernels(graph); }};

  explicit Case(PlanKind kind) {
    request.kind = kind;
    for (const GraphNode& node : network.nodes)
      if (node.is_variable() && node.source->name != "x") request.gradients.push_back({node.id, GradReq::write});
    request.output_contexts.assign(1 + request.gradients.size(), cpu());
  }
  Lowered lowered() const { return lower(network, request); }
};

TEST(Lower, InferenceHasNoBackwardPartWhateverGradientsAreRequested) {
  const Lowered plan = Case(PlanKind::inference).lowered();
  EXPECT_FALSE(plan.graph.has_backward());
  EXPECT_FALSE(plan.graph.is_train);
  EXPECT_TRUE(plan.out_grads.empty());
}

TEST(Lower, TrainingHasABackwardPartWhereAGradientIsRequested) {
  Case training(PlanKind::training);
  const Lowered plan = training.lowered();
  EXPECT_TRUE(plan.graph.is_train);
  EXPECT_TRUE(plan.graph.has_backward());
  ASSERT_EQ(plan.out_grads.size(), 1u);
  EXPECT_NE(plan.out_grads[0], nullptr) << "the output is no loss, so its gradient comes from outside";

  training.request.gradients.clear();
  const Lowered forward = training.lowered();
  EXPECT_TRUE(forward.graph.is_train);
  EXPECT_FALSE(forward.graph.has_backward());
}

TEST(Lower, GradientsInTestModeAreNotThoseOfTraining) {
  const Lowered plan = Case(PlanKind::test_with_gradients).lowered();
  EXPECT_FALSE(plan.graph.is_train);
  EXPECT_TRUE(plan.graph.has_backward());
}

TEST(Lower, EveryNodeOfAMonitoredPlanRunsOnItsOwn) {
  Case inference(PlanKind::inference);
  EXPECT_EQ(testing::count_op(inference.lowered().graph, "Activation"), 0) << "fused into the product before it";
  inference.request.monitored = true;
  const Lowered plan = inference.lowered();
  EXPECT_EQ(testing::count_op(plan.graph, "Activation"), layers);
  EXPECT_EQ(plan.memory.total_bytes(), plan.memory.unshared_bytes) << "nothing is overwritten";
}

TEST(Lower, VariablesAndThenOutputsAreOutside) {
  const Lowered plan = Case(PlanKind::training).lowered();
  const auto variables = static_cast<size_t>(std::count_if(plan.graph.nodes.begin(), plan.graph.nodes.end(),
                                                           [](const GraphNode& node) { return node.is_variable(); }));
  ASSERT_EQ(plan.outside.size(), variables + plan.graph.outputs.size());
  for (size_t i = 0; i < plan.outside.size(); ++i) {
    const Location& location = plan.memory.tensors[plan.outside[i]];
    EXPECT_EQ(location.kind, Location::Kind::outside);
    EXPECT_EQ(location.index, static_cast<int>(i));
  }
}

TEST(Lower, LeavesTheNetworkAsItIsForTheNextPlan) {
  const Case training(PlanKind::training);
  const size_t nodes = training.network.nodes.size();
  const Lowered first = training.lowered(), second = training.lowered();
  EXPECT_EQ(training.network.nodes.size(), nodes);
  EXPECT_EQ(first.graph.nodes.size(), second.graph.nodes.size());
  EXPECT_EQ(first.memory.total_bytes(), second.memory.total_bytes());
}

TEST(Lower, AMemoryBudgetIsMetByRecomputing) {
  Case training(PlanKind::training);
  const size_t usual = training.lowered().memory.total_bytes();
  training.request.options.memory_budget = usual * 9 / 10;
  EXPECT_LE(training.lowered().memory.total_bytes(), usual * 9 / 10);
  training.request.options.recompute = false;
  EXPECT_EQ(training.lowered().memory.total_bytes(), usual) << "unless that is turned off";
}

}  // namespace
}  // namespace symbind
