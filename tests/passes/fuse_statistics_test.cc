// Which convolutions compute the sums of the BatchNorms after them, given what the device can do, and that the two new
// operators compute what they replace.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/passes/fuse.h"
#include "symbind/train/mixed_precision.h"

#include "tests/passes/asked_device.h"
#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::node_of;
using testing::relu;
using testing::var;

Convolution three_by_three(int64_t filters = 16) {
  return {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = filters, .no_bias = true};
}
Symbol conv(const Symbol& data, const std::string& name) { return convolution(data, three_by_three(), name); }
Symbol norm(const Symbol& data, const std::string& name) { return batch_norm(data, {.fix_gamma = false}, name); }

const NamedShapes image{{"data", {2, 16, 6, 5}}};

using Asked = testing::AskedDevice<ConvolutionStatistics>;

Graph fused(const Symbol& symbol, Asked& asked, bool train = true, Context context = cpu()) {
  Graph graph = train ? testing::training_graph(symbol, image).graph : testing::inference_graph(symbol, image);
  place(graph, context, {});
  separate_outputs(graph);
  fuse_norm_relu(graph);
  fuse_statistics(graph, asked.check());
  testing::expect_consistent(graph);
  return graph;
}
Graph fused(const Symbol& symbol, bool train = true, Context context = cpu()) {
  Asked asked;
  return fused(symbol, asked, train, context);
}

int fused_convolutions(const Graph& graph) { return count_op(graph, "_Convolution_Statistics"); }
int fused_norms(const Graph& graph) { return count_op(graph, "_BatchNorm_Given_Sums"); }

TEST(FuseStatistics, AConvolutionReturnsTheSumsThatItsNormReads) {
  const Graph graph = fused(conv(relu(norm(conv(var("data"), "a"), "bn"), "relu"), "b"));
  ASSERT_EQ(fused_convolutions(graph), 1);
  ASSERT_EQ(fused_norms(graph), 1);
  EXPECT_EQ(count_op(graph, "_BatchNorm_Relu"), 0);
  EXPECT_EQ(count_op(graph, "Convolution"), 1) << "no norm reads the second one";
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Relu"), 1);
  const GraphNode& convolution = node_of(graph, "_Convolution_Statistics");
  const GraphNode& made = node_of(graph, "_BatchNorm_Given_Sums");
  EXPECT_EQ(convolution.source->name, "a");
  const auto* params = params_if<BatchNormGivenSums>(made);
  EXPECT_TRUE(params->relu);
  EXPECT_FALSE(params->add);
  EXPECT_EQ(made.inputs[0], convolution.first_output);
  for (const int i : {0, 1}) {
    const TensorId sum = convolution.first_output + 1 + i;
    EXPECT_EQ(made.inputs[static_cast<size_t>(3 + i)], sum);
    EXPECT_EQ(graph.tensor(sum).shape, (Shape{16}));
    EXPECT_EQ(graph.tensor(sum).dtype, DType::float32);
  }
  // The gradients read the data and the statistics as before.
  const GraphNode& backward = node_of(graph, "_backward_BatchNorm_Relu");
  EXPECT_EQ(backward.inputs[1], convolution.first_output);
  EXPECT_EQ(backward.inputs[4], made.first_output + 1);
  EXPECT_EQ(backward.inputs[5], made.first_output + 2);
}

TEST(FuseStatistics, HoldsForANormAloneAndForOneWithASumAndRelu) {
  EXPECT_FALSE(
      params_if<BatchNormGivenSums>(node_of(fused(norm(conv(var("data"), "a"), "bn")), "_BatchNorm_Given_Sums"))->relu);
  if (!testing::built_with_cuda()) return;  // the sum is fused where there is a kernel for it
  const Symbol first = relu(norm(conv(var("data"), "a"), "bn1"), "relu1");
  const Graph graph = fused(relu(norm(conv(first, "b"), "bn2") + first, "relu2"), true, gpu(0));
  EXPECT_EQ(fused_convolutions(graph), 2);
  EXPECT_EQ(fused_norms(graph), 2);
  EXPECT_EQ(count_op(graph, "_BatchNorm_Add_Relu"), 0);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Add_Relu"), 1);
  int with_sum = 0;
  for (const GraphNode& node : graph.nodes)
    if (const auto* params = params_if<BatchNormGivenSums>(node); params && params->add) {
      ++with_sum;
      EXPECT_EQ(graph.tensor(node.inputs[5]).shape, graph.tensor(node.inputs[0]).shape);
    }
  EXPECT_EQ(with_sum, 1);
}

