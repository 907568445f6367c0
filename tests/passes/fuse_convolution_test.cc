// What goes into a convolution, and what BatchNorm and ReLU become: each rule where it holds and where it does not, and
// the same numbers with and without it.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/amp.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/relu_signs.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/recompute.h"
#include "symbind/train/mixed_precision.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::relu;
using testing::var;

Symbol conv(const Symbol& data, const std::string& name, int64_t pad = 1, int64_t filters = 16) {
  const int64_t kernel = 2 * pad + 1;
  return convolution(data, {.kernel = {kernel, kernel}, .pad = {pad, pad}, .num_filter = filters, .no_bias = true},
                     name);
}
Symbol norm(const Symbol& data, const std::string& name) { return batch_norm(data, {.fix_gamma = false}, name); }

const NamedShapes image{{"data", {2, 16, 6, 5}}};

Graph fused(const Symbol& symbol, bool train, Context context = cpu()) {
  Graph graph = train ? testing::training_graph(symbol, image).graph : testing::inference_graph(symbol, image);
  testing::prepare_to_fuse(graph, context);
  fuse(graph);
  testing::expect_consistent(graph);
  return graph;
}

template <class P>
const P* find(const Graph& graph) {
  for (const GraphNode& node : graph.nodes)
    if (const P* params = params_if<P>(node)) return params;
  return nullptr;
}

// Fused and unfused, in both modes, forward and gradients.
void expect_same_numbers(const Symbol& symbol) {
  const testing::Network network{"fused", symbol, image, 0};
  for (const Context context : testing::all_devices()) {
    auto with = testing::bind_with_values(network, context, {.options = {.poison = true}});
    auto without = testing::bind_with_values(network, context, {.options = {.fuse = false}});
    for (const bool train : {false, true}) {
      with->forward(train);
      without->forward(train);
      for (size_t i = 0; i < with->outputs().size(); ++i)
        EXPECT_TRUE(testing::all_close(with->outputs()[i], without->outputs()[i], {1e-4, 1e-5, 1e-5}))
            << "output " << i << (train ? " in training on " : " in inference on ") << context;
    }
    with->backward(testing::out_grads_for(*with));
    without->backward(testing::out_grads_for(*without));
    for (const auto& [name, gradient] : without->grad_dict())
      EXPECT_TRUE(testing::all_close(with->grad_dict().at(name), gradient, {1e-3, 1e-5, 1e-4}))
          << name << " on " << context;
    for (const auto& [name, state] : without->aux_dict())
      EXPECT_TRUE(testing::all_close(with->aux_dict().at(name), state, {1e-4, 1e-5, 1e-5})) << name;
  }
}

// ---- BatchNorm into convolutions ------------------------------------------------------------------------------------

TEST(FoldBatchNorm, GoesIntoTheConvolutionBeforeItInInference) {
  const Symbol net = relu(norm(conv(var("data"), "conv"), "bn"), "relu");
  const Graph graph = fused(net, false);
  EXPECT_EQ(count_op(graph, "BatchNorm"), 0);
  EXPECT_EQ(count_op(graph, "Activation"), 0);
  ASSERT_NE(find<ConvolutionFused>(graph), nullptr);
  EXPECT_TRUE(find<ConvolutionFused>(graph)->norm);
  EXPECT_EQ(find<ConvolutionFused>(graph)->act_type, "relu");
  EXPECT_EQ(count_op(fused(net, true), "_Convolution_Fused"), 0) << "training needs the statistics of the batch";
  expect_same_numbers(net);
}

TEST(FoldBatchNorm, IsFoldedIntoTheNextConvolutionWithoutPadding) {
  const Symbol bare = conv(norm(var("data"), "bn"), "conv", 0), padded = conv(norm(var("data"), "bn"), "conv", 1);
  const Graph graph = fused(bare, false);
  EXPECT_EQ(count_op(graph, "BatchNorm"), 0);
  ASSERT_NE(find<ConvolutionFused>(graph), nullptr);
  EXPECT_TRUE(find<ConvolutionFused>(graph)->norm_before);
  EXPECT_EQ(count_op(fused(padded, false), "BatchNorm"), 1) << "zeros around the data are not shifted";
  expect_same_numbers(bare);
  expect_same_numbers(padded);
}

