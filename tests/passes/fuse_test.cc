#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::fc;
using testing::relu;
using testing::var;

Graph fused(const Symbol& symbol, const NamedShapes& shapes, bool train) {
  Graph graph = train ? testing::training_graph(symbol, shapes).graph : testing::inference_graph(symbol, shapes);
  place(graph, cpu(), {});
  fuse(graph);
  return graph;
}

TEST(Fuse, TakesAnActivationIntoTheMatrixProductBeforeIt) {
  const auto mlp = testing::mlp();
  for (const bool train : {false, true}) {
    const Graph graph = fused(mlp.symbol, mlp.inputs, train);
    testing::expect_consistent(graph);
    EXPECT_EQ(count_op(graph, "Activation"), 0) << (train ? "training" : "inference");
    EXPECT_EQ(count_op(graph, "FullyConnected"), 1) << "only the last one has no activation after it";
  }
}

TEST(Fuse, TakesAnActivationIntoTheConvolutionBeforeIt) {
  const auto lenet = testing::lenet();
  const Graph graph = fused(lenet.symbol, lenet.inputs, false);
  testing::expect_consistent(graph);
  EXPECT_EQ(count_op(graph, "Activation"), 0);
  EXPECT_EQ(count_op(graph, "Convolution"), 0);
}

TEST(Fuse, LeavesAProductAloneThatSomebodyElseReads) {
  const Symbol product = fc(var("x"), 4, "fc");
  const NamedShapes shapes{{"x", {2, 3}}};
  EXPECT_EQ(count_op(fused(relu(product, "r") + product, shapes, false), "FullyConnected"), 1);
  EXPECT_EQ(count_op(fused(Symbol::group({relu(product, "r"), product}), shapes, false), "Activation"), 1);
}

TEST(Fuse, KeepsTheOutputsWhereTheyWere) {
  const Symbol net = Symbol::group({relu(fc(var("x"), 4, "fc"), "r"), var("x") + 1});
  const Graph graph = fused(net, {{"x", {2, 3}}}, true);
  testing::expect_consistent(graph);
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{2, 4}));
  EXPECT_EQ(graph.tensor(graph.outputs[1]).shape, (Shape{2, 3}));
}

class FusedActivation : public ::testing::TestWithParam<std::string> {};

TEST_P(FusedActivation, GivesTheSameNumbersAsTheTwoOperators) {
  for (const Context context : testing::all_devices()) {
    const Symbol product = fc(var("data"), 7, "fc");
    const Symbol conv = apply("Convolution", var("data"), {{"kernel", "(3, 3)"}, {"num_filter", "5"}}, "conv");
    for (const auto& [before, shape] : {std::pair(product, Shape{3, 5}), std::pair(conv, Shape{2, 3, 6, 5})}) {
      const testing::Network network{
          "fused", apply("Activation", before, {{"act_type", GetParam()}}, "act"), {{"data", shape}}, 0};
      auto with = testing::bind_with_values(network, context);
      auto without = testing::bind_with_values(network, context, {.options = {.fuse = false}});
      const NDArray head = testing::random_array(with->forward(true)[0].shape(), 5, -1, 1, DType::float32, context);
      without->forward(true);
      with->backward(std::vector<NDArray>{head});
      without->backward(std::vector<NDArray>{head});
      EXPECT_TRUE(testing::all_close(with->outputs()[0], without->outputs()[0]));
      for (size_t i = 0; i < with->grad_arrays().size(); ++i)
        EXPECT_TRUE(testing::all_close(with->grad_arrays()[i], without->grad_arrays()[i])) << "gradient " << i;
      EXPECT_TRUE(testing::all_close(with->forward(false)[0], without->forward(false)[0]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fuse, FusedActivation, ::testing::Values("relu", "sigmoid", "tanh", "softrelu", "softsign"),
                         [](const ::testing::TestParamInfo<std::string>& act) { return act.param; });

}  // namespace
}  // namespace symbind
