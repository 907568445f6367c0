#include "symbind/passes/gradient.h"

#include <gtest/gtest.h>

#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fc;
using testing::find_node;
using testing::relu;
using testing::training_graph;
using testing::var;

TEST(Gradient, OfEveryRequestHasTheShapeOfItsArgument) {
  for (const auto& network : testing::all_networks()) {
    const auto training = training_graph(network.symbol, network.inputs);
    testing::expect_consistent(training.graph);
    ASSERT_EQ(training.graph.outputs.size(), training.graph.net_outputs + training.requested.size());
    for (size_t i = 0; i < training.requested.size(); ++i) {
      const NodeId argument = find_node(training.graph, training.requested[i]);
      const auto tensor = [&](TensorId number) { return training.graph.tensor(number); };
      const Tensor gradient = tensor(training.graph.outputs[training.graph.net_outputs + i]);
      const Tensor value = tensor(training.graph.node(argument).first_output);
      EXPECT_EQ(gradient.shape, value.shape) << network.name << " " << training.requested[i];
      EXPECT_EQ(gradient.dtype, value.dtype) << network.name << " " << training.requested[i];
    }
  }
}

TEST(Gradient, ComputesNothingThatIsNotAskedFor) {
  const auto mlp = testing::mlp();
  const auto all = training_graph(mlp.symbol, mlp.inputs);
  const auto none = training_graph(mlp.symbol, mlp.inputs, mlp.symbol.list_arguments());
  EXPECT_EQ(none.graph.nodes.size(), none.graph.forward_nodes);
  const auto last = training_graph(mlp.symbol, mlp.inputs,
                                   {"data", "softmax_label", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"});
  EXPECT_LT(last.graph.nodes.size(), all.graph.nodes.size());
  for (size_t i = last.graph.forward_nodes; i < last.graph.nodes.size(); ++i)
    EXPECT_EQ(last.graph.nodes[i].source->name.find("fc1"), std::string::npos)
        << last.graph.nodes[i].source->name << " is not needed";
}

TEST(Gradient, NeedsNoOutGradOfALoss) {
  const auto mlp = testing::mlp();
  for (const NodeId port : training_graph(mlp.symbol, mlp.inputs).ports.out_grads) EXPECT_EQ(port, NodeId::none);
}

TEST(Gradient, NeedsAnOutGradElsewhere) {
  const auto training = training_graph(fc(var("x"), 2, "fc"), {{"x", {3, 4}}});
  ASSERT_EQ(training.ports.out_grads.size(), 1u);
  ASSERT_NE(training.ports.out_grads[0], NodeId::none);
  const auto& node = training.graph.node(training.ports.out_grads[0]);
  EXPECT_EQ(training.graph.tensor(node.first_output).shape, (Shape{3, 2}));
}

TEST(Gradient, StopsAtABlockedOutput) {
  const Symbol x = var("x");
  const Symbol net = Symbol::group({fc(x, 2, "fc"), apply("BlockGrad", x, {}, "seen")});
  const auto training = training_graph(net, {{"x", {3, 4}}});
  EXPECT_NE(training.ports.out_grads[0], NodeId::none);
  EXPECT_EQ(training.ports.out_grads[1], NodeId::none);
}

TEST(Gradient, OfAnArgumentTheOutputsDoNotDependOnIsZero) {
  const Symbol net = apply("BlockGrad", fc(var("x"), 2, "fc"));
  const auto training = training_graph(net, {{"x", {3, 4}}});
  EXPECT_EQ(training.graph.outputs.size(), 1 + 3u);
  EXPECT_EQ(training.ports.out_grads[0], NodeId::none);
}

TEST(Gradient, NodesAreNamedAfterTheNodeTheyBelongTo) {
  const auto training = training_graph(fc(relu(fc(var("x"), 4, "fc1"), "relu1"), 2, "fc2"), {{"x", {3, 4}}});
  bool any = false;
  for (size_t i = training.graph.forward_nodes; i < training.graph.nodes.size(); ++i)
    any |= training.graph.nodes[i].source->name.starts_with("fc1_backward_");
  EXPECT_TRUE(any);
}

TEST(Gradient, OfAddedRequestsReadsTheOldValue) {
  const auto training = training_graph(fc(var("x"), 2, "fc"), {{"x", {3, 4}}}, {"x"}, GradReq::add);
  for (const NodeId old : training.ports.old_grads) EXPECT_NE(old, NodeId::none);
  const auto written = training_graph(fc(var("x"), 2, "fc"), {{"x", {3, 4}}}, {"x"});
  for (const NodeId old : written.ports.old_grads) EXPECT_EQ(old, NodeId::none);
}

TEST(Gradient, DoesNotInheritTheScopeItIsComputedIn) {
  const Symbol net = fc(var("x"), 2, "fc");
  const AttrScope scope(Attributes{{"ctx_group", "elsewhere"}});
  const Prefix prefix("mine_");
  const auto training = training_graph(net, {{"x", {3, 4}}});
  for (const GraphNode& node : training.graph.nodes) {
    EXPECT_FALSE(node.source->attributes.contains("__ctx_group__")) << node.source->name;
    EXPECT_FALSE(node.source->name.starts_with("mine_")) << node.source->name;
  }
}

TEST(Gradient, FollowsTheGroupOfItsNode) {
  const Symbol x = var("x");
  std::optional<Symbol> net;
  {
    const AttrScope scope(Attributes{{"ctx_group", "stage1"}});
    net = fc(x, 2, "fc");
  }
  const auto training = training_graph(*net, {{"x", {3, 4}}});
  for (size_t i = training.graph.forward_nodes; i < training.graph.nodes.size(); ++i) {
    const GraphNode& node = training.graph.nodes[i];
    if (!node.is_variable() && node.source->name.starts_with("fc_backward")) {
      EXPECT_TRUE(node.source->attributes.contains("__ctx_group__")) << node.source->name;
    }
  }
}

TEST(GradReq, NamesAreRead) {
  EXPECT_EQ(grad_req_from_name("write"), GradReq::write);
  EXPECT_EQ(grad_req_from_name("add"), GradReq::add);
  EXPECT_EQ(grad_req_from_name("null"), GradReq::null);
  EXPECT_TRUE(testing::fails_with([] { grad_req_from_name("sometimes"); }, "sometimes", "write", "add", "null"));
}

// ---- the numbers ---------------------------------------------------------------------------------------------------

NamedArrays double_values(const Symbol& symbol, const NamedShapes& shapes) {
  NamedArrays values;
  const auto inferred = infer_shape(symbol, shapes);
  const auto names = symbol.list_arguments();
  for (size_t i = 0; i < names.size(); ++i)
    values[names[i]] = testing::random_array(Shape(inferred.args[i]), i + 1, -1, 1, DType::float64);
  return values;
}

TEST(Gradient, OfAVariableUsedManyTimesIsTheSum) {
  const Symbol x = var("x");
  const Symbol net = x * x * x + x * 2 - x / (x * x + 1);
  EXPECT_TRUE(testing::check_gradient(net, double_values(net, {{"x", {2, 3}}})));
}

TEST(Gradient, OfSharedWeightsIsTheSum) {
  const Symbol w = var("w");
  const Attributes four{{"num_hidden", "4"}, {"no_bias", "True"}};
  Symbol net = apply("FullyConnected", {var("x"), w}, four);
  net = apply("FullyConnected", {apply("Activation", net, {{"act_type", "tanh"}}), w}, four);
  EXPECT_TRUE(testing::check_gradient(net, double_values(net, {{"x", {3, 4}}})));
}

// Each is as large as the weight: no more than two are there at a time, the sum and what is added to it next.
TEST(Gradient, OfASharedWeightIsSummedAsItComes) {
  const Symbol w = var("w");
  Symbol net = var("x");
  for (int i = 0; i < 10; ++i) net = apply("FullyConnected", {net, w}, {{"num_hidden", "4"}, {"no_bias", "True"}});
  const Graph graph = training_graph(net, {{"x", {3, 4}}}).graph;
  PerTensor<NodeId> last_read(graph.tensors.size(), NodeId::none);
  for (const GraphNode& node : graph.nodes)
    for (const TensorId input : node.inputs) last_read[input] = node.id;
  for (const GraphNode& node : graph.backward_part()) {
    int held = 0;
    for (const GraphNode& maker : graph.backward_part())
      for (int k = 0; maker.id <= node.id && k < maker.outputs; ++k)
        held +=
            last_read[maker.first_output + k] > node.id && graph.tensor(maker.first_output + k).shape == Shape{4, 4};
    EXPECT_LE(held, 2) << "after " << node.source->name;
  }
}

TEST(Gradient, OfSeveralOutputsIsTheSum) {
  const Symbol x = var("x"), h = apply("Activation", x, {{"act_type", "sigmoid"}});
  const Symbol net = Symbol::group({h, h * x, h, x});
  EXPECT_TRUE(testing::check_gradient(net, double_values(net, {{"x", {5}}})));
}

TEST(Gradient, OfADeepChainIsRight) {
  Symbol net = var("x");
  for (int i = 0; i < 200; ++i) net = apply("tanh", net * 1.05);
  EXPECT_TRUE(testing::check_gradient(net, double_values(net, {{"x", {4}}})));
}

}  // namespace
}  // namespace symbind