TEST(FoldBatchNorm, GoesIntoOneConvolutionFromBothSides) {
  const Symbol net = norm(conv(norm(var("data"), "before"), "conv", 0), "after");
  const Graph graph = fused(net, false);
  EXPECT_EQ(count_op(graph, "BatchNorm"), 0);
  EXPECT_EQ(count_op(graph, "_Convolution_Fused"), 1);
  expect_same_numbers(net);
}

TEST(FoldBatchNorm, StaysWhereSomebodyElseReadsTheConvolution) {
  const Symbol made = conv(var("data"), "conv");
  const Symbol net = Symbol::group({norm(made, "bn"), made});
  EXPECT_EQ(count_op(fused(net, false), "BatchNorm"), 1);
  expect_same_numbers(net);
}

TEST(FoldBatchNorm, StaysWhereItsStatisticsAreOutputs) {
  const Symbol net = batch_norm(conv(var("data"), "conv"), {.fix_gamma = false, .output_mean_var = true}, "bn");
  EXPECT_EQ(count_op(fused(net, false), "BatchNorm"), 1);
}

TEST(FoldBatchNorm, StaysWhereItNormalizesAnotherAxisThanTheChannels) {
  const auto norm_of_rows = [](const Symbol& data) { return batch_norm(data, {.fix_gamma = false, .axis = 2}, "bn"); };
  for (const Symbol& net : {norm_of_rows(conv(var("data"), "conv")), conv(norm_of_rows(var("data")), "conv", 0)}) {
    EXPECT_EQ(count_op(fused(net, false), "BatchNorm"), 1);
    expect_same_numbers(net);
  }
}

// ---- In 16 bits -----------------------------------------------------------------------------------------------------

const DType low_types[] = {DType::float16, DType::bfloat16};

// A residual block, a depthwise convolution and norms on both sides of a convolution with a bias.
Symbol block_of_layers() {
  const Symbol data = var("data");
  const Symbol first = relu(norm(conv(data, "a"), "bn_a"), "relu_a");
  const Symbol sum = relu(norm(conv(first, "b", 0), "bn_b") + norm(conv(data, "c", 0), "bn_c"), "relu_b");
  const Symbol deep =
      norm(convolution(sum, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 16, .num_group = 16, .no_bias = true}, "d"),
           "bn_d");
  return norm(convolution(norm(deep, "before"), {.kernel = {1, 1}, .num_filter = 16}, "e"), "after");
}

// Inference, fused and unfused, on all devices.
void expect_same_numbers_in(DType dtype, const Symbol& symbol) {
  const testing::Network network{"fused", symbol, image, 0};
  for (const Context context : testing::all_devices()) {
    auto with = testing::bind_with_values(network, context, {.options = {.poison = true}});
    auto without = testing::bind_with_values(network, context, {.options = {.fuse = false}});
    for (int run = 0; run < 3; ++run) {  // the second is captured, the third follows a change of the weights
      if (run == 2)
        for (const auto& executor : {with, without})
          for (const char* name : {"b_weight", "e_bias", "bn_b_gamma", "after_moving_mean"}) {
            NDArray array =
                executor->arg_dict().contains(name) ? executor->arg_dict().at(name) : executor->aux_dict().at(name);
            array.fill(0.25);
          }
      with->forward(false);
      without->forward(false);
      const testing::Tolerance tolerance = testing::tolerance_of(dtype);
      EXPECT_TRUE(testing::all_close(with->outputs()[0], without->outputs()[0],
                                     {4 * tolerance.relative, 4 * tolerance.absolute, 4 * tolerance.of_largest}))
          << dtype << " on " << context << ", run " << run;
    }
  }
}

TEST(FoldBatchNorm, IsFoldedIn16BitsAndWeightsAreRoundedOnce) {
  for (const DType dtype : low_types) {
    const Symbol net = computed_in(block_of_layers(), dtype);
    const Graph graph = fused(net, false);
    EXPECT_EQ(count_op(graph, "BatchNorm"), 0);
    EXPECT_EQ(count_op(graph, "elemwise_add"), 0);
    EXPECT_EQ(count_op(graph, "amp_cast"), 2) << "of the data and of the output";
    EXPECT_EQ(count_op(graph, "_Convolution_Fused"), 5);
    for (const GraphNode& node : graph.nodes) {
      if (!params_if<ConvolutionFused>(node)) continue;
      EXPECT_TRUE(graph.producer(node.inputs[1]).is_variable());
      EXPECT_EQ(graph.tensor(node.inputs[1]).dtype, DType::float32);
      EXPECT_EQ(graph.tensor(node.first_output).dtype, dtype);
    }
    expect_same_numbers_in(dtype, net);
  }
}

