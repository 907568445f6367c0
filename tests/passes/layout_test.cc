#include <algorithm>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/conv.h"
#include "symbind/passes/target.h"

#include "tests/support/arrays.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

Graph laid_out(const testing::Network& network, bool train) {
  Graph graph = train ? testing::training_graph(network.symbol, network.inputs).graph
                      : testing::inference_graph(network.symbol, network.inputs);
  place(graph, cpu(), {});
  separate_outputs(graph);
  select(graph);
  layout(graph);
  return graph;
}

Layout layout_of(const Graph& graph, TensorId tensor) { return graph.tensor(tensor).layout; }

TEST(Layout, LeavesWhatUsersSeePlain) {
  for (const auto& network : testing::all_networks()) {
    for (const bool train : {false, true}) {
      const Graph graph = laid_out(network, train);
      testing::expect_consistent(graph);
      for (const GraphNode& node : graph.nodes)
        if (node.is_variable()) {
          EXPECT_EQ(layout_of(graph, node.first_output), Layout::plain) << node.source->name;
        }
      for (const TensorId output : graph.outputs) EXPECT_EQ(layout_of(graph, output), Layout::plain);
    }
  }
}

TEST(Layout, ElementwiseOperatorsSeeOneLayout) {
  const Graph graph = laid_out(testing::batch_norm_net(), true);
  for (const GraphNode& node : graph.nodes) {
    if (node.is_variable() || !node.op().elementwise) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (shape_only_inputs(node)[i]) continue;
      EXPECT_EQ(layout_of(graph, node.inputs[i]), layout_of(graph, node.first_output)) << node.source->name;
    }
  }
}

TEST(Layout, GivesTheSameNumbers) {
  for (const Context context : testing::all_devices()) {
    for (const auto& network : {testing::lenet(), testing::batch_norm_net()}) {
      auto with = testing::bind_with_values(network, context);
      auto without = testing::bind_with_values(network, context, {.options = {.layout = false}});
      const auto expected = testing::train(*without, network.inputs, 3),
                 actual = testing::train(*with, network.inputs, 3);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(testing::all_close(actual[i], expected[i], {1e-4, 1e-5, 1e-5})) << network.name << " " << i;
    }
  }
}

// Reorders belong where the network's own shape demands them: at its data, before what knows no channels, and in
// backward at the same tensors. None is between two layers that could agree.
TEST(Layout, ReordersOnlyAtTheBordersOfAResidualNetwork) {
  const auto& convolutions = Target::get(cpu()).implementations(op_of<Convolution>());
  if (std::none_of(convolutions.begin(), convolutions.end(), [](const auto& each) { return each.name == "onednn"; }))
    GTEST_SKIP() << "without oneDNN some convolutions know plain arrays only";
  for (const int version : {1, 2})
    for (const bool train : {false, true}) {
      const Graph graph = laid_out(testing::resnet(50, version, 64, 64), train);
      std::string where;
      for (const GraphNode& node : graph.nodes)
        if (!node.is_variable() && node.op().name == "_reorder")
          where +=
              join("\n  ", node.source->name, " ", graph.tensor(node.inputs[0]).shape, " ",
                   name_of(layout_of(graph, node.inputs[0])), " to ", name_of(layout_of(graph, node.first_output)));
      const int reorders = testing::count_op(graph, "_reorder");
      std::cout << "ResNet-50 v" << version << (train ? ", training: " : ", inference: ") << reorders << " reorders\n";
      EXPECT_LE(reorders, train ? 2 : 1) << "version " << version << (train ? ", training" : ", inference") << where;
    }
}

}  // namespace
}  // namespace symbind
