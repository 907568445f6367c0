// Reorders of weights and of their gradients: part of the operators that convert all parameters and all gradients,
// where the device has a kernel for many arrays, and the same numbers.
#include <map>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/amp.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/convert_arrays.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/target.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::var;

// ---- A residual network ---------------------------------------------------------------------------------------------

struct Form {
  DType dtype = DType::float32;  // that it computes in, on float32 parameters
  bool direct = true;            // else weights are copies of the parameters, which kernels reorder themselves
  int filters = 16;
};

constexpr int convolutions = 4, of_3x3 = 3;

Symbol residual_network(const Form& form) {
  const auto low = [&](const Symbol& x) {
    return form.dtype == DType::float32 ? x : amp_cast(x, {.dtype = form.dtype});
  };
  const auto weight = [&](const std::string& name) {
    const Symbol variable = var(name);
    return low(form.direct ? variable : apply("_copy", variable, {}, name + "_copy"));
  };
  const auto convolved = [&](const Symbol& x, const std::string& name, int filters, int kernel, int stride) {
    const std::string size = std::to_string(kernel), pad = std::to_string(kernel / 2), step = std::to_string(stride);
    return apply("Convolution", {x, weight(name + "_weight")},
                 {{"num_filter", std::to_string(filters)},
                  {"kernel", "(" + size + ", " + size + ")"},
                  {"pad", "(" + pad + ", " + pad + ")"},
                  {"stride", "(" + step + ", " + step + ")"},
                  {"no_bias", "True"}},
                 name);
  };
  const Symbol first = testing::relu(convolved(low(var("data")), "conv0", form.filters, 3, 1), "relu0");
  const Symbol inner = testing::relu(convolved(first, "conv1", form.filters, 3, 1), "relu1");
  const Symbol sum = testing::relu(convolved(inner, "conv2", form.filters, 1, 1) + first, "relu2");
  Symbol net = convolved(sum, "conv3", 24, 3, 2);
  if (form.dtype != DType::float32) net = amp_cast(net, {.dtype = DType::float32});
  return net;
}

const NamedShapes shapes{{"data", {3, 8, 9, 7}}};

// ---- The graph ------------------------------------------------------------------------------------------------------

PreferredLayouts plain_layouts(const NodeView& node) {
  return {std::vector(node.inputs.size(), Layout::plain), std::vector(node.outputs.size(), Layout::plain)};
}

// An implementation as a GPU's: channels-last activations, and weights as they come. Needs no GPU.
const Implementation follower = {
    .name = "follower", .refuse = {}, .build = {}, .preferred_layouts = [](const NodeView& node) {
      PreferredLayouts preferred = plain_layouts(node);
      preferred.inputs[0] = Layout::channels_last;
      if (&node.op == &op_of<ConvolutionGradWeight>()) {
        preferred.inputs[1] = Layout::channels_last;
        preferred.inputs[2] = preferred.outputs[0] = node.inputs[2].layout;
      } else {
        preferred.inputs[1] = node.inputs[1].layout;
        preferred.outputs[0] = Layout::channels_last;
        if (&node.op == &op_of<ConvolutionFused>())
          if (const int sum = inputs_of(node.as<ConvolutionFused>()).sum; sum >= 0)
            preferred.inputs[static_cast<size_t>(sum)] = Layout::channels_last;
      }
      return std::optional(preferred);
    }};

// After all passes up to merge_reorders, if `merged`, on a device with the implementation above.
Graph laid_out(const Form& form, Context context, bool merged = true, GradReq req = GradReq::write) {
  Graph graph = testing::training_graph(residual_network(form), shapes, {"data"}, req).graph;
  testing::prepare_to_fuse(graph, context);
  fuse(graph);
  for (GraphNode& node : graph.nodes) {
    if (node.is_variable()) continue;
    const bool convolution =
        as_fused_convolution(node) || params_if<ConvolutionGradData>(node) || params_if<ConvolutionGradWeight>(node);
    node.implementation = convolution ? &follower : &Target::get(context).implementations(node.op()).front();
  }
  layout(graph, merged);
  if (merged) merge_reorders(graph);
  testing::expect_consistent(graph);
  return graph;
}

// By node: how many arrays it converts, and how many of them it reorders.
std::vector<std::pair<int, int>> conversions(const Graph& graph) {
  std::vector<std::pair<int, int>> counts;
  for (const GraphNode& node : graph.nodes) {
    if (!params_if<ConvertArrays>(node)) continue;
    int reordered = 0;
    for (int i = 0; i < node.outputs; ++i)
      reordered +=
          graph.tensor(node.inputs[static_cast<size_t>(i)]).layout != graph.tensor(node.first_output + i).layout;
    counts.emplace_back(node.outputs, reordered);
  }
  return counts;
}

