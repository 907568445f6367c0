// Which ends of residual units normalise their shortcut, too, given what the device can do, and that the operators of
// two norms compute what they replace.
#include <gtest/gtest.h>

#include "symbind/graph/attributes.h"
#include "symbind/ops/batch_norm_pair.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/ops/reshape.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/recompute.h"
#include "symbind/train/mixed_precision.h"

#include "tests/passes/asked_device.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"
#include "tests/support/norm_pair.h"

namespace symbind {
namespace {

using testing::accept_all;
using testing::count_op;
using testing::node_of;
using testing::relu;
using testing::var;

// ---- The pass -------------------------------------------------------------------------------------------------------

Symbol conv(const Symbol& data, const std::string& name, int64_t filters = 16) {
  return convolution(data, {.kernel = {1, 1}, .num_filter = filters, .no_bias = true}, name);
}
Symbol norm(const Symbol& data, const std::string& name) { return batch_norm(data, {.fix_gamma = false}, name); }
// A unit whose shortcut is a convolution, and one whose shortcut is its data.
Symbol projected(const Symbol& data, const std::string& name, int64_t filters = 16) {
  const Symbol body = norm(conv(data, name, filters), name + "_bn");
  return relu(body + norm(conv(data, name + "_s", filters), name + "_sbn"), name + "_relu");
}
Symbol unit(const Symbol& data, const std::string& name) {
  return relu(norm(conv(data, name), name + "_bn") + data, name + "_relu");
}

// What runs before, where the device accepts everything that is asked for.
struct Before {
  bool statistics = false, signs = false, gradient_sums = false;
};
Graph prepared(const Symbol& symbol, const Before& before = {}) {
  Graph graph = testing::training_graph(symbol, {{"data", {2, 16, 6, 5}}}).graph;
  testing::prepare_to_fuse(graph, gpu(0));
  fuse_norm_relu(graph);
  if (before.statistics) fuse_statistics(graph, accept_all);
  if (before.signs) fuse_relu_signs(graph, accept_all);
  if (before.gradient_sums) fuse_gradient_sums(graph, accept_all);
  return graph;
}
Graph fused(const Symbol& symbol, const Before& before = {}, const KernelCheck& check = accept_all) {
  Graph graph = prepared(symbol, before);
  fuse_norm_pair(graph, check);
  testing::expect_consistent(graph);
  return graph;
}

int pairs(const Graph& graph) { return count_op(graph, "_BatchNorm_Pair"); }
int pair_gradients(const Graph& graph) { return count_op(graph, "_backward_BatchNorm_Pair"); }
int pair_gradients_from_sums(const Graph& graph) { return count_op(graph, "_backward_BatchNorm_Pair_Sums"); }

class FuseNormPair : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::built_with_cuda()) GTEST_SKIP() << "a sum and ReLU are fused with BatchNorm for GPUs alone";
  }
};

TEST_F(FuseNormPair, TheEndOfAUnitNormalisesTheShortcutToo) {
  const Symbol net = conv(projected(conv(var("data"), "first"), "a"), "last");
  const Graph graph = fused(net);
  EXPECT_EQ(pairs(graph), 1);
  EXPECT_EQ(pair_gradients(graph), 1);
  for (const char* op : {"BatchNorm", "_BatchNorm_Add_Relu", "_backward_BatchNorm", "_backward_BatchNorm_Add_Relu"})
    EXPECT_EQ(count_op(graph, op), 0) << op;
  const GraphNode& forward = node_of(graph, "_BatchNorm_Pair");
  const std::string names[] = {"a",
                               "a_bn_gamma",
                               "a_bn_beta",
                               "a_s",
                               "a_sbn_gamma",
                               "a_sbn_beta",
                               "a_bn_moving_mean",
                               "a_bn_moving_var",
                               "a_sbn_moving_mean",
                               "a_sbn_moving_var"};
  ASSERT_EQ(forward.inputs.size(), std::size(names));
  for (size_t i = 0; i < std::size(names); ++i)
    EXPECT_EQ(graph.producer(forward.inputs[i]).source->name, names[i]) << "input " << i;
  const GraphNode& backward = node_of(graph, "_backward_BatchNorm_Pair");
  const TensorId y = forward.first_output;
  const std::vector<TensorId> inputs{backward.inputs[0],
                                     y,
                                     forward.inputs[0],
                                     forward.inputs[1],
                                     y + 1,
                                     y + 2,
                                     forward.inputs[3],
                                     forward.inputs[4],
                                     y + 3,
                                     y + 4};
  EXPECT_EQ(backward.inputs, inputs);
  for (const TensorId statistic : {y + 1, y + 2, y + 3, y + 4}) {
    EXPECT_EQ(graph.tensor(statistic).shape, (Shape{16}));
  }
  EXPECT_EQ(graph.tensor(backward.first_output + 3).shape, (Shape{2, 16, 6, 5}));
}

