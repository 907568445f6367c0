// Conversions of parameters and gradients in mixed precision: one operator each where the device has a kernel for many
// arrays, and the same numbers.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/amp.h"
#include "symbind/ops/convert_arrays.h"
#include "symbind/passes/fuse.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::var;

constexpr int64_t layers = 3;

NamedShapes shapes(bool scaled, int64_t width = 6) {
  NamedShapes known{{"data", {4, width}}};
  if (scaled) known["scale"] = {1};
  return known;
}

// Layers that compute in 16 bits on float32 parameters, whose gradients are scaled if `scaled`.
Symbol low_network(bool scaled, int64_t width = 6) {
  const auto low = [](const Symbol& x) { return amp_cast(x, {.dtype = DType::float16}); };
  const Symbol scale = var("scale");
  Symbol net = low(var("data"));
  for (int i = 0; i < layers; ++i) {
    Symbol weight = var("weight" + std::to_string(i));
    if (scaled) weight = scale_gradient({weight, scale}, {});
    net = apply("FullyConnected", {net, low(weight)}, {{"num_hidden", std::to_string(width)}, {"no_bias", "True"}},
                "fc" + std::to_string(i));
  }
  return amp_cast(net, {.dtype = DType::float32});
}

Graph fused(bool scaled, Context context, int64_t width = 6) {
  Graph graph = testing::training_graph(low_network(scaled, width), shapes(scaled, width)).graph;
  testing::prepare_to_fuse(graph, context);
  fuse(graph);
  testing::expect_consistent(graph);
  return graph;
}

std::vector<int64_t> merged_counts(const Graph& graph) {
  std::vector<int64_t> counts;
  for (const GraphNode& node : graph.nodes)
    if (const auto* params = params_if<ConvertArrays>(node)) counts.push_back(params->num_arrays);
  return counts;
}

TEST(MergeConversions, LeavesThemAloneOnACpu) {
  EXPECT_EQ(merged_counts(fused(false, cpu())), std::vector<int64_t>{});
  EXPECT_EQ(merged_counts(fused(true, cpu())), std::vector<int64_t>(layers, 1)) << "one for each gradient";
}

TEST(MergeConversions, OfParametersAndOfGradientsAreOneOperatorEachOnAGpu) {
  if (!testing::built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  // The data, which is a variable too, is cast with the parameters, and so is its gradient.
  EXPECT_EQ(merged_counts(fused(false, gpu(0))), (std::vector<int64_t>{layers + 1, layers + 1}));
}

// So that large gradients are complete before the end of backward. The last weight's is in the first batch.
TEST(MergeConversions, OfLargeGradientsAreSeveralOperators) {
  if (!testing::built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  const Graph graph = fused(false, gpu(0), 1200);  // of 5.5 MiB each
  EXPECT_EQ(merged_counts(graph), (std::vector<int64_t>{layers + 1, 2, 2})) << "two weights; a weight and the data";
  std::vector<NodeId> conversions;
  for (const GraphNode& node : graph.backward_part())
    if (params_if<ConvertArrays>(node)) conversions.push_back(node.id);
  ASSERT_EQ(conversions.size(), 2u);
  int products_between = 0;
  for (const GraphNode& node : graph.backward_part())
    if (!node.is_variable() && !params_if<ConvertArrays>(node))
      products_between += node.id > conversions[0] && node.id < conversions[1];
  EXPECT_GT(products_between, 0) << "all are at the end";
}

TEST(MergeConversions, AbsorbsTheCastBeforeAFactor) {
  if (!testing::built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  const Graph graph = fused(true, gpu(0));
  EXPECT_EQ(merged_counts(graph), (std::vector<int64_t>{layers + 1, layers}));
  EXPECT_EQ(count_op(graph, "_cast_like"), 1 + 1) << "of the output and of the data";
}

TEST(MergeConversions, GiveTheNumbersOfSingleConversions) {
  for (const bool scaled : {false, true}) {
    const testing::Network network{"low", low_network(scaled), shapes(scaled), 0};
    for (const Context context : testing::all_devices()) {
      auto with = testing::bind_with_values(network, context, {.options = {.poison = true}});
      auto without = testing::bind_with_values(network, context, {.options = {.fuse = false}});
      for (const auto& executor : {with, without}) {
        if (scaled) executor->arg_dict().at("scale").fill(0.25);
        executor->forward(true);
        executor->backward(testing::out_grads_for(*executor));
      }
      EXPECT_TRUE(testing::same_bits(with->outputs()[0], without->outputs()[0])) << context;
      for (const auto& [name, gradient] : without->grad_dict())
        EXPECT_TRUE(testing::same_bits(with->grad_dict().at(name), gradient)) << name << " on " << context;
    }
  }
}

}  // namespace
}  // namespace symbind