TEST(FoldBatchNorm, IsFoldedIntoWeightsOf16Bits) {
  for (const DType dtype : low_types) {
    const Symbol net = with_low_parameters(computed_in(block_of_layers(), dtype), dtype, {"data"});
    const Graph graph = fused(net, false);
    EXPECT_EQ(count_op(graph, "BatchNorm"), 0);
    for (const GraphNode& node : graph.nodes)
      EXPECT_TRUE(!params_if<ConvolutionFused>(node) || graph.tensor(node.inputs[1]).dtype == dtype);
    expect_same_numbers_in(dtype, net);
  }
}

TEST(RoundWeightsOnce, LeavesCastsThatOthersRead) {
  const Symbol weight = var("weight"), rounded = amp_cast(weight, {.dtype = DType::float16}, "rounded");
  const Symbol made = convolution({{"data", amp_cast(var("data"), {.dtype = DType::float16})}, {"weight", rounded}},
                                  {.kernel = {1, 1}, .num_filter = 16, .no_bias = true}, "conv");
  EXPECT_EQ(count_op(fused(made, false), "amp_cast"), 1);
  EXPECT_EQ(count_op(fused(made, true), "_Convolution_Fused"), 0) << "gradients read the rounded weight";
  const Graph graph = fused(Symbol::group({made, rounded}), false);
  EXPECT_EQ(count_op(graph, "amp_cast"), 2);
  EXPECT_EQ(count_op(graph, "_Convolution_Fused"), 1);
}

// ---- Residual sums --------------------------------------------------------------------------------------------------

TEST(FuseResidual, ASumIsMadeByTheConvolution) {
  const Symbol start = relu(var("data"), "start");
  const Symbol net = conv(start, "conv") + start;
  for (const bool train : {false, true}) {
    const Graph graph = fused(net, train);
    const auto* params = find<ConvolutionFused>(graph);
    ASSERT_NE(params, nullptr);
    EXPECT_TRUE(params->sum);
    // Backward of the ReLU reads its result again.
    EXPECT_EQ(params->sum_is_spent, !train);
  }
  expect_same_numbers(net);
}

TEST(FuseResidual, DoesNotOverwriteWhatIsReadAgain) {
  const Symbol start = relu(var("data"), "start");
  const Symbol net = (conv(start, "conv") + start) * start;
  const auto graph = fused(net, false);
  ASSERT_NE(find<ConvolutionFused>(graph), nullptr);
  EXPECT_FALSE(find<ConvolutionFused>(graph)->sum_is_spent);
  expect_same_numbers(net);
}

TEST(FuseResidual, OfTwoConvolutionsOneAddsTheOther) {
  const Symbol data = var("data");
  const Symbol net = relu(norm(conv(data, "a"), "bn_a") + norm(conv(data, "b", 0), "bn_b"), "relu");
  const Graph graph = fused(net, false);
  EXPECT_EQ(count_op(graph, "elemwise_add"), 0);
  EXPECT_EQ(count_op(graph, "Activation"), 0);
  expect_same_numbers(net);
}

TEST(FuseResidual, AnArrayAddedToItselfIsLeftAlone) {
  const Symbol made = conv(var("data"), "conv");
  expect_same_numbers(made + made);
}

TEST(FuseResidual, LeavesAConvolutionAloneThatSomebodyElseReads) {
  const Symbol start = relu(var("data"), "start"), made = conv(start, "conv");
  const Symbol net = (made + start) * made;
  EXPECT_EQ(find<ConvolutionFused>(fused(net, false)), nullptr);
  expect_same_numbers(net);
}

// ---- BatchNorm and ReLU in training ---------------------------------------------------------------------------------