TEST_F(FuseNormPair, HoldsWhicheverOperandOfTheSumIsTheShortcut) {
  const Symbol data = conv(var("data"), "first");
  const Symbol body = norm(conv(relu(conv(data, "a"), "relu_a"), "b"), "bn");
  const Symbol net = relu(norm(conv(data, "s"), "sbn") + body, "relu");
  const Graph graph = fused(net);
  EXPECT_EQ(pairs(graph), 1);
  EXPECT_EQ(pair_gradients(graph), 1);
}

TEST_F(FuseNormPair, HoldsForNormsThatAreGivenTheirSumsAndStoreSigns) {
  const Symbol net = conv(projected(conv(var("data"), "first"), "a"), "last");
  const Graph graph = fused(net, {.statistics = true, .signs = true});
  ASSERT_EQ(pairs(graph), 1);
  const GraphNode& forward = node_of(graph, "_BatchNorm_Pair");
  const auto* params = params_if<BatchNormPair>(forward);
  EXPECT_TRUE(params->given_sums && params->other_given_sums && params->signs);
  for (const int norm : {0, 1})
    for (const int i : {0, 3, 4}) {
      const TensorId input = forward.inputs[static_cast<size_t>(norm * 5 + i)];
      EXPECT_TRUE(params_if<ConvolutionStatistics>(graph.producer(input)));
      EXPECT_EQ(graph.tensor(input).shape.rank(), i == 0 ? 4 : 1);
    }
  ASSERT_EQ(pair_gradients(graph), 1);
  const GraphNode& backward = node_of(graph, "_backward_BatchNorm_Pair");
  EXPECT_TRUE(params_if<BatchNormPairGrad>(backward)->signs);
  EXPECT_EQ(backward.inputs[1], forward.first_output + 5);
  EXPECT_EQ(graph.tensor(backward.inputs[1]).dtype, DType::uint8);
}

TEST_F(FuseNormPair, OneOfTheNormsMayBeGivenItsSums) {
  const Symbol data = conv(var("data"), "first");
  const Symbol pooled = relu(data, "relu");  // no convolution
  const Graph graph = fused(relu(norm(conv(data, "a"), "bn") + norm(pooled, "sbn"), "end"), {.statistics = true});
  ASSERT_EQ(pairs(graph), 1);
  const auto* params = params_if<BatchNormPair>(node_of(graph, "_BatchNorm_Pair"));
  EXPECT_TRUE(params->given_sums);
  EXPECT_FALSE(params->other_given_sums);
}

TEST_F(FuseNormPair, ReadsSumsThatAConvolutionHasComputed) {
  const Symbol net = conv(unit(projected(conv(var("data"), "first"), "a"), "b"), "last");
  const Graph graph = fused(net, {.signs = true, .gradient_sums = true});
  EXPECT_EQ(pairs(graph), 1);
  EXPECT_EQ(pair_gradients(graph), 0);
  ASSERT_EQ(pair_gradients_from_sums(graph), 1);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_From_Sums") + count_op(graph, "_backward_BatchNorm"), 0);
  const GraphNode& backward = node_of(graph, "_backward_BatchNorm_Pair_Sums");
  const GraphNode& convolution = node_of(graph, "_backward_Convolution_Add_Relu");
  const GraphNode& forward = node_of(graph, "_BatchNorm_Pair");
  const TensorId y = forward.first_output, g = convolution.first_output;
  const std::vector<TensorId> inputs{g,     forward.inputs[0], forward.inputs[1], y + 1, y + 2, g + 1,
                                     g + 2, forward.inputs[3], forward.inputs[4], y + 3, y + 4};
  EXPECT_EQ(backward.inputs, inputs);
  EXPECT_FALSE(params_if<BatchNormPairGradFromSums>(backward)->other_sum);
}