TEST(FuseStatistics, TwoNormsOfOneConvolutionReadTheSameSums) {
  const Symbol made = conv(var("data"), "a");
  Asked asked;
  const Graph graph = fused(norm(made, "bn1") * norm(made, "bn2"), asked);
  EXPECT_EQ(fused_convolutions(graph), 1);
  EXPECT_EQ(fused_norms(graph), 2);
  EXPECT_EQ(std::count(asked.nodes.begin(), asked.nodes.end(), "a"), 1) << "engines are timed once";
}

TEST(FuseStatistics, LeavesBothAsTheyAreUnlessTheDeviceComputesBoth) {
  const Symbol net = relu(norm(conv(var("data"), "a"), "bn"), "relu");
  Asked no_convolution{.of_convolutions = false};
  Graph graph = fused(net, no_convolution);
  EXPECT_EQ(fused_convolutions(graph) + fused_norms(graph), 0);
  EXPECT_EQ(no_convolution.nodes, (std::vector<std::string>{"relu", "a"}));
  Asked no_norm{.of_norms = false};
  graph = fused(net, no_norm);
  EXPECT_EQ(fused_convolutions(graph) + fused_norms(graph), 0);
  EXPECT_EQ(no_norm.nodes, (std::vector<std::string>{"relu"})) << "no engine is timed for a norm that cannot use it";
}

TEST(FuseStatistics, LeavesOtherNormsAlone) {
  const auto count = [](const Symbol& symbol, bool train = true) {
    Asked asked;
    const Graph graph = fused(symbol, asked, train);
    EXPECT_TRUE(asked.nodes.empty());
    return fused_convolutions(graph) + fused_norms(graph);
  };
  const Symbol made = conv(var("data"), "a");
  EXPECT_EQ(count(norm(made, "bn"), false), 0) << "in inference";
  EXPECT_EQ(count(batch_norm(made, {.use_global_stats = true}, "bn")), 0) << "with given statistics";
  EXPECT_EQ(count(batch_norm(made, {.axis = 2}, "bn")), 0) << "over another axis";
  EXPECT_EQ(count(norm(relu(made, "relu"), "bn")), 0) << "of something else";
  EXPECT_EQ(count(norm(var("data"), "bn")), 0) << "of the data";
  Convolution with_bias = three_by_three();
  with_bias.no_bias = false;
  EXPECT_EQ(count(norm(convolution(var("data"), with_bias, "a"), "bn")), 0) << "of a convolution with a bias";
  Convolution last = three_by_three();
  last.layout = "NHWC";
  EXPECT_EQ(count(norm(convolution(var("data"), last, "a"), "bn")), 0) << "over the rows of an image";
  last.num_filter = 5;
  Asked asked;
  EXPECT_EQ(fused_norms(fused(batch_norm(convolution(var("data"), last, "a"), {.axis = -1}, "bn"), asked)), 1);
}

// The devices themselves: a CPU never fuses, and neither does a build for GPUs that has none.
TEST(FuseStatistics, IsLeftToDevicesThatGainByIt) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const Symbol full = relu(norm(conv(var("data"), "a"), "bn"), "relu");
    const Symbol net = dtype == DType::float32 ? full : computed_in(full, dtype);
    for (const Context context : {cpu(), gpu(0)}) {
      if (context.is_gpu() && (!testing::built_with_cuda() || num_gpus() > 0)) continue;
      Graph graph = testing::training_graph(net, image).graph;
      testing::prepare_to_fuse(graph, context);
      fuse(graph);
      EXPECT_EQ(fused_convolutions(graph) + fused_norms(graph), 0) << dtype << " on " << context;
      EXPECT_EQ(count_op(graph, "_BatchNorm_Relu"), 1);
    }
  }
}

