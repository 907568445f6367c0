// Rules that fuse for every device leave alone what the device would not run itself once it is fused.
#include <gtest/gtest.h>

#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/conv.h"
#include "symbind/passes/fuse.h"
#include "symbind/train/mixed_precision.h"

#include "tests/passes/asked_device.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::accept_all;
using testing::count_op;
using testing::Network;
using testing::var;

const KernelCheck refuse_all = [](const Graph&, Context, const Node&, std::span<const Tensor>,
                                  std::span<const Tensor>) { return false; };

Graph graph_of(const Symbol& symbol, const NamedShapes& inputs, bool is_train, Context context = cpu()) {
  Graph graph = is_train ? testing::training_graph(symbol, inputs).graph : testing::inference_graph(symbol, inputs);
  testing::prepare_to_fuse(graph, context);
  return graph;
}

std::vector<std::string> operators_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_variable()) names.push_back(node.op().name);
  return names;
}

Symbol residual_sum() {
  const Convolution params{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 4};
  const Symbol first = convolution(var("data"), params, "conv1");
  return convolution(first, params, "conv2") + first;
}

using Rule = void (*)(Graph&, const KernelCheck&);

void expect_asks(const std::string& name, Rule rule, const Network& network, bool is_train,
                 const std::string& fused_operator) {
  const Graph before = graph_of(network.symbol, network.inputs, is_train);
  Graph fused = before, refused = before;
  rule(fused, accept_all);
  EXPECT_GT(count_op(fused, fused_operator), 0) << name;
  rule(refused, refuse_all);
  EXPECT_EQ(operators_of(refused), operators_of(before)) << name;
}

TEST(FuseForEveryDevice, WhatTheDeviceRefusesStaysAsItWas) {
  const Network residual = testing::resnet(18, 1, 4, 32);
  expect_asks("fold_batch_norm", fold_batch_norm, residual, false, "_Convolution_Fused");
  expect_asks("fuse_residual", fuse_residual, {"sum", residual_sum(), {{"data", {2, 4, 6, 6}}}, 0}, false,
              "_Convolution_Fused");
  expect_asks("fuse_activation", fuse_activation, testing::lenet(), true, "_Convolution_Fused");
  expect_asks("fuse_activation", fuse_activation, testing::mlp(), true, "_FullyConnected_Activation");
  expect_asks("fuse_norm_relu", fuse_norm_relu, residual, true, "_BatchNorm_Relu");
}

TEST(FuseForEveryDevice, ANormBeforeAConvolutionStaysFoldedIfTheOneAfterItIsRefused) {
  const auto norm = [](const Symbol& data, const std::string& name) {
    return batch_norm(data, {.fix_gamma = false, .use_global_stats = true}, name);
  };
  const Symbol net =
      norm(convolution(norm(var("data"), "before"), {.kernel = {3, 3}, .num_filter = 4}, "conv"), "after");
  Graph graph = graph_of(net, {{"data", {2, 4, 6, 6}}}, false);
  fold_batch_norm(graph, [](const Graph&, Context, const Node& node, std::span<const Tensor>, std::span<const Tensor>) {
    return !static_cast<const ConvolutionFused*>(node.params.get())->norm;
  });
  testing::expect_consistent(graph);
  EXPECT_EQ(operators_of(graph), (std::vector<std::string>{"_Convolution_Fused", "BatchNorm"}));
}

TEST(FuseForEveryDevice, AGradientThatIsRefusedStaysTwoOperators) {
  const Network network = testing::resnet(18, 2, 4, 32);  // normalises before it convolves: a sum after the gradients
  const Graph before = graph_of(network.symbol, network.inputs, true);
  Graph all = before, without_sum = before, forward_alone = before;
  fuse_norm_relu(all, accept_all);
  const auto refuse_if = [](auto refused) -> KernelCheck {
    return [refused](const Graph&, Context, const Node& node, std::span<const Tensor>, std::span<const Tensor>) {
      const bool is_gradient = node.op == &op_of<BatchNormReluGrad>();
      return !is_gradient || !refused(*static_cast<const BatchNormReluGrad*>(node.params.get()));
    };
  };
  fuse_norm_relu(without_sum, refuse_if([](const BatchNormReluGrad& params) { return params.with_sum; }));
  fuse_norm_relu(forward_alone, refuse_if([](const BatchNormReluGrad&) { return true; }));
  const int fused = count_op(all, "_BatchNorm_Relu");
  EXPECT_GT(fused, 0);
  for (const Graph* graph : {&all, &without_sum, &forward_alone}) {
    testing::expect_consistent(*graph);
    EXPECT_EQ(count_op(*graph, "_BatchNorm_Relu"), fused);
    EXPECT_EQ(count_op(*graph, "_backward_BatchNorm_Relu"), graph == &forward_alone ? 0 : fused);
  }
  EXPECT_LT(count_op(all, "elemwise_add"), count_op(without_sum, "elemwise_add"));
  EXPECT_EQ(count_op(without_sum, "elemwise_add"), count_op(before, "elemwise_add"));
}

Symbol computed(const Symbol& network, DType dtype) {
  if (dtype == DType::float32) return network;
  if (dtype == DType::float64) return network({{"data", cast(var("data"), {.dtype = dtype})}});
  return computed_in(network, dtype);
}

// The lists of a build with CUDA can be asked without a GPU.
TEST(FuseForEveryDevice, NoFusedOperatorOfANetworkIsAStepOnTheHost) {
  if (!testing::built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  const KernelCheck runs_on_device = device_check();
  int asked = 0;
  for (const Network& network : testing::networks_for_plans())
    for (const DType dtype : testing::float_types)
      for (const bool is_train : {false, true}) {
        if (!network.inputs.contains("data")) continue;
        Graph graph = graph_of(computed(network.symbol, dtype), network.inputs, is_train, gpu(0));
        fuse(graph);
        for (const GraphNode& node : graph.nodes) {
          if (node.is_variable()) continue;
          std::vector<Tensor> inputs, outputs;
          for (const TensorId input : node.inputs) inputs.push_back(graph.tensor(input));
          for (int i = 0; i < node.outputs; ++i) outputs.push_back(graph.tensor(node.first_output + i));
          EXPECT_TRUE(runs_on_device(graph, node.context, *node.source, inputs, outputs))
              << network.name << ", " << dtype << (is_train ? ", training: " : ": ") << node.op().name << ' '
              << node.source->name;
          ++asked;
        }
      }
  EXPECT_GT(asked, 1000);
}

}  // namespace
}  // namespace symbind
