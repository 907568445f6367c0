// What is recomputed of a graph whose operators are fused, and which gradients recompute results themselves.
#include <algorithm>

#include <gtest/gtest.h>

#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/conv.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/recompute.h"

#include "tests/passes/asked_device.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::accept_all;
using testing::count_op;
using testing::relu;
using testing::var;

const KernelCheck accept_none = [](const Graph&, Context, const Node&, std::span<const Tensor>,
                                   std::span<const Tensor>) { return false; };

Symbol convolved(const Symbol& data, const std::string& name) {
  return batch_norm(convolution(data, {.kernel = {1, 1}, .num_filter = 16, .no_bias = true}, name),
                    {.fix_gamma = false}, name + "_bn");
}
// A convolution before units, of which the first has a convolution as its shortcut.
Symbol network(int units) {
  Symbol net = relu(convolved(var("data"), "first"), "first_relu");
  for (int i = 0; i < units; ++i) {
    const std::string name = "unit" + std::to_string(i);
    const Symbol inside = relu(convolved(net, name + "_a"), name + "_a_relu");
    net = relu(convolved(inside, name + "_b") + (i == 0 ? convolved(net, name + "_s") : net), name + "_relu");
  }
  return net;
}

Graph fused(int units) {
  Graph graph = testing::training_graph(network(units), {{"data", {2, 16, 6, 5}}}).graph;
  testing::prepare_to_fuse(graph, gpu(0));
  fuse_norm_relu(graph);
  fuse_relu_signs(graph, accept_all);
  fuse_norm_pair(graph, accept_all);
  return graph;
}
Graph recomputed(int units) {
  Graph graph = Recompute(fused(units)).within_cheaply(1).graph;
  testing::expect_consistent(graph);
  return graph;
}

class FuseRecomputed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::built_with_cuda()) GTEST_SKIP() << "a sum and ReLU are fused with BatchNorm for GPUs alone";
  }
};

// The results inside of four units, that of the first layer, and every second end of a unit: the first and the third.
TEST_F(FuseRecomputed, RecomputesNormsWithWhatWasFusedIntoThem) {
  const Graph before = fused(4), after = recomputed(4);
  EXPECT_EQ(count_op(after, "_BatchNorm_recompute"), 5);
  EXPECT_EQ(count_op(after, "_BatchNorm_Add_Relu_recompute"), 2);
  for (const char* op : {"_BatchNorm_Relu", "_BatchNorm_Signs", "_BatchNorm_Pair", "_backward_BatchNorm_Relu",
                         "_backward_BatchNorm_Signs", "_backward_BatchNorm_Pair"}) {
    EXPECT_GT(count_op(before, op), 0) << op;
    EXPECT_EQ(count_op(after, op), count_op(before, op)) << op;
  }
  for (const GraphNode& node : after.nodes)
    if (const auto* params = params_if<BatchNormAddReluRecompute>(node)) {
      EXPECT_EQ(params->pair, node.source->name.starts_with("unit0")) << node.source->name;
    }
}

TEST_F(FuseRecomputed, GradientsOfNormsRecomputeTheirResults) {
  Graph graph = recomputed(4);
  fuse_recomputed(graph, accept_all);
  testing::expect_consistent(graph);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Relu_Output"), 5);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Relu"), 0);
  EXPECT_EQ(count_op(graph, "_BatchNorm_recompute"), 0);
  EXPECT_EQ(count_op(graph, "_BatchNorm_Add_Relu_recompute"), 2);
  const Graph before = recomputed(4);
  EXPECT_EQ(graph.outputs.size(), before.outputs.size());
  EXPECT_EQ(count_op(graph, "_backward_Convolution_weight"), count_op(before, "_backward_Convolution_weight"));
}

TEST_F(FuseRecomputed, AsksTheDevice) {
  Graph graph = recomputed(2);
  const size_t nodes = graph.nodes.size();
  fuse_recomputed(graph, accept_none);
  EXPECT_EQ(graph.nodes.size(), nodes);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Relu_Output"), 0);
}

// The gradient of the first norm itself depends on what reads its result, a square.
TEST_F(FuseRecomputed, LeavesAResultThatTheGradientDependsOn) {
  const Symbol first = relu(convolved(var("data"), "first"), "first_relu");
  Symbol net = first * first;
  for (const char* name : {"second", "third"}) net = relu(convolved(net, name), join(name, "_relu"));
  Graph graph = testing::training_graph(convolved(net, "last"), {{"data", {2, 16, 6, 5}}}).graph;
  testing::prepare_to_fuse(graph, gpu(0));
  fuse_norm_relu(graph);
  graph = Recompute(graph).within_cheaply(1).graph;
  ASSERT_EQ(count_op(graph, "_BatchNorm_recompute"), 3);
  fuse_recomputed(graph, accept_all);
  testing::expect_consistent(graph);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Relu_Output"), 2);
  ASSERT_EQ(count_op(graph, "_BatchNorm_recompute"), 1);
  EXPECT_TRUE(std::ranges::any_of(graph.nodes, [](const GraphNode& node) {
    return params_if<BatchNormRecompute>(node) && node.source->name.starts_with("first_relu");
  }));
}

}  // namespace
}  // namespace symbind
