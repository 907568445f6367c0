// What the fuse pass does for weights that many steps share: one transposition, and one product for the gradient.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::var;

// x ← sin(x·Wᵀ + b), so many times.
testing::Network steps(int count, int64_t rows = 3, int64_t width = 24) {
  const Symbol weight = var("weight"), bias = var("bias");
  Symbol x = var("data");
  for (int t = 0; t < count; ++t) {
    x = apply("FullyConnected", {x, weight, bias}, {{"num_hidden", join(width)}}, join("step", t));
    x = apply("sin", x, {}, join("sin", t));
  }
  return {"steps", x, {{"data", {rows, width}}}, 0};
}

Graph fused(const testing::Network& network, bool train, GradReq req = GradReq::write) {
  Graph graph = train ? testing::training_graph(network.symbol, network.inputs, {}, req).graph
                      : testing::inference_graph(network.symbol, network.inputs);
  place(graph, cpu(), {});
  separate_outputs(graph);
  fuse(graph);
  testing::expect_consistent(graph);
  return graph;
}

TEST(SharedWeights, AreTransposedOnce) {
  for (const bool train : {false, true}) {
    const Graph graph = fused(steps(4), train);
    EXPECT_EQ(count_op(graph, "transpose"), 1);
    EXPECT_EQ(count_op(graph, "_FullyConnected_Transposed"), 4);
    EXPECT_EQ(count_op(graph, "FullyConnected"), 0);
  }
}

TEST(SharedWeights, AreReadAsTheyAreByFewOrByLargeProducts) {
  EXPECT_EQ(count_op(fused(steps(3), false), "transpose"), 0) << "three readers";
  EXPECT_EQ(count_op(fused(steps(4, 300), false), "transpose"), 0) << "300 rows";
}

TEST(SharedWeights, HaveAGradientOfOneProduct) {
  const Graph graph = fused(steps(5), true);
  EXPECT_EQ(count_op(graph, "dot"), 5 + 1) << "five for the data, one for the weight";
  EXPECT_EQ(count_op(graph, "Concat"), 2);
  const GraphNode& node = graph.producer(graph.outputs[2]);
  EXPECT_EQ(node.op().name, "dot");
  EXPECT_EQ(graph.tensor(node.inputs[0]).shape, (Shape{15, 24}));
}

TEST(SharedWeights, GradientsThatAddKeepWhatWasThere) {
  const Graph graph = fused(steps(5), true, GradReq::add);
  EXPECT_EQ(count_op(graph, "Concat"), 2);
  EXPECT_EQ(graph.producer(graph.outputs[2]).op().name, "elemwise_add");
}

TEST(SharedWeights, SumsOfProductsStayWhereJoiningCostsMore) {
  EXPECT_EQ(count_op(fused(steps(5, 100, 8), true), "Concat"), 0) << "a hundred rows for a matrix of eight by eight";
}

TEST(SharedWeights, AProductThatSomebodyElseReadsStays) {
  const Symbol a = var("a"), b = var("b");
  const Attributes transposed{{"transpose_a", "1"}};
  const Symbol read = apply("dot", {a, b}, transposed, "read");
  const Symbol sum = read + apply("dot", {b, a}, transposed) + apply("dot", {a, a}, transposed);
  const testing::Network network{"sum", Symbol::group({sum, read}), {{"a", {2, 9}}, {"b", {2, 9}}}, 0};
  const Graph graph = fused(network, false);
  EXPECT_EQ(count_op(graph, "dot"), 2);
  EXPECT_NE(testing::find_node(graph, "read"), NodeId::none);
}

TEST(SharedWeights, GiveTheSameNumbers) {
  for (const Context context : testing::all_devices())
    for (const std::string grad_req : {"write", "add"}) {
      const testing::Network network = steps(6);
      auto with = testing::bind_with_values(network, context, {.grad_req = grad_req});
      auto without = testing::bind_with_values(network, context, {.grad_req = grad_req, .options = {.fuse = false}});
      for (Executor* executor : {with.get(), without.get()}) {
        const NDArray head = testing::random_array({3, 24}, 7, -1, 1, DType::float32, context);
        executor->forward(true);
        for (const NDArray& gradient : executor->grad_arrays())
          testing::random_array(gradient.shape(), 3).copyto(gradient);
        executor->backward(std::vector<NDArray>{head});
      }
      EXPECT_TRUE(testing::all_close(with->outputs()[0], without->outputs()[0]));
      for (size_t i = 0; i < with->grad_arrays().size(); ++i)
        EXPECT_TRUE(testing::all_close(with->grad_arrays()[i], without->grad_arrays()[i], {1e-4, 1e-5})) << i;
      EXPECT_TRUE(testing::all_close(with->forward(false)[0], without->forward(false)[0]));
    }
}

}  // namespace
}  // namespace symbind