TEST_F(FuseNormPair, AddsTwoGradientsWhereTheNormDid) {
  const Graph graph = fused(unit(projected(conv(var("data"), "first"), "a"), "b"));
  ASSERT_EQ(pair_gradients(graph), 1);
  const GraphNode& backward = node_of(graph, "_backward_BatchNorm_Pair");
  EXPECT_TRUE(params_if<BatchNormPairGrad>(backward)->two_grads);
  ASSERT_EQ(backward.inputs.size(), 11);
  EXPECT_EQ(graph.tensor(backward.inputs[10]).shape, (Shape{2, 16, 6, 5}));
}

TEST_F(FuseNormPair, ForwardAndBackwardDoNotNeedEachOther) {
  const Symbol first = conv(projected(conv(var("data"), "first"), "a"), "between");
  const Symbol net = conv(unit(projected(first, "b"), "c"), "last");
  const auto except = [](const OpDef& refused) {
    return [&refused](const Graph&, Context, const Node& node, auto&&...) { return node.op != &refused; };
  };
  Graph graph = fused(net, {.gradient_sums = true}, except(op_of<BatchNormPair>()));
  EXPECT_EQ(pairs(graph), 0);
  EXPECT_EQ(count_op(graph, "BatchNorm"), 2);
  EXPECT_EQ(pair_gradients(graph), 1);
  EXPECT_EQ(pair_gradients_from_sums(graph), 1);
  graph = fused(net, {.gradient_sums = true}, except(op_of<BatchNormPairGrad>()));
  EXPECT_EQ(pairs(graph), 2);
  EXPECT_EQ(pair_gradients(graph), 0);
  EXPECT_EQ(pair_gradients_from_sums(graph), 1);
  graph = fused(net, {.gradient_sums = true}, except(op_of<BatchNormPairGradFromSums>()));
  EXPECT_EQ(pairs(graph), 2);
  EXPECT_EQ(pair_gradients(graph), 1);
  EXPECT_EQ(pair_gradients_from_sums(graph), 0);
  graph = fused(net, {.gradient_sums = true}, [](auto&&...) { return false; });
  EXPECT_EQ(pairs(graph) + pair_gradients(graph) + pair_gradients_from_sums(graph), 0);
}

TEST_F(FuseNormPair, LeavesOtherUnitsAlone) {
  const auto forward = [](const Symbol& symbol) { return pairs(fused(symbol)); };
  const Symbol data = conv(var("data"), "first");
  EXPECT_EQ(forward(unit(data, "a")), 0) << "without a norm of the shortcut";
  const Symbol body = norm(conv(data, "a"), "bn"), shortcut = norm(conv(data, "s"), "sbn");
  EXPECT_EQ(forward(relu(body + shortcut, "relu") * shortcut), 0) << "a norm that is read elsewhere";
  EXPECT_EQ(forward(Symbol::group({relu(body + shortcut, "relu"), shortcut})), 0) << "a norm that is an output";
  EXPECT_EQ(forward(relu(body + relu(shortcut, "relu_s"), "relu")), 0) << "a norm with ReLU";
  EXPECT_EQ(forward(body + shortcut), 0) << "a sum without ReLU";
  for (const BatchNorm& other :
       {BatchNorm{.eps = 1e-5, .fix_gamma = false}, BatchNorm{.fix_gamma = true},
        BatchNorm{.momentum = 0.5, .fix_gamma = false}, BatchNorm{.fix_gamma = false, .use_global_stats = true}}) {
    const Graph graph = fused(conv(relu(body + batch_norm(conv(data, "s"), other, "sbn"), "relu"), "last"));
    EXPECT_EQ(pairs(graph) + pair_gradients(graph), 0) << "norms with other parameters";
  }
}