TEST(FuseNormRelu, AreOneOperatorAndSoAreTheirGradients) {
  const Symbol net = conv(relu(norm(conv(var("data"), "a"), "bn"), "relu"), "b");
  const Graph graph = fused(net, true);
  EXPECT_EQ(count_op(graph, "_BatchNorm_Relu"), 1);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Relu"), 1);
  EXPECT_EQ(count_op(graph, "BatchNorm") + count_op(graph, "Activation") + count_op(graph, "_backward_Activation"), 0);
  expect_same_numbers(net);
}

TEST(FuseNormRelu, TakesTheGradientThatComesAroundTheConvolutionsAlong) {
  const Symbol x = conv(var("data"), "first");
  const Symbol net = conv(relu(norm(x, "bn"), "relu"), "conv") + x;
  const Graph graph = fused(net, true);
  const auto* params = find<BatchNormReluGrad>(graph);
  ASSERT_NE(params, nullptr);
  EXPECT_TRUE(params->with_sum);
  EXPECT_EQ(count_op(graph, "elemwise_add"), 0);
  expect_same_numbers(net);
}

TEST(FuseNormRelu, LeavesOtherActivationsAndOtherReadersAlone) {
  const Symbol made = norm(var("data"), "bn");
  EXPECT_EQ(count_op(fused(activation(made, {.act_type = "tanh"}), true), "_BatchNorm_Relu"), 0);
  EXPECT_EQ(count_op(fused(relu(made, "relu") + made, true), "_BatchNorm_Relu"), 0);
  expect_same_numbers(relu(made, "relu") + made);
}

TEST(FuseNormRelu, KeepsStatisticsThatAreOutputs) {
  const Symbol made = batch_norm(conv(var("data"), "conv"), {.fix_gamma = false, .output_mean_var = true}, "bn");
  expect_same_numbers(Symbol::group({relu(made[0], "relu"), made[1], made[2]}));
}

// The ends of residual units, with and without signs (fuse_relu_signs_test.cc).
int sums_and_relus(const Graph& graph) {
  return count_op(graph, "_BatchNorm_Add_Relu") + count_op(graph, "_BatchNorm_Signs");
}
int sum_and_relu_gradients(const Graph& graph) {
  return count_op(graph, "_backward_BatchNorm_Add_Relu") + count_op(graph, "_backward_BatchNorm_Signs");
}

// The end of a residual unit: ReLU of a norm and the unit's input, which the next unit reads twice.
Symbol residual_units() {
  const Symbol first = relu(norm(conv(var("data"), "a"), "bn1"), "relu1");
  const Symbol second = relu(norm(conv(first, "b"), "bn2") + first, "relu2");
  return conv(relu(second + norm(conv(second, "c"), "bn3"), "relu3"), "d");
}

TEST(FuseNormRelu, FusesTheSumOfAResidualUnitOnlyWhereTheDeviceHasAKernel) {
  const Symbol net = residual_units();
  const Graph on_cpu = fused(net, true);
  EXPECT_EQ(sums_and_relus(on_cpu) + sum_and_relu_gradients(on_cpu), 0);
  if (testing::built_with_cuda()) {
    const Graph on_gpu = fused(net, true, gpu(0));
    EXPECT_EQ(sums_and_relus(on_gpu), 2);
    EXPECT_EQ(sum_and_relu_gradients(on_gpu), 2);
    EXPECT_EQ(count_op(on_gpu, "BatchNorm") + count_op(on_gpu, "_backward_BatchNorm"), 0);
    int of_two = 0;
    for (const GraphNode& node : on_gpu.nodes)
      if (const auto* params = params_if<BatchNormSignsGrad>(node)) of_two += params->two_grads;
    EXPECT_EQ(of_two, 1) << "two operators read the first unit, one the second";
    EXPECT_EQ(count_op(on_gpu, "elemwise_add"), 1) << "only at the first ReLU, which is not of a residual unit";
  }
  expect_same_numbers(net);
}

