// Which data gradients of convolutions pass through a ReLU and compute the sums of the BatchNorm before it, given what
// the device can do, and that the two new operators compute what they replace.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/ops/relu_signs.h"
#include "symbind/passes/fuse.h"

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

Symbol conv(const Symbol& data, const std::string& name) {
  return convolution(data, {.kernel = {1, 1}, .num_filter = 16, .no_bias = true}, name);
}
Symbol norm(const Symbol& data, const std::string& name) { return batch_norm(data, {.fix_gamma = false}, name); }
Symbol unit(const Symbol& data, const std::string& name) {
  return relu(norm(conv(data, name), name + "_bn") + data, name + "_relu");
}

const NamedShapes image{{"data", {2, 16, 6, 5}}};

using Asked = testing::AskedDevice<ConvolutionGradAddRelu>;

// Sums with a BatchNorm are fused where there is a kernel for that.
Graph before(const Symbol& symbol) {
  Graph graph = testing::training_graph(symbol, image).graph;
  testing::prepare_to_fuse(graph, gpu(0));
  fuse_norm_relu(graph);
  return graph;
}
Graph fused(const Symbol& symbol, Asked& asked) {
  Graph graph = before(symbol);
  fuse_gradient_sums(graph, asked.check());
  testing::expect_consistent(graph);
  return graph;
}

class FuseGradientSums : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  }
};

int fused_convolutions(const Graph& graph) { return count_op(graph, "_backward_Convolution_Add_Relu"); }
int fused_norms(const Graph& graph) { return count_op(graph, "_backward_BatchNorm_From_Sums"); }

TEST_F(FuseGradientSums, AConvolutionComputesTheGradientOfTheReluBeforeIt) {
  Asked asked;
  const Graph graph = fused(unit(unit(relu(conv(var("data"), "a"), "first"), "b"), "c"), asked);
  ASSERT_EQ(fused_convolutions(graph), 1) << "of c; the data of b is not the ReLU of a sum";
  ASSERT_EQ(fused_norms(graph), 1);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Add_Relu"), 1) << "of c, whose gradient arrives from outside";
  EXPECT_EQ(asked.kinds, (std::vector<std::string>{"norm", "convolution"}));
  const GraphNode& convolution = node_of(graph, "_backward_Convolution_Add_Relu");
  const GraphNode& made = node_of(graph, "_backward_BatchNorm_From_Sums");
  const GraphNode& later = node_of(graph, "_backward_BatchNorm_Add_Relu");
  EXPECT_EQ(convolution.inputs[3], later.first_output + 3) << "the gradient of the shortcut";
  EXPECT_EQ(made.inputs[0], convolution.first_output);
  EXPECT_EQ(made.inputs[1], convolution.inputs[5]) << "both read the data of the norm";
  EXPECT_EQ(made.inputs[3], convolution.inputs[6]) << "and its mean";
  for (const int i : {0, 1}) {
    const TensorId sum = convolution.first_output + 1 + i;
    EXPECT_EQ(made.inputs[static_cast<size_t>(5 + i)], sum);
    EXPECT_EQ(graph.tensor(sum).shape, (Shape{16}));
    EXPECT_EQ(graph.tensor(sum).dtype, DType::float32);
  }
}

TEST_F(FuseGradientSums, HoldsForEveryUnitOfAChain) {
  Asked asked;
  Symbol net = unit(conv(var("data"), "first"), "a");
  for (const char* name : {"b", "c", "d"}) net = unit(net, name);
  const Graph graph = fused(net, asked);
  EXPECT_EQ(fused_convolutions(graph), 3);
  EXPECT_EQ(fused_norms(graph), 3);
}

TEST_F(FuseGradientSums, ReadsSignsWhereTheGradientOfTheNormDoes) {
  Asked asked;
  Graph graph = before(unit(unit(unit(conv(var("data"), "a"), "b"), "c"), "d"));
  fuse_relu_signs(graph, [](auto&&...) { return true; });
  ASSERT_EQ(count_op(graph, "_backward_BatchNorm_Signs"), 3);
  fuse_gradient_sums(graph, asked.check());
  testing::expect_consistent(graph);
  EXPECT_EQ(fused_norms(graph), 2);
  EXPECT_EQ(count_op(graph, "_backward_BatchNorm_Signs"), 1) << "of d";
  int with_signs = 0;
  for (const GraphNode& node : graph.nodes)
    if (const auto* params = params_if<ConvolutionGradAddRelu>(node)) {
      with_signs += params->signs;
      const GraphNode& norm = graph.producer(node.inputs[4]);
      EXPECT_TRUE(params_if<BatchNormSigns>(norm));
      EXPECT_EQ(node.inputs[4], norm.first_output + 3);
      EXPECT_EQ(node.inputs[5], norm.inputs[0]);
    }
  EXPECT_EQ(with_signs, 2);
}