TEST_F(FuseNormPair, StatisticsMayBeOutputs) {
  const Symbol data = conv(var("data"), "first");
  const Symbol shortcut = batch_norm(conv(data, "s"), {.fix_gamma = false, .output_mean_var = true}, "sbn");
  const Graph graph =
      fused(Symbol::group({relu(norm(conv(data, "a"), "bn") + shortcut[0], "relu"), shortcut[1], shortcut[2]}));
  ASSERT_EQ(pairs(graph), 1);
  const TensorId y = node_of(graph, "_BatchNorm_Pair").first_output;
  EXPECT_EQ(graph.outputs[0], y);
  EXPECT_EQ(graph.outputs[1], y + 3);
  EXPECT_EQ(graph.outputs[2], y + 4);
}

// The norm of the shortcut would be computed too late.
TEST_F(FuseNormPair, LeavesANormAloneWhoseStatisticsOrStatesAreReadBefore) {
  const Symbol data = conv(var("data"), "first");
  const Symbol shortcut = batch_norm(conv(data, "s"), {.fix_gamma = false, .output_mean_var = true}, "sbn");
  const Symbol scaled = broadcast_mul(data, reshape(shortcut[1], {.shape = {1, 16, 1, 1}}));
  EXPECT_EQ(pairs(fused(relu(norm(conv(scaled, "a"), "bn") + shortcut[0], "relu"))), 0);

  const Symbol mean = var("mean"), variance = var("variance");
  const auto with_states = [&](const Symbol& x, const std::string& name) {
    return batch_norm({{"data", x}, {"moving_mean", mean}, {"moving_var", variance}}, {.fix_gamma = false}, name);
  };
  EXPECT_EQ(pairs(fused(relu(with_states(conv(data, "a"), "bn") + with_states(conv(data, "s"), "sbn"), "relu"))), 0)
      << "states that both update";
}

TEST_F(FuseNormPair, LeavesNormsOnTwoDevicesAlone) {
  const auto on = [](const std::string& group, auto make) {
    const AttrScope scope({{"ctx_group", group}});
    return make();
  };
  const Symbol data = conv(var("data"), "first");
  const Symbol shortcut = on("other", [&] { return norm(conv(data, "s"), "sbn"); });
  const Symbol net = conv(relu(norm(conv(data, "a"), "bn") + shortcut, "relu"), "last");
  Graph graph = testing::training_graph(net, {{"data", {2, 16, 6, 5}}}).graph;
  place(graph, gpu(0), {{"other", gpu(1)}});
  separate_outputs(graph);
  fuse_norm_relu(graph);
  ASSERT_EQ(count_op(graph, "_BatchNorm_Add_Relu"), 1);
  fuse_norm_pair(graph, accept_all);
  EXPECT_EQ(pairs(graph) + pair_gradients(graph), 0);
}

// The data of the shortcut's norm is then computed in backward, after the gradient of ReLU.
TEST_F(FuseNormPair, LeavesGradientsAloneWhoseDataIsRecomputedLater) {
  const Symbol data = conv(var("data"), "first");
  const auto recomputed = [&] {
    const AttrScope scope({{"force_mirroring", "True"}});
    return conv(data, "s");
  };
  const Symbol net = conv(relu(norm(conv(data, "a"), "bn") + norm(recomputed(), "sbn"), "relu"), "last");
  Graph graph = Recompute(testing::training_graph(net, {{"data", {2, 16, 6, 5}}}).graph).as_requested().graph;
  testing::prepare_to_fuse(graph, gpu(0));
  fuse_norm_relu(graph);
  fuse_norm_pair(graph, accept_all);
  testing::expect_consistent(graph);
  EXPECT_EQ(pairs(graph), 1);
  EXPECT_EQ(pair_gradients(graph), 0);
}