// The data of the norm is then computed in backward, after the gradient of ReLU.
TEST(FuseNormRelu, LeavesTheGradientOfASumAloneWhoseDataIsRecomputedLater) {
  const auto recomputed = [](const Symbol& x, const std::string& name) {
    const AttrScope scope({{"force_mirroring", "True"}});
    return conv(x, name);
  };
  const Symbol first = relu(norm(conv(var("data"), "a"), "bn1"), "relu1");
  const Symbol second = relu(norm(recomputed(first, "b"), "bn2") + first, "relu2");
  const Symbol net = conv(relu(norm(recomputed(second, "c"), "bn3") + second, "relu3"), "d");
  if (testing::built_with_cuda()) {
    Graph graph = Recompute(testing::training_graph(net, image).graph).as_requested().graph;
    testing::prepare_to_fuse(graph, gpu(0));
    fuse(graph);
    testing::expect_consistent(graph);
    EXPECT_EQ(count_op(graph, "_BatchNorm_Add_Relu"), 2);
    EXPECT_GT(count_op(graph, "Convolution"), 4) << "two of them are recomputed";
  }
  expect_same_numbers(net);
}

// Whatever a budget makes the plan recompute, no fused operator reads a tensor before it is computed.
TEST(Fuse, MixedPrecisionWithinAnyBudgetIsConsistentOnEveryDevice) {
  for (const testing::Network& network : testing::residual_networks()) {
    SCOPED_TRACE(network.name);
    const Symbol low = computed_in(network.symbol, DType::float16);
    std::vector<std::string> parameters;
    for (const std::string& name : low.list_arguments())
      if (!network.inputs.contains(name)) parameters.push_back(name);
    const Symbol scaled = with_scaled_loss(low, parameters, "scale", "inverse_scale");
    const Graph graph = testing::training_graph(scaled, network.inputs).graph;
    const Recompute recompute(graph);
    const size_t all = recompute.as_requested().bytes;
    for (const size_t part : {2, 3, 5, 10})
      for (const Context context : {cpu(), gpu(0)}) {
        if (context.is_gpu() && !testing::built_with_cuda()) continue;
        Graph made = recompute.within(all / part).graph;
        testing::prepare_to_fuse(made, context);
        EXPECT_NO_THROW(fuse(made)) << context << ", a " << part << "th of " << all << " bytes";
        testing::expect_consistent(made);
      }
  }
}

TEST(FuseNormRelu, LeavesASumAloneThatSomebodyElseReads) {
  if (!testing::built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  const Symbol x = conv(var("data"), "a"), sum = norm(x, "bn") + x;
  EXPECT_EQ(sums_and_relus(fused(relu(sum, "relu") * sum, true, gpu(0))), 0);
  const Symbol made = norm(x, "bn");
  EXPECT_EQ(sums_and_relus(fused(relu(made + x, "relu") * made, true, gpu(0))), 0);
  EXPECT_EQ(sums_and_relus(fused(relu(made + made, "relu"), true, gpu(0))), 0);
}

// Fused, the statistics would be computed where the ReLU is, after their readers.
TEST(FuseNormRelu, IsRefusedWhenTheStatisticsAreReadBeforeTheRelu) {
  const Symbol made = batch_norm(conv(var("data"), "conv"), {.fix_gamma = false, .output_mean_var = true}, "bn");
  for (const size_t statistic : {1, 2}) {
    const Symbol net = Symbol::group({apply("square", made[statistic], {}, "reader"), relu(made[0], "relu")});
    for (const bool train : {false, true})
      EXPECT_EQ(count_op(fused(net, train), "_BatchNorm_Relu"), 0) << "output " << statistic;
    expect_same_numbers(net);
  }
}

// Moving averages depend on who updates them first. The mean is asked for first, so the first norm runs first.
TEST(FuseNormRelu, LeavesNormsOfOneStateInTheirOrder) {
  const Symbol data = var("data"), mean = var("mean"), variance = var("variance");
  const auto norm_of = [&](const Symbol& x, const std::string& name) {
    return batch_norm({{"data", x}, {"moving_mean", mean}, {"moving_var", variance}}, {.output_mean_var = true}, name);
  };
  const Symbol first = norm_of(data, "first"), second = norm_of(conv(data, "conv"), "second");
  const Symbol net = Symbol::group({first[1], relu(second[0], "relu2"), relu(first[0], "relu1")});
  EXPECT_EQ(count_op(fused(net, true), "_BatchNorm_Relu"), 1) << "only the second norm may go on";
  expect_same_numbers(net);
}

}  // namespace
}  // namespace symbind