using Counts = std::vector<std::pair<int, int>>;

int reorders_of_weights(const Graph& graph) {
  int count = 0;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_variable() && node.op().name == "_reorder")
      count += node.source->name.find("weight") != std::string::npos;
  return count;
}

// The layouts of the weights that convolutions read, and of the weight gradients that they compute.
void expect_layouts_of_weights(const Graph& graph, Layout of_3x3_weights, Layout of_3x3_gradients) {
  for (const GraphNode& node : graph.nodes) {
    if (node.is_variable() || node.implementation != &follower) continue;
    const bool gradient = params_if<ConvolutionGradWeight>(node) != nullptr;
    const Tensor& weight = graph.tensor(gradient ? node.first_output : node.inputs[1]);
    const Layout expected = gradient ? of_3x3_gradients : of_3x3_weights;
    EXPECT_EQ(weight.layout, weight.shape[2] == 1 ? Layout::plain : expected) << node.source->name;
  }
}

#define SKIP_WITHOUT_CUDA() \
  if (!testing::built_with_cuda()) GTEST_SKIP() << "built without CUDA"

TEST(MergeReorders, LowPrecisionHasOneConversionOfParametersAndOneOfGradients) {
  SKIP_WITHOUT_CUDA();
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const Graph graph = laid_out({dtype}, gpu(0));
    // The data is cast and reordered together with the weights.
    EXPECT_EQ(conversions(graph), (Counts{{convolutions + 1, of_3x3 + 1}, {convolutions, of_3x3}}));
    EXPECT_EQ(reorders_of_weights(graph), 0);
    EXPECT_EQ(count_op(graph, "_reorder"), 2) << "of the output and of its gradient";
    expect_layouts_of_weights(graph, Layout::channels_last, Layout::channels_last);
  }
}

TEST(MergeReorders, Float32ReordersAllWeightsInOneOperatorAndAllGradientsInAnother) {
  SKIP_WITHOUT_CUDA();
  const Graph graph = laid_out({}, gpu(0));
  EXPECT_EQ(conversions(graph), (Counts{{of_3x3 + 1, of_3x3 + 1}, {of_3x3, of_3x3}}));
  EXPECT_EQ(count_op(graph, "_relabel"), 0) << "a weight of 1 × 1 is read as it is";
  EXPECT_EQ(count_op(graph, "_reorder"), 2) << "of the output and of its gradient";
  expect_layouts_of_weights(graph, Layout::channels_last, Layout::channels_last);
}

// So that large gradients are complete before the end of backward.
TEST(MergeReorders, OfLargeGradientsAreSeveralOperators) {
  SKIP_WITHOUT_CUDA();
  // conv1's has 9 MiB and ends the first batch; conv0's is a batch of its own.
  const Graph graph = laid_out({.filters = 512}, gpu(0));
  EXPECT_EQ(conversions(graph), (Counts{{of_3x3 + 1, of_3x3 + 1}, {of_3x3 - 1, of_3x3 - 1}}));
  EXPECT_EQ(count_op(graph, "_reorder"), 2 + 1) << "of the output, of its gradient and of conv0's gradient";
}

TEST(MergeReorders, WithoutTheOfferKernelsGetPlainWeights) {
  SKIP_WITHOUT_CUDA();
  for (const DType dtype : {DType::float32, DType::float16}) {
    const Graph graph = laid_out({dtype}, gpu(0), /*merged=*/false);
    EXPECT_EQ(reorders_of_weights(graph), 0);
    expect_layouts_of_weights(graph, Layout::plain, Layout::plain);
  }
}

// A reorder of the gradient, and one of the array that it is added to, would be two instead of one in the kernel.
TEST(MergeReorders, GradientsThatAreAddedStayPlain) {
  SKIP_WITHOUT_CUDA();
  for (const DType dtype : {DType::float32, DType::float16}) {
    const Graph graph = laid_out({dtype}, gpu(0), true, GradReq::add);
    EXPECT_EQ(reorders_of_weights(graph), 0);
    expect_layouts_of_weights(graph, Layout::channels_last, Layout::plain);
  }
}

TEST(MergeReorders, WeightsThatAreNoParametersStayPlain) {
  SKIP_WITHOUT_CUDA();
  const Graph graph = laid_out({DType::float16, false}, gpu(0));
  EXPECT_EQ(reorders_of_weights(graph), 0);
  expect_layouts_of_weights(graph, Layout::plain, Layout::plain);
}

