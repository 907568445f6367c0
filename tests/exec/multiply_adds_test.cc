// How many multiplications, each with an addition, the operators of a step do.
#include <map>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/all.h"

#include "tests/support/lapack.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

using Counts = std::map<std::string, double>;

// By operator, of forward and backward; those without any are left out.
Counts counts(const Symbol& net, const NamedShapes& shapes) {
  const auto executor = simple_bind(net, cpu(), shapes, {.options = {.fuse = false, .profile = true}});
  executor->forward(true);
  executor->backward({ones(executor->outputs()[0].shape())});
  Counts all;
  for (const OperatorCost& cost : executor->operator_costs())
    if (cost.multiply_adds > 0) all[cost.op] = cost.multiply_adds;
  return all;
}

TEST(MultiplyAdds, OfAConvolutionAreThoseOfItsGradients) {
  // 2 images, 6 channels to 4 in 2 groups, 5 × 3 outputs.
  const Convolution params{.kernel = {3, 2}, .stride = {1, 2}, .pad = {1, 0}, .num_filter = 4, .num_group = 2};
  const double expected = 2 * 4 * (5 * 3) * (6 / 2 * 3 * 2);
  EXPECT_EQ(counts(convolution(var("data"), params, "conv"), {{"data", {2, 6, 5, 6}}}),
            (Counts{{"Convolution", expected},
                    {"_backward_Convolution_data", expected},
                    {"_backward_Convolution_weight", expected}}));
}

TEST(MultiplyAdds, OfADeconvolutionAreThoseOfTheConvolutionBack) {
  const Deconvolution params{.kernel = {2, 2}, .stride = {2, 2}, .num_filter = 4, .num_group = 2};
  const double expected = 3 * 6 * (5 * 5) * (4 / 2 * 2 * 2);
  EXPECT_EQ(counts(deconvolution(var("data"), params, "deconv"), {{"data", {3, 6, 5, 5}}}),
            (Counts{{"Deconvolution", expected},
                    {"_backward_Deconvolution_data", expected},
                    {"_backward_Deconvolution_weight", expected}}));
}

TEST(MultiplyAdds, OfAFusedConvolutionAreThoseOfTheConvolution) {
  const Symbol net = relu(convolution(var("data"), {.kernel = {3, 3}, .num_filter = 16}, "conv"), "relu");
  const auto executor =
      simple_bind(net, cpu(), {{"data", {2, 3, 8, 8}}}, {.grad_req = "null", .options = {.profile = true}});
  executor->forward(false);
  double all = 0;
  for (const OperatorCost& cost : executor->operator_costs()) all += cost.multiply_adds;
  EXPECT_EQ(all, 2 * 16 * (6 * 6) * (3 * 3 * 3)) << executor->debug_str();
}

TEST(MultiplyAdds, OfADeformableConvolutionAreThoseOfItsGradients) {
  const DeformableConvolution params{.kernel = {3, 3}, .num_filter = 4};
  const double expected = 2 * 4 * (3 * 3) * (6 * 3 * 3);
  EXPECT_EQ(
      counts(modulated_deformable_convolution({{"data", var("data")}, {"offset", var("offset")}}, {params}, "conv"),
             {{"data", {2, 6, 5, 5}}}),
      (Counts{{"_contrib_ModulatedDeformableConvolution", expected},
              {"_backward_ModulatedDeformableConvolution_data", expected},
              {"_backward_ModulatedDeformableConvolution_weight", expected}}));
  EXPECT_EQ(counts(deformable_convolution(var("data"), var("offset"), params, "conv"), {{"data", {2, 6, 5, 5}}}),
            (Counts{{"_contrib_DeformableConvolution", expected},
                    {"_backward_DeformableConvolution_data", expected},
                    {"_backward_DeformableConvolution_weight", expected}}));
}

