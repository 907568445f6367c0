// Which residual units store the signs of their results, and that the operators with signs compute what they replace.
#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/relu_signs.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/passes.h"
#include "symbind/train/mixed_precision.h"

#include "tests/passes/asked_device.h"
#include "tests/support/device_case.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"
#include "tests/support/relu_results.h"

namespace symbind {
namespace {

using testing::accept_all;
using testing::count_op;
using testing::relu;
using testing::same_bits;
using testing::var;

// ---- The pass -------------------------------------------------------------------------------------------------------

// Two residual units; the gradient of the first one's result has two parts.
Symbol units(int64_t filters = 16) {
  const auto norm = [&](const Symbol& data, const std::string& name) {
    const Convolution params{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = filters, .no_bias = true};
    return batch_norm(convolution(data, params, "conv" + name), {.fix_gamma = false}, "bn" + name);
  };
  const Symbol start = relu(norm(var("data"), "0"), "relu0");
  const Symbol first = relu(norm(start, "1") + start, "relu1");
  return norm(relu(norm(first, "2") + first, "relu2"), "3");
}

Graph before(const Symbol& symbol, int64_t channels = 16) {
  Graph graph = testing::training_graph(symbol, {{"data", {2, channels, 6, 5}}}).graph;
  testing::prepare_to_fuse(graph, gpu(0));
  fuse_norm_relu(graph);
  return graph;
}

int with_signs(const Graph& graph) {
  const int forward = count_op(graph, "_BatchNorm_Signs");
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Signs"), forward);
  return forward;
}

class FuseReluSigns : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::built_with_cuda()) GTEST_SKIP() << "a sum and ReLU are fused with BatchNorm for GPUs alone";
  }
};

TEST_F(FuseReluSigns, TheGradientReadsTheSignsInsteadOfTheResult) {
  Graph graph = before(units());
  ASSERT_EQ(count_op(graph, "_backward_BatchNorm_Add_Relu"), 2);
  fuse_relu_signs(graph, accept_all);
  testing::expect_consistent(graph);
  EXPECT_EQ(with_signs(graph), 2);
  EXPECT_EQ(count_op(graph, "_BatchNorm_Add_Relu") + count_op(graph, "_backward_BatchNorm_Add_Relu"), 0);
  int of_two = 0;
  for (const GraphNode& node : graph.nodes)
    if (const auto* params = params_if<BatchNormSignsGrad>(node)) {
      of_two += params->two_grads;
      const GraphNode& norm = graph.producer(node.inputs[1]);
      ASSERT_TRUE(params_if<BatchNormSigns>(norm));
      EXPECT_EQ(node.inputs[1], norm.first_output + 3);
      EXPECT_EQ(graph.tensor(node.inputs[1]).dtype, DType::uint8);
      EXPECT_EQ(graph.tensor(node.inputs[1]).shape, (Shape{2 * 16 * 6 * 5 / 4}));
      EXPECT_EQ(node.inputs[2], norm.inputs[0]);
      EXPECT_EQ(node.inputs[4], norm.first_output + 1);
    }
  EXPECT_EQ(of_two, 1);
}

TEST_F(FuseReluSigns, HoldsForANormThatIsGivenItsSums) {
  Graph graph = before(units());
  fuse_statistics(graph, accept_all);
  fuse_relu_signs(graph, accept_all);
  testing::expect_consistent(graph);
  EXPECT_EQ(with_signs(graph), 2);
  for (const GraphNode& node : graph.nodes) {
    const auto* params = params_if<BatchNormSigns>(node);
    EXPECT_TRUE(!params || params->given_sums);
  }
}

TEST_F(FuseReluSigns, LeavesOthersAlone) {
  Graph graph = before(units());
  fuse_relu_signs(graph, [](auto&&...) { return false; });
  EXPECT_EQ(with_signs(graph), 0) << "of a device without a kernel";
  graph = before(units(18), 18);
  fuse_relu_signs(graph, accept_all);
  EXPECT_EQ(with_signs(graph), 0) << "channels that do not fill bytes";
}

