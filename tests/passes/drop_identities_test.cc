#include <gtest/gtest.h>

#include "symbind/graph/builder.h"
#include "symbind/ops/amp.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/cast.h"
#include "symbind/passes/passes.h"

#include "tests/support/arrays.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::fc;
using testing::var;

Graph dropped(const Symbol& net, const NamedShapes& shapes) {
  Graph graph = testing::inference_graph(net, shapes);
  place(graph, cpu(), {});
  drop_identities(graph);
  testing::expect_consistent(graph);
  return graph;
}

TEST(DropIdentities, LeavesOutCastsThatChangeNoType) {
  const Symbol x = cast(var("x"), {.dtype = DType::float32});
  const Graph graph = dropped(fc(amp_cast(x, {.dtype = DType::float32}), 3, "fc"), {{"x", {2, 4}}});
  EXPECT_EQ(count_op(graph, "Cast") + count_op(graph, "amp_cast"), 0);
  EXPECT_EQ(graph.producer(graph.node(testing::find_node(graph, "fc")).inputs[0]).source->name, "x");
}

TEST(DropIdentities, KeepsCastsThatChangeATypeOfOneOutput) {
  const Symbol low = cast(var("x"), {.dtype = DType::float16});
  const Symbol both = amp_multicast({low, var("y")}, {.num_outputs = 2});
  const Graph graph = dropped(both[0] + both[1], {{"x", {2, 4}}, {"y", {2, 4}}});
  EXPECT_EQ(count_op(graph, "Cast"), 1);
  EXPECT_EQ(count_op(graph, "amp_multicast"), 1);
}

TEST(DropIdentities, OutputsGoBackToWhatWasCast) {
  const Graph graph = dropped(cast(fc(var("x"), 3, "fc"), {.dtype = DType::float32}), {{"x", {2, 4}}});
  EXPECT_EQ(graph.producer(graph.outputs[0]).source->name, "fc");
}

TEST(DropIdentities, LeavesOutBroadcastsAndSumsThatKeepTheShape) {
  const Symbol x = var("x"), y = var("y");
  for (const Symbol& same : {spread_like(x, y), sum_to_like(x, y)}) {
    const Graph graph = dropped(fc(same, 3, "fc"), {{"x", {2, 4}}, {"y", {2, 4}}});
    EXPECT_EQ(graph.producer(graph.node(testing::find_node(graph, "fc")).inputs[0]).source->name, "x");
  }
  EXPECT_EQ(count_op(dropped(spread_like(x, y), {{"x", {1, 4}}, {"y", {2, 4}}}), "_spread_like"), 1);
  EXPECT_EQ(count_op(dropped(sum_to_like(x, y), {{"x", {2, 4}}, {"y", {2, 1}}}), "_sum_to_like"), 1);
}

// The cast has the mean from before BatchNorm moves it.
TEST(DropIdentities, KeepsCopiesOfStatesThatChange) {
  const Symbol mean = var("norm_moving_mean");
  const Symbol norm =
      batch_norm({{"data", var("x")}, {"moving_mean", mean}, {"moving_var", var("norm_moving_var")}}, {}, "norm");
  const Graph graph = dropped(Symbol::group({norm, cast(mean, {.dtype = DType::float32})}), {{"x", {2, 4}}});
  EXPECT_EQ(count_op(graph, "Cast"), 1);
}

}  // namespace
}  // namespace symbind