TEST(MultiplyAdds, OfMatricesAreRowsTimesColumnsTimesWhatIsSummed) {
  const double expected = 3 * 5 * 7;
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      const Shape lhs = a ? Shape{5, 3} : Shape{3, 5}, rhs = b ? Shape{7, 5} : Shape{5, 7};
      EXPECT_EQ(counts(dot(var("a"), var("b"), {.transpose_a = a, .transpose_b = b}), {{"a", lhs}, {"b", rhs}}),
                (Counts{{"dot", expected}, {"_backward_dot_lhs", expected}, {"_backward_dot_rhs", expected}}));
      const Shape many_lhs = a ? Shape{2, 5, 3} : Shape{2, 3, 5}, many_rhs = b ? Shape{2, 7, 5} : Shape{2, 5, 7};
      const NamedShapes many{{"a", many_lhs}, {"b", many_rhs}};
      EXPECT_EQ(counts(batch_dot(var("a"), var("b"), {.transpose_a = a, .transpose_b = b}), many),
                (Counts{{"batch_dot", 3 * 2 * expected}}));
      EXPECT_EQ(counts(linalg_gemm(var("a"), var("b"), var("c"), {.transpose_a = a, .transpose_b = b}), many),
                (Counts{{"_linalg_gemm", 2 * expected}, {"_linalg_gemm2", 2 * 2 * expected}}));
      EXPECT_EQ(counts(linalg_gemm2(var("a"), var("b"), {.transpose_a = a, .transpose_b = b}), many),
                (Counts{{"_linalg_gemm2", 3 * 2 * expected}}));
    }
}

TEST(MultiplyAdds, OfTriangularMatricesAreHalfOfTheProducts) {
  if (lapack_is_missing()) GTEST_SKIP() << without_lapack;
  const NamedShapes shapes{{"a", {2, 4, 4}}, {"b", {2, 4, 5}}};
  const double expected = 2 * 4 * 4 * 5 / 2;
  EXPECT_EQ(counts(linalg_trmm(var("a"), var("b")), shapes).at("_linalg_trmm"), 2 * expected)
      << "and the gradient of b";
  EXPECT_EQ(counts(linalg_trsm(var("a"), var("b")), shapes).at("_linalg_trsm"), 2 * expected)
      << "and the gradient of b";
  EXPECT_EQ(counts(linalg_syrk(var("a")), {{"a", {2, 3, 5}}}).at("_linalg_syrk"), 2 * 3 * 3 * 5);
}

TEST(MultiplyAdds, OfACorrelationAreThoseOfItsPatches) {
  const Symbol net = correlation(var("a"), var("b"), {.kernel_size = 3, .max_displacement = 1, .pad_size = 2});
  EXPECT_EQ(counts(net, {{"a", {2, 6, 7, 7}}}).at("Correlation"), 2 * 9 * (7 * 7) * (6 * 3 * 3));
}

TEST(MultiplyAdds, OfAFullyConnectedLayerAreOneForEachWeightAndRow) {
  const auto all = [](bool flatten) {
    return counts(fully_connected(var("data"), {.num_hidden = 7, .flatten = flatten}, "fc"), {{"data", {2, 3, 5}}});
  };
  EXPECT_EQ(all(true).at("FullyConnected"), 2 * 15 * 7);
  EXPECT_EQ(all(false).at("FullyConnected"), 6 * 5 * 7);
}

TEST(MultiplyAdds, OfRecurrentLayersAreOneForEachWeightAndStepTwiceInBackward) {
  const RNN params{.state_size = 4, .num_layers = 2, .bidirectional = true, .mode = "lstm", .state_outputs = false};
  const double weights = 2 * 4 * 4 * ((3 + 4) + (2 * 4 + 4));
  const Counts all = counts(rnn({{"data", var("data")}}, params, "lstm"), {{"data", {5, 2, 3}}});
  EXPECT_EQ(all, (Counts{{"RNN", 5 * 2 * weights}, {"_backward_RNN", 2 * 5 * 2 * weights}}));

  const RNN projected{.state_size = 4, .num_layers = 1, .mode = "lstm", .projection_size = 2};
  EXPECT_EQ(counts(rnn({{"data", var("data")}}, projected, "lstm"), {{"data", {5, 2, 3}}}).at("RNN"),
            5 * 2 * (4 * 4 * (3 + 2) + 2 * 4));
}

TEST(MultiplyAdds, OfAttentionAreOneForEachScoreAndFeature) {
  // 3 heads of 4 features, a batch of 2, 5 queries, 7 keys.
  const Symbol self = interleaved_matmul_selfatt_qk(var("x"), {.heads = 3});
  EXPECT_EQ(counts(self, {{"x", {5, 2, 3 * 3 * 4}}}).at("_contrib_interleaved_matmul_selfatt_qk"), 6 * 5 * 5 * 4);
  const Symbol values = interleaved_matmul_encdec_valatt(var("x"), var("attention"), {.heads = 3});
  EXPECT_EQ(counts(values, {{"x", {7, 2, 3 * 2 * 4}}, {"attention", {6, 5, 7}}})
                .at("_contrib_interleaved_matmul_encdec_valatt"),
            6 * 5 * 7 * 4);
}

}  // namespace
}  // namespace symbind::testing