// ---- The operators --------------------------------------------------------------------------------------------------

struct Form {
  bool add, relu;
};

// The network that the pass replaces, and the one it makes.
Symbol replaced(const Form& form, const Convolution& params, const BatchNorm& norm_params) {
  const Symbol made = convolution(var("data"), params, "conv");
  const Symbol normalized = batch_norm(made, norm_params, "bn");
  Symbol output = normalized[0];
  if (form.add) output = output + var("sum");
  if (form.relu) output = relu(output, "relu");
  return Symbol::group({output, normalized[1], normalized[2], made});
}
Symbol replacing(const Form& form, const Convolution& params, const BatchNorm& norm_params) {
  const Symbol made = convolution_statistics(var("data"), {params}, "conv");
  Inputs inputs(std::vector<Symbol>{made[0]});
  inputs.add("channel_sum", made[1]);
  inputs.add("channel_square_sum", made[2]);
  if (form.add) inputs.add("sum", var("sum"));
  const Symbol normalized = batch_norm_given_sums(inputs, {norm_params, form.add, form.relu}, "bn");
  return Symbol::group({normalized[0], normalized[1], normalized[2], made[0]});
}

TEST(FuseStatistics, TheOperatorsComputeWhatTheyReplace) {
  const BatchNorm norm_params{.fix_gamma = false, .output_mean_var = true};
  for (const Form form : {Form{false, false}, Form{false, true}, Form{true, true}, Form{true, false}})
    for (const bool train : {true, false}) {
      SCOPED_TRACE(join(form.add ? "with a sum " : "", form.relu ? "with ReLU " : "", train ? "in training" : ""));
      NamedShapes shapes = image;
      if (form.add) shapes["sum"] = {2, 16, 6, 5};
      const auto bound = [&](const Symbol& symbol) {
        auto executor = testing::bind_with_values({"net", symbol, shapes, 0}, cpu(), {.grad_req = "null"});
        executor->forward(train);
        return executor;
      };
      const auto expected = bound(replaced(form, three_by_three(), norm_params));
      const auto actual = bound(replacing(form, three_by_three(), norm_params));
      for (size_t i = 0; i < expected->outputs().size(); ++i)
        EXPECT_TRUE(testing::all_close(actual->outputs()[i], expected->outputs()[i], {1e-5, 1e-6, 1e-6}))
            << "output " << i;
      for (const auto& [name, state] : expected->aux_dict())
        EXPECT_TRUE(testing::all_close(actual->aux_dict().at(name), state, {1e-5, 1e-6, 1e-6})) << name;
    }
}

TEST(FuseStatistics, TheSumsAreThoseOfTheResult) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64})
    for (const bool last : {false, true}) {
      Convolution params = three_by_three(7);
      if (last) params.layout = "NHWC";
      const Symbol made = convolution_statistics(var("data"), {params}, "conv");
      const Shape shape = last ? Shape{2, 6, 5, 3} : Shape{2, 3, 6, 5};
      auto executor = simple_bind(made, cpu(), {{"data", shape}}, {.grad_req = "null", .type_dict = {{"data", dtype}}});
      testing::set_values(*executor, 0);
      executor->forward(true);
      const std::vector<double> values = executor->outputs()[0].to_vector<double>();
      std::vector<double> sums(7), squares(7);
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t channel = last ? i % 7 : i / 30 % 7;
        sums[channel] += values[i];
        squares[channel] += values[i] * values[i];
      }
      const DType expected = dtype == DType::float64 ? DType::float64 : DType::float32;
      for (const size_t i : {1, 2}) EXPECT_EQ(executor->outputs()[i].dtype(), expected);
      EXPECT_TRUE(testing::all_close(executor->outputs()[1].to_vector<double>(), sums, {1e-5, 1e-5, 1e-6})) << dtype;
      EXPECT_TRUE(testing::all_close(executor->outputs()[2].to_vector<double>(), squares, {1e-5, 1e-5, 1e-6})) << dtype;
    }
}

}  // namespace
}  // namespace symbind
