#include <gtest/gtest.h>

#include "symbind/graph/builder.h"
#include "symbind/passes/infer_graph.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::fc;
using testing::var;
using Dims = std::vector<int64_t>;

TEST(InferShape, GoesForwardsThroughANetwork) {
  const auto lenet = testing::lenet();
  const InferredShapes shapes = infer_shape(lenet.symbol, {{"data", {4, 1, 14, 14}}});
  EXPECT_TRUE(shapes.complete);
  EXPECT_EQ(shapes.outputs[0], (Dims{4, 10}));
  EXPECT_EQ(shapes.args[1], (Dims{6, 1, 3, 3})) << "conv1_weight";
  EXPECT_EQ(shapes.args.back(), (Dims{4})) << "softmax_label";
}

TEST(InferShape, GoesBackwardsFromWhatIsKnownLater) {
  const Symbol net = fc(var("x"), 3, "fc") + var("y");
  const InferredShapes shapes = infer_shape(net, {{"x", {0, 5}}, {"y", {4, 3}}});
  EXPECT_EQ(shapes.args[0], (Dims{4, 5}));
  EXPECT_EQ(shapes.args[1], (Dims{3, 5}));
}

TEST(InferShape, PutsTwoHalvesTogether) {
  const InferredShapes shapes = infer_shape(var("a") * var("b"), {{"a", {2, 0}}, {"b", {0, 3}}});
  EXPECT_EQ(shapes.args, (std::vector<Dims>{{2, 3}, {2, 3}}));
}

TEST(InferShape, SaysWhichArgumentsStayUnknown) {
  EXPECT_TRUE(fails_with([] { infer_shape(fc(var("x"), 3, "fc"), {}); }, "x", "fc_weight"));
}

TEST(InferShape, InPartAnswersWhatItKnows) {
  const InferredShapes shapes = infer_shape_partial(fc(var("x"), 3, "fc"), {{"x", {0, 5}}});
  EXPECT_FALSE(shapes.complete);
  EXPECT_EQ(shapes.args[0], (Dims{0, 5}));
  EXPECT_EQ(shapes.args[1], (Dims{3, 5}));
  EXPECT_EQ(shapes.outputs[0], (Dims{0, 3}));
  EXPECT_EQ(infer_shape_partial(var("x"), {}).args[0], Dims{});
}

TEST(InferShape, ContradictionsNameTheNodeTheArgumentAndBothShapes) {
  const Symbol net = fc(var("data"), 4, "fc7");
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"data", {2, 3}}, {"fc7_weight", {4, 5}}});
      },
      "FullyConnected", "fc7", "weight", "(4,5)", "(2,3)"));
  EXPECT_TRUE(fails_with([&] { infer_shape(var("a") + var("b"), {{"a", {2, 3}}, {"b", {3, 2}}}); }, "(2,3)", "(3,2)"));
}

TEST(InferShape, ReadsWhatVariablesDeclare) {
  const Symbol x = Symbol::variable("x", {.shape = {2, 5}});
  EXPECT_EQ(infer_shape(fc(x, 3, "fc"), {}).outputs[0], (Dims{2, 3}));
  EXPECT_EQ(infer_shape(fc(x, 3, "fc"), {{"x", {4, 6}}}).outputs[0], (Dims{4, 3})) << "what is given counts";
}

TEST(InferShape, OfAnUnknownNameListsTheRightOnes) {
  EXPECT_TRUE(fails_with([] { infer_shape(fc(var("data"), 3, "fc"), {{"dta", {2, 3}}}); }, "dta", "data", "fc_weight"));
}

TEST(InferShape, CountsAVariableUsedTwiceOnce) {
  const Symbol w = var("w");
  const Attributes two{{"num_hidden", "4"}, {"no_bias", "True"}};
  const Symbol net = apply("FullyConnected", {apply("FullyConnected", {var("x"), w}, two), w}, two);
  const InferredShapes shapes = infer_shape(net, {{"x", {2, 4}}});
  EXPECT_EQ(shapes.args.size(), 2u);
  EXPECT_THROW(infer_shape(net, {{"x", {2, 5}}}), Error) << "the second use needs a square weight";
}

TEST(InferType, FlowsInBothDirections) {
  const Symbol net = fc(var("x"), 3, "fc");
  EXPECT_EQ(infer_type(net, {{"x", DType::float64}}).outputs[0], DType::float64);
  EXPECT_EQ(infer_type(net, {{"fc_bias", DType::float16}}).args[0], DType::float16);
  const Symbol typed = fc(Symbol::variable("y", {.dtype = DType::float64}), 2, "fc");
  EXPECT_EQ(infer_type(typed, {}).outputs[0], DType::float64);
}

TEST(InferType, ChangesAtACast) {
  const Symbol net = apply("Cast", var("x"), {{"dtype", "float16"}});
  const InferredTypes types = infer_type(net, {{"x", DType::int32}});
  EXPECT_EQ(types.args[0], DType::int32);
  EXPECT_EQ(types.outputs[0], DType::float16);
}

TEST(InferType, ContradictionsNameBothTypes) {
  EXPECT_TRUE(fails_with(
      [] {
        infer_type(var("a") + var("b"), {{"a", DType::float32}, {"b", DType::float64}});
      },
      "float32", "float64"));
}

TEST(InferType, KeepsStatisticsOfHalfPrecisionInFloat32) {
  const Symbol net = apply("BatchNorm", var("x"), {}, "bn");
  const InferredTypes types = infer_type(net, {{"x", DType::float16}});
  EXPECT_EQ(types.outputs[0], DType::float16);
  for (const DType aux : types.aux) EXPECT_EQ(aux, DType::float32);
}

TEST(Infer, RefusesShapesThatCannotBeCounted) {
  const int64_t huge = int64_t{1} << 40;
  Graph graph = Graph::from(var("x") + 1);
  set_shapes(graph, {{"x", {huge, huge}}});
  EXPECT_TRUE(fails_with([&] { infer(graph); }, "(1099511627776,1099511627776)"));
}

}  // namespace
}  // namespace symbind