TEST_F(FuseGradientSums, LeavesBothAsTheyAreUnlessTheDeviceComputesBoth) {
  const Symbol net = unit(unit(conv(var("data"), "a"), "b"), "c");
  Asked no_convolution{.of_convolutions = false};
  Graph graph = fused(net, no_convolution);
  EXPECT_EQ(fused_convolutions(graph) + fused_norms(graph), 0);
  EXPECT_EQ(no_convolution.kinds, (std::vector<std::string>{"norm", "convolution"}));
  Asked no_norm{.of_norms = false};
  graph = fused(net, no_norm);
  EXPECT_EQ(fused_convolutions(graph) + fused_norms(graph), 0);
  EXPECT_EQ(no_norm.kinds, (std::vector<std::string>{"norm"})) << "no kernel is timed for a norm that cannot use it";
}

TEST_F(FuseGradientSums, LeavesOtherGradientsAlone) {
  const auto count = [](const Symbol& symbol) {
    Asked asked;
    const Graph graph = fused(symbol, asked);
    EXPECT_TRUE(asked.nodes.empty());
    return fused_convolutions(graph) + fused_norms(graph);
  };
  const Symbol first = unit(conv(var("data"), "a"), "b");
  EXPECT_EQ(count(conv(first, "c")), 0) << "a gradient that is not a sum of two";
  EXPECT_EQ(count(relu(norm(first, "bn"), "relu") + first), 0) << "none of a convolution";
  EXPECT_EQ(count(conv(relu(norm(conv(var("data"), "a"), "bn"), "relu"), "b")), 0) << "a norm without a sum";
}

// On devices without a kernel of their own: what the passes would otherwise leave separate.
TEST(GradientSums, TheOperatorsComputeWhatTheyReplace) {
  const Shape data{2, 8, 6, 5}, output{2, 16, 6, 5}, channels{8};
  const Convolution params{.kernel = {1, 1}, .num_filter = 16, .no_bias = true};
  const BatchNorm norm_params{.eps = 1e-5, .fix_gamma = false};
  const NamedShapes shapes{{"dy", output}, {"x", data},         {"more", data},     {"y", data},
                           {"z", data},    {"gamma", channels}, {"mean", channels}, {"var", channels}};
  const Symbol dy = var("dy"), x = var("x"), more = var("more"), y = relu(var("y"), "relu"), z = var("z"),
               gamma = var("gamma"), mean = var("mean"), deviation = var("var"), weight = var("weight");
  const Symbol data_grad = convolution_grad_data({dy, weight, x}, {params});
  const Symbol separate =
      batch_norm_add_relu_grad({data_grad, y, z, gamma, mean, deviation, more}, {norm_params, true});
  const auto bound = [&](const Symbol& symbol) {
    return testing::bind_with_values({"net", symbol, shapes, 0}, cpu(), {.grad_req = "null"});
  };
  const auto expected = bound(Symbol::group({separate[0], separate[1], separate[2], separate[3]}));
  expected->forward(true);
  for (const bool signs : {false, true}) {
    SCOPED_TRACE(signs ? "with signs" : "");
    const Symbol first =
        convolution_grad_add_relu({dy, weight, x, more, signs ? relu_signs(y) : y, z, mean}, {params, signs});
    const Symbol second =
        batch_norm_grad_from_sums({first[0], z, gamma, mean, deviation, first[1], first[2]}, {norm_params});
    const auto actual = bound(Symbol::group({second[0], second[1], second[2], first[0], first[1], first[2]}));
    for (auto [name, array] : expected->arg_dict()) array.copyto(actual->arg_dict().at(name));
    actual->forward(true);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_TRUE(testing::all_close(actual->outputs()[i], expected->outputs()[i], {1e-5, 1e-6, 1e-6}))
          << "output " << i;
    EXPECT_TRUE(testing::all_close(actual->outputs()[4], expected->outputs()[2], {1e-5, 1e-6, 1e-6})) << "of beta";
    const std::vector<double> away = actual->outputs()[5].to_vector<double>();
    const std::vector<double> slopes = expected->outputs()[1].to_vector<double>();
    const std::vector<double> reciprocals = expected->arg_dict().at("var").to_vector<double>();
    for (size_t c = 0; c < away.size(); ++c) EXPECT_NEAR(away[c] * reciprocals[c], slopes[c], 1e-4) << "of gamma";
  }
}

}  // namespace
}  // namespace symbind
