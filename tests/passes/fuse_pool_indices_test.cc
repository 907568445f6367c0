// Which poolings return the indices of their maxima, and that the operators with indices compute what they replace.
#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/ops/pool_indices.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/passes.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"
#include "tests/support/pooled_arrays.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::relu;
using testing::var;

const Pooling three_by_two{.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}};
const NamedShapes image{{"data", {2, 8, 7, 9}}};

Symbol network(const Pooling& params) { return relu(pooling(relu(var("data"), "before"), params, "pool"), "after"); }

Graph fused(const Symbol& symbol, bool accepted = true, bool train = true) {
  Graph graph = train ? testing::training_graph(symbol, image).graph : testing::inference_graph(symbol, image);
  testing::prepare_to_fuse(graph, cpu());
  fuse_pool_indices(graph, [&](const Graph&, Context, const Node& node, std::span<const Tensor> inputs,
                               std::span<const Tensor> outputs) {
    EXPECT_EQ(inputs.size(), node.op->all_inputs(node.params.get()).size());
    EXPECT_EQ(outputs.size(), node.op->output_count(node.params.get()));
    return accepted;
  });
  testing::expect_consistent(graph);
  return graph;
}

int with_indices(const Graph& graph) {
  return count_op(graph, "_Pooling_Indices") + count_op(graph, "_backward_Pooling_Indices");
}

TEST(FusePoolIndices, TheGradientReadsTheIndicesInsteadOfTheData) {
  const Graph graph = fused(network(three_by_two));
  ASSERT_EQ(with_indices(graph), 2);
  EXPECT_EQ(count_op(graph, "Pooling") + count_op(graph, "_backward_Pooling"), 0);
  const GraphNode *pooling = nullptr, *gradient = nullptr;
  for (const GraphNode& node : graph.nodes) {
    if (params_if<PoolingIndices>(node)) pooling = &node;
    if (params_if<PoolingIndicesGrad>(node)) gradient = &node;
  }
  const TensorId indices = pooling->first_output + 1;
  EXPECT_EQ(graph.tensor(indices).dtype, DType::uint8);
  EXPECT_EQ(graph.tensor(indices).shape, (Shape{2, 8, 4, 5}));
  EXPECT_EQ(gradient->inputs[1], indices);
  EXPECT_EQ(gradient->inputs[2], pooling->inputs[0]);
  EXPECT_EQ(shape_only_inputs(*gradient), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(graph.tensor(gradient->first_output).shape, image.at("data"));
}

TEST(FusePoolIndices, LeavesOthersAlone) {
  EXPECT_EQ(with_indices(fused(network(three_by_two), false)), 0) << "of a device without a kernel";
  EXPECT_EQ(with_indices(fused(network(three_by_two), true, false)), 0) << "without a gradient";
  for (const char* type : {"avg", "sum"}) {
    Pooling params = three_by_two;
    params.pool_type = type;
    EXPECT_EQ(with_indices(fused(network(params))), 0) << type;
  }
}

// A CPU never fuses; a build with CUDA does, unless a byte cannot hold the indices.
TEST(FusePoolIndices, IsLeftToDevicesThatGainByIt) {
  for (const Context context : {cpu(), gpu(0)}) {
    if (context.is_gpu() && !testing::built_with_cuda()) continue;
    const auto count = [&](const Pooling& params) {
      Graph graph = testing::training_graph(network(params), {{"data", {1, 2, 40, 40}}}).graph;
      testing::prepare_to_fuse(graph, context);
      fuse(graph);
      return with_indices(graph);
    };
    EXPECT_EQ(count(three_by_two), context.is_gpu() ? 2 : 0);
    EXPECT_EQ(count({.kernel = {16, 16}}), 0) << "256 elements";
    EXPECT_EQ(count({.global_pool = true}), 0) << "1600 elements";
  }
}

struct Case {
  Shape data;
  Pooling params;
};
const std::vector<Case> cases = {
    {{2, 8, 7, 9}, three_by_two},
    {{2, 3, 8, 8}, {.kernel = {2, 2}, .stride = {2, 2}}},
    {{1, 5, 6, 7}, {.kernel = {3, 2}, .pad = {2, 1}}},
    {{3, 2, 11}, {.kernel = {4}, .pooling_convention = "full", .stride = {3}, .pad = {1}}},
    {{1, 4, 3, 5, 4}, {.kernel = {2, 3, 3}, .stride = {1, 2, 2}, .pad = {1, 0, 1}}},
    {{2, 6, 5, 4}, {.kernel = {2, 2}, .stride = {2, 2}, .pad = {1, 1}, .layout = "NHWC"}},
    {{1, 2, 5}, {.kernel = {1}, .pooling_convention = "full", .stride = {5}}},
    {{2, 3, 5, 4}, {.global_pool = true}},
    {{0, 3, 5, 4}, {.kernel = {2, 2}}},
};

TEST(PoolIndices, ComputeWhatPoolingAndItsGradientDo) {
  for (const auto& [shape, params] : cases)
    for (const DType dtype : testing::float_types)
      for (const size_t kinds : {0, 1, 2, 3, 7}) {
        SCOPED_TRACE(join(dtype, " data ", shape, ", ", kinds, " kinds"));
        const NDArray data =
            kinds > 0 ? testing::pooled_array(shape, kinds, dtype) : testing::random_array(shape, 1, -1, 1, dtype);
        const auto made = invoke(pooling_indices, {data}, {params});
        const NDArray output = pooling(data, params);
        EXPECT_TRUE(testing::all_close(made[0], output, {0, 0, 0}));
        EXPECT_EQ(made[1].dtype(), DType::uint8);
        const NDArray grad = testing::random_array(output.shape(), 2, -1, 1, dtype);
        EXPECT_TRUE(testing::all_close(pooling_indices_grad(grad, made[1], data, {params}),
                                       pooling_grad(grad, data, output, {params}), {0, 0, 0}));
      }
}

TEST(PoolIndices, CountTheElementsOfTheWholeWindow) {
  const NDArray data = array(std::vector<double>{5, 1, 7, 7}, {1, 1, 2, 2});
  const auto made = invoke(pooling_indices, {data}, {{.kernel = {2, 2}, .pad = {1, 1}}});
  EXPECT_EQ(made[0].to_vector<double>(), (std::vector<double>{5, 5, 1, 7, 7, 7, 7, 7, 7}));
  EXPECT_EQ(made[1].to_vector<double>(), (std::vector<double>{3, 2, 2, 3, 2, 2, 1, 0, 0}));
}

TEST(PoolIndices, NeedMaximaOfSmallWindows) {
  const NDArray data = testing::random_array({1, 1, 20, 20}, 1);
  EXPECT_THROW(invoke(pooling_indices, {data}, {{.kernel = {2, 2}, .pool_type = "avg"}}), Error);
  EXPECT_THROW(invoke(pooling_indices, {data}, {{.kernel = {17, 15}}}), Error);
  EXPECT_NO_THROW(invoke(pooling_indices, {data}, {{.kernel = {2, 127}, .stride = {1, 1}, .pad = {1, 60}}}));
}

}  // namespace
}  // namespace symbind