TEST(MergeReorders, LeavesACpuAlone) {
  for (const DType dtype : {DType::float32, DType::float16}) {
    const Graph with = laid_out({dtype}, cpu()), without = laid_out({dtype}, cpu(), false);
    EXPECT_EQ(conversions(with), Counts{});
    ASSERT_EQ(with.nodes.size(), without.nodes.size());
    for (size_t i = 0; i < with.nodes.size(); ++i)
      EXPECT_EQ(with.nodes[i].source->op, without.nodes[i].source->op) << i;
    expect_layouts_of_weights(with, Layout::plain, Layout::plain);
  }
}

// A weight that another operator reads too is converted once for each.
TEST(MergeReorders, AWeightWithAnotherReaderIsConvertedForBoth) {
  SKIP_WITHOUT_CUDA();
  const Symbol weight = amp_cast(var("weight"), {.dtype = DType::float16}), data = var("data");
  const Symbol net = apply("Convolution", {amp_cast(data, {.dtype = DType::float16}), weight},
                           {{"num_filter", "8"}, {"kernel", "(3, 3)"}, {"no_bias", "True"}}, "conv");
  const Symbol both = Symbol::group({net, apply("sum", weight, {}, "sum")});
  Graph graph = testing::training_graph(both, {{"data", {2, 8, 5, 5}}}, {"data"}).graph;
  place(graph, gpu(0), {});
  separate_outputs(graph);
  fuse(graph);
  for (GraphNode& node : graph.nodes)
    if (!node.is_variable())
      node.implementation = as_fused_convolution(node) || params_if<ConvolutionGradWeight>(node)
                                ? &follower
                                : &Target::get(gpu(0)).implementations(node.op()).front();
  layout(graph, true);
  merge_reorders(graph);
  testing::expect_consistent(graph);
  EXPECT_EQ(conversions(graph).at(0), (std::pair{3, 2})) << "the data, and the weight in both orders";
  const GraphNode& sum = graph.node(testing::find_node(graph, "sum"));
  EXPECT_EQ(graph.tensor(sum.inputs[0]).layout, Layout::plain);
}

// ---- The numbers ----------------------------------------------------------------------------------------------------

struct Results {
  std::vector<NDArray> outputs;
  std::map<std::string, NDArray> gradients;
};

// Steps between which the weights change; the last is a replay of a captured one.
Results trained(const Form& form, Context context, const SimpleBindOptions& options) {
  auto executor = testing::bind_with_values({"residual", residual_network(form), shapes, 0}, context, options);
  const auto out_grads = testing::out_grads_for(*executor);
  for (int step = 0; step < 3; ++step) {
    for (const auto& [name, array] : executor->arg_dict())
      testing::parameter_values(name, array.shape(), 10 + static_cast<uint64_t>(step)).copyto(array);
    executor->forward(true);
    executor->backward(out_grads);
  }
  Results results;
  for (const NDArray& output : executor->outputs()) results.outputs.push_back(output.as_copy_in(cpu()));
  for (const auto& [name, gradient] : executor->grad_dict())
    results.gradients.emplace(name, gradient.as_copy_in(cpu()));
  return results;
}

TEST(MergeReorders, GiveTheBitsOfReordersInTheKernels) {
  for (const Context context : testing::all_devices())
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      for (const bool capture : {false, true}) {
        if (capture && !context.is_gpu()) continue;
        const SimpleBindOptions options{.options = {.capture = capture, .poison = true}};
        const Results with = trained({dtype, true}, context, options),
                      without = trained({dtype, false}, context, options);
        EXPECT_TRUE(testing::same_bits(with.outputs[0], without.outputs[0])) << dtype << " on " << context;
        ASSERT_EQ(with.gradients.size(), without.gradients.size());
        for (const auto& [name, gradient] : without.gradients)
          EXPECT_TRUE(testing::same_bits(with.gradients.at(name), gradient))
              << name << ", " << dtype << " on " << context;
      }
}

// What a GPU runs, not only what the passes make of a follower.
TEST(MergeReorders, OnAGpuEveryStepConvertsOnce) {
  if (num_gpus() == 0) GTEST_SKIP() << "there is no GPU here";
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    auto executor = testing::bind_with_values({"residual", residual_network({dtype}), shapes, 0}, gpu(0));
    executor->forward(true);
    executor->backward(testing::out_grads_for(*executor));
    const std::string plan = executor->debug_str();
    int conversions = 0;
    std::istringstream lines(plan);
    for (std::string line; std::getline(lines, line);) {
      conversions += line.find(" _convert_arrays ") != std::string::npos;
      EXPECT_FALSE(line.find(" _reorder ") != std::string::npos && line.find("weight") != std::string::npos) << line;
    }
    EXPECT_EQ(conversions, 2) << dtype << "\n" << plan;
  }
}

}  // namespace
}  // namespace symbind