TEST_F(FuseNormPair, IsLeftToDevicesThatGainByIt) {
  const auto count = [](const Symbol& symbol, Context context, Frugality frugality = Frugality::none) {
    Graph graph = testing::training_graph(symbol, {{"data", {2, 16, 6, 5}}}).graph;
    testing::prepare_to_fuse(graph, context);
    fuse(graph, frugality);
    testing::expect_consistent(graph);
    const int backward = pair_gradients(graph) + pair_gradients_from_sums(graph);
    EXPECT_EQ(pairs(graph), backward);
    return backward;
  };
  const auto net = [](int64_t filters) {
    return projected(projected(conv(var("data"), "first"), "a", filters), "b", filters);
  };
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    for (const int64_t filters : {16, 12, 7}) {
      SCOPED_TRACE(join(dtype, ", ", filters, " channels"));
      const Symbol typed = dtype == DType::float32 ? net(filters) : computed_in(net(filters), dtype);
      EXPECT_EQ(count(typed, cpu()), 0);
      EXPECT_EQ(count(typed, gpu(0)), 2);
      EXPECT_EQ(count(typed, gpu(0), Frugality::full), 2);
    }
}

// In the first form every unit that changes the shape has a norm in its shortcut; the second form has none.
TEST_F(FuseNormPair, IsFoundInResidualNetworks) {
  for (const int depth : {18, 50})
    for (const int version : {1, 2}) {
      SCOPED_TRACE(join("depth ", depth, ", version ", version));
      const testing::Network network = testing::resnet(depth, version, 8, 32);
      Graph graph = testing::training_graph(network.symbol, network.inputs).graph;
      testing::prepare_to_fuse(graph, gpu(0));
      fuse(graph);
      testing::expect_consistent(graph);
      const int units = version == 2 ? 0 : depth == 18 ? 3 : 4;
      EXPECT_EQ(pairs(graph), units);
      EXPECT_EQ(pair_gradients(graph) + pair_gradients_from_sums(graph), units);
    }
}

// ---- The operators, on devices without a kernel of their own --------------------------------------------------------

void expect_same(const std::vector<NDArray>& actual, const std::vector<NDArray>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(testing::same_bits(actual[i], expected[i])) << "result " << i;
}

TEST(BatchNormPair, IsTheSumOfTwoNorms) {
  for (const DType dtype : testing::float_types)
    for (const int axis : {1, -1})
      for (const bool is_train : {true, false})
        for (const int form : {0, 1, 2, 3}) {
          SCOPED_TRACE(join(dtype, ", axis ", axis, ", form ", form, is_train ? " in training" : ""));
          const testing::PairArrays arrays({3, 8, 5, 4}, dtype, axis);
          const BatchNormPair params{{.fix_gamma = false, .axis = axis}, form % 2 == 1, form / 2 == 1, form > 0};
          expect_same(testing::forward_of_pair(arrays, params, is_train),
                      testing::forward_of_each(arrays, params, is_train));
        }
}

TEST(BatchNormPair, ItsGradientsAreThoseOfBoth) {
  for (const DType dtype : testing::float_types)
    for (const int axis : {1, -1})
      for (const bool fix_gamma : {true, false}) {
        SCOPED_TRACE(join(dtype, ", axis ", axis));
        const testing::PairArrays arrays({3, 8, 5, 4}, dtype, axis);
        const BatchNorm norm{.fix_gamma = fix_gamma, .axis = axis};
        const NDArray output = testing::forward_of_pair(arrays, {norm})[0];
        for (const bool signs : {true, false})
          for (const bool two_grads : {true, false}) {
            const BatchNormPairGrad params{norm, signs, two_grads};
            const NDArray results = signs ? relu_signs(output, {axis}) : output;
            expect_same(testing::gradients_of_pair(arrays, params, results),
                        testing::gradients_of_each(arrays, params, results));
          }
        for (const bool other_sum : {true, false})
          expect_same(testing::gradients_from_sums(arrays, {norm, other_sum}), testing::gradients_of_two(arrays, norm));
      }
}

TEST(BatchNormPair, RefusesArraysThatDisagree) {
  const testing::PairArrays arrays({3, 8, 5, 4}, DType::float32);
  testing::PairArrays other = arrays;
  other.norms[1].data = testing::random_array({3, 8, 5, 5}, 1);
  EXPECT_TRUE(testing::fails_with([&] { testing::forward_of_pair(other, {}); }, "other_data", "(3,8,5,5)"));
  other = arrays;
  other.norms[1].gamma = testing::random_array({9}, 1);
  EXPECT_TRUE(testing::fails_with([&] { testing::forward_of_pair(other, {}); }, "other_gamma", "(9,)"));
}

}  // namespace
}  // namespace symbind
