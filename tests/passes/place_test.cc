#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fc;
using testing::find_node;
using testing::relu;
using testing::softmax;
using testing::var;

Symbol two_stages() {
  Symbol net = var("data");
  {
    const AttrScope scope(Attributes{{"ctx_group", "first"}});
    net = relu(fc(net, 8, "fc1"), "relu1");
  }
  const AttrScope scope(Attributes{{"ctx_group", "second"}});
  return softmax(fc(net, 4, "fc2"));
}

const NamedShapes shapes{{"data", {5, 6}}, {"softmax_label", {5}}};
const std::map<std::string, Context> groups{{"first", cpu(0)}, {"second", cpu(1)}};

TEST(Place, PutsEveryNodeOnTheDefaultWithoutGroups) {
  Graph graph = testing::inference_graph(two_stages(), shapes);
  const size_t nodes = graph.nodes.size();
  place(graph, cpu(2), {});
  EXPECT_EQ(graph.nodes.size(), nodes);
  for (const GraphNode& node : graph.nodes) EXPECT_EQ(node.context, cpu(2));
}

TEST(Place, FollowsTheGroups) {
  Graph graph = testing::inference_graph(two_stages(), shapes);
  place(graph, cpu(2), groups);
  testing::expect_consistent(graph);
  const auto context = [&](const std::string& name) { return graph.node(find_node(graph, name)).context; };
  EXPECT_EQ(context("data"), cpu(2)) << "made outside of any group";
  EXPECT_EQ(context("fc1_weight"), cpu(0));
  EXPECT_EQ(context("fc1"), cpu(0));
  EXPECT_EQ(context("fc2"), cpu(1));
  EXPECT_EQ(context("fc2_bias"), cpu(1));
}

TEST(Place, CopiesOnceWhereATensorCrosses) {
  Graph graph = testing::inference_graph(two_stages(), shapes);
  place(graph, cpu(0), groups);
  EXPECT_EQ(testing::count_op(graph, "_CrossDeviceCopy"), 1) << "relu1 goes to cpu(1); data is on cpu(0) already";
  for (const GraphNode& node : graph.nodes) {
    if (node.is_variable() || node.op().name == "_CrossDeviceCopy") continue;
    for (const TensorId input : node.inputs) {
      const GraphNode& from = graph.producer(input);
      EXPECT_EQ(from.context, node.context) << node.source->name << " reads " << from.source->name;
    }
  }
}

TEST(Place, TrainingOverTwoContextsGivesTheSameNumbers) {
  const testing::Network network{"two_stages", two_stages(), shapes, 4};
  auto one = testing::bind_with_values(network);
  auto two = testing::bind_with_values(network, cpu(0), {.group2ctx = groups});
  EXPECT_EQ(two->arg_dict().at("fc2_weight").context(), cpu(1));
  EXPECT_EQ(two->grad_dict().at("fc2_weight").context(), cpu(1));
  EXPECT_EQ(two->arg_dict().at("fc1_weight").context(), cpu(0));
  const auto expected = testing::train(*one, shapes, 5), actual = testing::train(*two, shapes, 5);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(testing::all_close(actual[i], expected[i])) << i;
}

TEST(Place, GradientsOfOneTensorAreSummedWhereItIs) {
  const auto in_group = [](const char* group, const auto& make) {
    const AttrScope scope(Attributes{{"ctx_group", group}});
    return make();
  };
  const Symbol x = in_group("first", [] { return relu(var("x"), "x_relu"); });
  const Symbol net = in_group("second", [&] { return relu(x, "left") + apply("tanh", x, {}, "right"); });
  Graph graph = testing::training_graph(net, {{"x", {3, 4}}}).graph;
  place(graph, cpu(2), groups);
  const NodeId sum = find_node(graph, "x_relu_backward_elemwise_add");
  ASSERT_NE(sum, NodeId::none);
  EXPECT_EQ(graph.node(sum).context, cpu(0));
}

// The gradient of a term is the gradient of the sum, which is computed elsewhere.
TEST(Place, GradientsArriveWhereTheirArraysAre) {
  const auto in_group = [](const char* group, const auto& make) {
    const AttrScope scope(Attributes{{"ctx_group", group}});
    return make();
  };
  const Symbol a = in_group("first", [] { return var("a"); });
  const Symbol net = in_group("second", [&] { return a + var("b"); });
  Graph graph = testing::training_graph(net, {{"a", {3, 4}}}).graph;
  graph.output_contexts = {cpu(1), cpu(0), cpu(1)};  // of the output, and of the gradients of a and b
  place(graph, cpu(2), groups);
  testing::expect_consistent(graph);
  ASSERT_EQ(graph.outputs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(graph.producer(graph.outputs[i]).context, graph.output_contexts[i]) << i;
}

TEST(Place, AnUnknownGroupStaysOnTheDefault) {
  auto executor = simple_bind(two_stages(), cpu(0), shapes, {.group2ctx = {{"third", cpu(3)}}});
  for (const NDArray& each : executor->arg_arrays()) EXPECT_EQ(each.context(), cpu(0));
  EXPECT_NO_THROW(executor->forward());
}

}  // namespace
}  // namespace symbind
