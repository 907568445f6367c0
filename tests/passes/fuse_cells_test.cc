// What becomes of an unrolled recurrent network: one program for the elementwise operators of a cell, and one product
// for steps that do not depend on each other.
#include <gtest/gtest.h>

#include "symbind/graph/builder.h"
#include "symbind/ops/pointwise.h"
#include "symbind/passes/fuse.h"

#include "tests/support/graphs.h"
#include "tests/support/networks.h"
#include "tests/support/unrolled.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::var;

Graph fused(const Symbol& symbol, const NamedShapes& shapes, bool train, Frugality frugality = Frugality::none) {
  Graph graph = train ? testing::training_graph(symbol, shapes).graph : testing::inference_graph(symbol, shapes);
  place(graph, cpu(), {});
  separate_outputs(graph);
  fuse(graph, frugality);
  testing::expect_consistent(graph);
  return graph;
}
Graph fused(const testing::Unrolled& what, bool train, Frugality frugality = Frugality::none) {
  const testing::Network network = testing::unrolled(what);
  return fused(network.symbol, network.inputs, train, frugality);
}

const PointwiseCell* only_cell(const Graph& graph) {
  const PointwiseCell* found = nullptr;
  for (const GraphNode& node : graph.nodes)
    if (const auto* cell = params_if<PointwiseCell>(node)) {
      EXPECT_EQ(found, nullptr) << "two cells";
      found = cell;
    }
  return found;
}

int operators(const Graph& graph) {
  int count = 0;
  for (const GraphNode& node : graph.nodes) count += node.is_variable() ? 0 : 1;
  return count;
}

Symbol act(const Symbol& data, const std::string& type) { return apply("Activation", data, {{"act_type", type}}); }

TEST(FuseCells, AnLstmCellIsOneProgramInForwardAndOneInBackward) {
  const Graph graph = fused(testing::Unrolled{.layers = 2, .steps = 5}, true);
  EXPECT_EQ(count_op(graph, "_pointwise_cell"), 2 * 2 * 5);
  EXPECT_EQ(count_op(graph, "Activation"), 0);
  EXPECT_EQ(count_op(graph, "elemwise_add"), 0);
  EXPECT_EQ(count_op(graph, "_backward_SliceChannel"), 1) << "that of the steps";
}

TEST(FuseCells, GatesAreReadAndWrittenAsColumns) {
  const Symbol gates = apply("SliceChannel", var("a") + var("b"), {{"num_outputs", "2"}}, "gates");
  const Graph graph = fused(act(gates[0], "sigmoid") * act(gates[1], "tanh"), {{"a", {3, 10}}, {"b", {3, 10}}}, false);
  EXPECT_EQ(operators(graph), 1);
  const PointwiseCell* cell = only_cell(graph);
  ASSERT_TRUE(cell);
  EXPECT_EQ(cell->columns, 5);
  EXPECT_EQ(cell->program, "add, sigmoid, add, tanh, mul");
  ASSERT_EQ(cell->reads.size(), 4u);
  EXPECT_EQ(cell->reads[2].offset, 5);
  EXPECT_EQ(cell->reads[2].stride, 10);
}

TEST(FuseCells, WhatOthersReadIsAResult) {
  const Symbol gates = apply("SliceChannel", var("a"), {{"num_outputs", "2"}}, "gates");
  const Symbol in = act(gates[0], "sigmoid");
  const Graph graph = fused(Symbol::group({in * act(gates[1], "tanh"), in}), {{"a", {3, 10}}}, false);
  EXPECT_EQ(operators(graph), 1);
  ASSERT_TRUE(only_cell(graph));
  EXPECT_EQ(only_cell(graph)->results.size(), 2u);
}