TEST_F(FuseReluSigns, IsLeftToDevicesThatGainByIt) {
  const auto count = [](const Symbol& symbol, Context context, int64_t channels, Frugality frugality) {
    Graph graph = testing::training_graph(symbol, {{"data", {2, channels, 6, 5}}}).graph;
    testing::prepare_to_fuse(graph, context);
    fuse(graph, frugality);
    return with_signs(graph);
  };
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const Symbol net = dtype == DType::float32 ? units() : computed_in(units(), dtype);
    EXPECT_EQ(count(net, gpu(0), 16, Frugality::none), 2) << dtype;
    EXPECT_EQ(count(net, gpu(0), 16, Frugality::moderate), 0) << dtype << ": the signs need memory";
    EXPECT_EQ(count(net, cpu(), 16, Frugality::none), 0) << dtype;
  }
  EXPECT_EQ(count(units(12), gpu(0), 12, Frugality::none), 0);
}

// ---- The operators --------------------------------------------------------------------------------------------------

TEST(ReluSigns, MakeTheGradientOfReluTheSameInEveryBit) {
  for (const DType dtype : testing::float_types)
    for (const int64_t axis : {1, 3, -1}) {
      SCOPED_TRACE(join(dtype, ", axis ", axis));
      const NDArray output = testing::relu_results({3, 8, 5, 4}, dtype);
      const NDArray grad = testing::relu_results({3, 8, 5, 4}, dtype, 2);
      const NDArray signs = relu_signs(output, {axis});
      EXPECT_EQ(signs.shape(), (Shape{120}));
      EXPECT_TRUE(same_bits(relu_signs_grad(grad, signs, ReluSignsGrad{{axis}}),
                            activation_grad(grad, output, {{.act_type = act_type::relu}})));
    }
}

TEST(ReluSigns, AreInTheOrderOfAnArrayWithItsChannelsLast) {
  const double values[] = {0, 1, -0.0, NAN};  // 0, 1, 2, 3
  std::vector<double> plain(8), last(8);
  for (size_t row = 0; row < 2; ++row)
    for (size_t channel = 0; channel < 4; ++channel)
      plain[channel * 2 + row] = last[row * 4 + channel] = values[(channel + row) % 4];
  const std::vector<int> expected{0 | 1 << 2 | 2 << 4 | 3 << 6, 1 | 2 << 2 | 3 << 4 | 0 << 6};
  EXPECT_EQ(relu_signs(array(plain, {1, 4, 2}), {1}).to_vector<int>(), expected);
  EXPECT_EQ(relu_signs(array(last, {1, 2, 4}), {-1}).to_vector<int>(), expected);
  EXPECT_THROW(relu_signs(array(last, {1, 2, 4}), {1}), Error);
}

TEST(ReluSigns, OfABatchNormAreThoseOfItsOutput) {
  for (const bool given_sums : {false, true})
    for (const DType dtype : testing::float_types) {
      SCOPED_TRACE(join(dtype, given_sums ? " with given sums" : ""));
      const testing::NormArrays arrays({4, 8, 5, 3}, dtype);
      const BatchNormSigns params{{.fix_gamma = false, .output_mean_var = true}, given_sums};
      const auto made = invoke(batch_norm_signs, arrays.forward_inputs(given_sums), params, {.is_train = true});
      const auto expected = invoke(batch_norm_add_relu, arrays.forward_inputs(false), {params}, {.is_train = true});
      for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(made[i], expected[i])) << "output " << i;
      EXPECT_TRUE(same_bits(made[3], relu_signs(made[0])));
      for (const bool two_grads : {false, true}) {
        const BatchNormAddReluGrad grad{params, two_grads};
        const auto actual =
            invoke(batch_norm_signs_grad, arrays.backward_inputs(made, made[3], two_grads), {grad}, {.is_train = true});
        const auto wanted = invoke(batch_norm_add_relu_grad, arrays.backward_inputs(made, made[0], two_grads), grad,
                                   {.is_train = true});
        for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(actual[i], wanted[i])) << "gradient " << i;
      }
    }
}

}  // namespace
}  // namespace symbind