TEST(FuseCells, AReaderInBetweenKeepsItsOperandOutside) {
  const Symbol gates = apply("SliceChannel", var("a"), {{"num_outputs", "2"}}, "gates");
  const Symbol in = act(gates[0], "sigmoid");
  const Symbol between = apply("dot", {in, var("w")}, {}, "between");
  const Graph graph = fused(between + in * act(gates[1], "tanh"), {{"a", {3, 10}}, {"w", {5, 5}}}, false);
  const NodeId dot = testing::find_node(graph, "between");
  ASSERT_NE(dot, NodeId::none);
  EXPECT_EQ(graph.producer(graph.node(dot).inputs[0]).op().name, "Activation");
}

TEST(FuseCells, SplitsThatOthersReadOrOfOtherAxesStay) {
  const auto gates = [](const std::string& axis) {
    return apply("SliceChannel", var("a"), {{"num_outputs", "2"}, {"axis", axis}}, "gates");
  };
  const Symbol read = gates("1");
  const Symbol product = act(read[0], "sigmoid") * act(read[1], "tanh");
  EXPECT_EQ(count_op(fused(Symbol::group({product, read[0]}), {{"a", {4, 4}}}, false), "SliceChannel"), 1);
  const Symbol rows = gates("0");
  EXPECT_EQ(count_op(fused(act(rows[0], "sigmoid") * act(rows[1], "tanh"), {{"a", {4, 4}}}, false), "SliceChannel"), 1);
}

TEST(MergeProducts, IndependentStepsAreOneProductPerLayer) {
  const Graph graph = fused(testing::Unrolled{.layers = 2, .steps = 6}, true);
  EXPECT_EQ(count_op(graph, "FullyConnected"), 2);
  EXPECT_EQ(count_op(graph, "_FullyConnected_Transposed"), 2 * 6) << "from state to state";
  // By layer: the weights' gradients, those of the input's steps together, and of the state's steps but the first.
  EXPECT_EQ(count_op(graph, "dot"), 2 * (2 + 1 + 5));
  EXPECT_EQ(count_op(graph, "sum"), 2 * 2) << "biases";
}

TEST(MergeProducts, ManyRowsAreSeveralProducts) {
  const Graph graph = fused(testing::Unrolled{.layers = 1, .steps = 10, .batch = 100}, false);
  EXPECT_EQ(count_op(graph, "FullyConnected"), 2) << "five steps of a hundred rows each";
  EXPECT_EQ(count_op(fused(testing::Unrolled{.layers = 1, .steps = 10, .batch = 300}, false), "FullyConnected"), 20);
}

TEST(MergeProducts, AMergedProductHasAMegabyteAtMost) {
  const Graph graph = fused(testing::Unrolled{.layers = 1, .steps = 12, .batch = 32, .hidden = 512}, false);
  EXPECT_EQ(count_op(graph, "FullyConnected"), 3) << "256 KiB for each step";
}

TEST(MergeProducts, AFrugalPlanHasNone) {
  for (const Frugality frugality : {Frugality::moderate, Frugality::full}) {
    const Graph graph = fused(testing::Unrolled{.layers = 1, .steps = 6}, false, frugality);
    EXPECT_EQ(count_op(graph, "FullyConnected"), 0);
    EXPECT_EQ(count_op(graph, "_FullyConnected_Transposed"), 2 * 6);
    EXPECT_EQ(count_op(graph, "_pointwise_cell"), 0);
  }
}

TEST(MergeProducts, StepsOfAnArrayAreNotConcatenated) {
  const Graph graph = fused(testing::Unrolled{.sequence = "TNC", .layers = 1, .steps = 6}, false);
  EXPECT_EQ(count_op(graph, "Concat"), 1) << "the output";
  EXPECT_EQ(count_op(fused(testing::Unrolled{.sequence = "list", .layers = 1, .steps = 6}, false), "Concat"), 2);
}

// Tied layers depend on each other: they are merged layer by layer.
TEST(MergeProducts, ProductsThatDependOnEachOtherAreNotMerged) {
  const Graph graph = fused(testing::Unrolled{.layers = 3, .steps = 6, .inputs = 16, .tied = true}, false);
  EXPECT_EQ(count_op(graph, "FullyConnected"), 3);
}

}  // namespace
}  // namespace symbind
