#include <functional>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/pointwise.h"

#include "tests/support/arrays.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::count_op;
using testing::var;

Symbol act(const Symbol& data, const std::string& type, const std::string& name = "") {
  return apply("Activation", data, {{"act_type", type}}, name);
}
Symbol unary(const std::string& op, const Symbol& data, const std::string& name = "") {
  return apply(op, data, {}, name);
}

// Small matrices, for every argument that has no other shape.
NamedShapes shapes_of(const Symbol& symbol, const NamedShapes& given) {
  if (!given.empty()) return given;
  NamedShapes shapes;
  for (const std::string& name : symbol.list_arguments()) shapes[name] = {2, 3};
  return shapes;
}

Graph fused(const Symbol& symbol, const NamedShapes& given = {}, bool train = false, GradReq req = GradReq::write) {
  const NamedShapes shapes = shapes_of(symbol, given);
  Graph graph =
      train ? testing::training_graph(symbol, shapes, {}, req).graph : testing::inference_graph(symbol, shapes);
  place(graph, cpu(), {});
  separate_outputs(graph);
  fuse(graph);
  testing::expect_consistent(graph);
  return graph;
}

// The programs of a graph, in order.
std::vector<std::string> programs(const Graph& graph) {
  std::vector<std::string> texts;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_variable() && node.op().name == "_pointwise")
      texts.push_back(static_cast<const Pointwise*>(node.source->params.get())->program);
  return texts;
}
using Programs = std::vector<std::string>;

// ---- What is fused --------------------------------------------------------------------------------------------------

TEST(FusePointwise, AChainBecomesOneProgramWithTheNameOfItsEnd) {
  const Graph graph = fused(unary("tanh", unary("exp", var("a") * 2.0 + var("b")), "end"));
  EXPECT_EQ(programs(graph), Programs{"mul, add, exp, tanh"});
  EXPECT_EQ(graph.nodes.size(), 3u) << "two variables and a program";
  EXPECT_EQ(graph.nodes.back().source->name, "end");
}

TEST(FusePointwise, ATreeBecomesOneProgram) {
  const Symbol a = var("a"), b = var("b"), c = var("c");
  EXPECT_EQ(programs(fused(act(a * b + unary("sqrt", b) * c, "sigmoid"))), Programs{"mul, sqrt, mul, add, sigmoid"});
}

TEST(FusePointwise, AValueThatTheGroupReadsTwiceIsComputedOnce) {
  const Symbol shared = unary("exp", var("a"));
  const Graph graph = fused(unary("tanh", shared) * shared + shared);
  EXPECT_EQ(programs(graph), Programs{"exp, tanh, mul, add"});
}

TEST(FusePointwise, SumsOfManyAndChoicesGoIn) {
  const Symbol a = var("a"), b = var("b"), c = var("c");
  const Symbol sum = apply("add_n", {a, b, c}, {}, "sum");
  const Symbol leaky = apply("LeakyReLU", sum, {{"act_type", "elu"}}, "leaky");
  EXPECT_EQ(programs(fused(apply("clip", leaky, {{"a_min", "0"}, {"a_max", "1"}}))), Programs{"2 add, elu, clip"});
}

TEST(FusePointwise, GradientsGoIn) {
  const Graph graph = fused(unary("tanh", unary("exp", var("a"))), {{"a", {4}}}, true);
  EXPECT_EQ(programs(graph), (Programs{"tanh', mul"})) << "forward keeps both values for backward";
  const Graph add = fused(unary("tanh", unary("exp", var("a"))), {{"a", {4}}}, true, GradReq::add);
  EXPECT_EQ(programs(add), (Programs{"tanh', mul, add"}));
}

// ---- What is not ----------------------------------------------------------------------------------------------------

TEST(FusePointwise, OneOperatorStaysItself) {
  const Graph graph = fused(unary("tanh", var("a")));
  EXPECT_EQ(programs(graph), Programs{});
  EXPECT_EQ(count_op(graph, "tanh"), 1);
}

TEST(FusePointwise, WhatSomebodyElseReadsIsKept) {
  const Symbol shared = unary("exp", var("a"), "shared");
  EXPECT_EQ(programs(fused(Symbol::group({unary("tanh", shared), shared}))), Programs{}) << "an output";
  const Graph graph =
      fused(unary("tanh", shared) + apply("dot", {shared, var("w")}, {}, "dot"), {{"a", {2, 3}}, {"w", {3, 3}}});
  EXPECT_EQ(programs(graph), Programs{"tanh, add"}) << "a matrix product";
  EXPECT_EQ(count_op(graph, "exp"), 1);
}

TEST(FusePointwise, BroadcastsReductionsAndViewsAreBorders) {
  const Symbol a = var("a");
  const Symbol wide = apply("broadcast_add", {unary("exp", a), var("row")}, {}, "wide");
  EXPECT_EQ(programs(fused(unary("tanh", wide), {{"a", {2, 3}}, {"row", {1, 3}}})), Programs{});
  EXPECT_EQ(programs(fused(unary("tanh", apply("Reshape", unary("exp", a), {{"shape", "(-1,)"}})))), Programs{});
  EXPECT_EQ(programs(fused(unary("tanh", unary("BlockGrad", unary("exp", a))))), Programs{});
  EXPECT_EQ(programs(fused(unary("exp", unary("zeros_like", a)))), Programs{}) << "reads a shape alone";
}

TEST(FusePointwise, TypesThatAreComputedInAnotherAreBorders) {
  const Symbol half = apply("Cast", var("a"), {{"dtype", "float16"}}, "half");
  EXPECT_EQ(programs(fused(unary("tanh", unary("exp", half)))), Programs{});
  const Symbol whole = apply("Cast", var("a"), {{"dtype", "int32"}}, "whole");
  EXPECT_EQ(programs(fused(unary("square", unary("negative", whole)))), Programs{"negative, square"});
}

TEST(FusePointwise, ArraysThatSomebodyUpdatesAreReadInTheirTurn) {
  const Symbol mean = var("mean");
  const Symbol read = unary("exp", mean, "read");
  const Symbol norm = apply("BatchNorm", {var("x"), var("gamma"), var("beta"), mean, var("var")}, {}, "norm");
  const Symbol flat = apply("sum", norm, {{"axis", "(0, 2, 3)"}}, "flat");
  const Graph graph = fused(unary("tanh", read * flat), {{"x", {2, 3, 4, 4}}});
  EXPECT_EQ(programs(graph), Programs{"mul, tanh"});
  EXPECT_LT(testing::find_node(graph, "read"), testing::find_node(graph, "norm"));
}

TEST(FusePointwise, ForwardAndBackwardDoNotMix) {
  const Graph graph = fused(unary("square", var("a") + var("b")), {}, true);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].is_variable() || graph.nodes[i].op().name != "_pointwise") continue;
    EXPECT_GE(i, graph.forward_nodes);
  }
  EXPECT_EQ(count_op(graph, "square"), 1);
}

TEST(FusePointwise, ProgramsHaveAtMostEightInputs) {
  Symbol sum = var("x0");
  NamedShapes shapes{{"x0", {3}}};
  for (int i = 1; i < 20; ++i) {
    sum = sum + var(join("x", i));
    shapes[join("x", i)] = {3};
  }
  const Graph graph = fused(sum, shapes);
  EXPECT_EQ(programs(graph), (Programs{"5 add", "7 add", "7 add"}));
  EXPECT_EQ(count_op(graph, "elemwise_add"), 0);
}

TEST(FusePointwise, ProgramsHaveAtMostThirtyTwoInstructions) {
  Symbol chain = var("a");
  for (int i = 0; i < 40; ++i) chain = unary("negative", chain);
  EXPECT_EQ(programs(fused(chain)), (Programs{"8 negative", "32 negative"}));
}

TEST(FusePointwise, DevicesAreBorders) {
  const Symbol first = unary("exp", var("a"), "first");
  first.entries()[0].node->attributes["__ctx_group__"] = "left";
  Graph graph = testing::inference_graph(unary("tanh", unary("negative", first)), {{"a", {2, 3}}});
  place(graph, cpu(), {{"left", cpu(1)}});
  fuse(graph);
  testing::expect_consistent(graph);
  EXPECT_EQ(programs(graph), Programs{"negative, tanh"});
}

TEST(FusePointwise, AProgramCannotBeWrittenByHand) {
  EXPECT_TRUE(testing::fails_with(
      [] {
        apply("_pointwise", {var("a")}, {{"program", "exp"}});
      },
      "_pointwise", "internal"));
}

// ---- Fused equals unfused -------------------------------------------------------------------------------------------

// Two layers of LSTM cells over a few steps, from operators.
Symbol lstm(int64_t hidden, int steps) {
  const Symbol inputs =
      apply("SliceChannel", var("data"), {{"num_outputs", join(steps)}, {"axis", "1"}, {"squeeze_axis", "1"}}, "steps");
  std::vector<Symbol> sequence;
  for (int t = 0; t < steps; ++t) sequence.push_back(inputs[t]);
  for (const std::string layer : {"l0_", "l1_"}) {
    const std::string size = join(4 * hidden);
    Symbol h = var(layer + "h"), c = var(layer + "c");
    std::map<std::string, Symbol> parameters;
    for (const std::string name : {"i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias"})
      parameters.emplace(name, var(layer + name));
    for (int t = 0; t < steps; ++t) {
      const auto affine = [&](const Symbol& x, const std::string& name) {
        return apply("FullyConnected", {x, parameters.at(name + "_weight"), parameters.at(name + "_bias")},
                     {{"num_hidden", size}}, join(layer, "t", t, name));
      };
      const Symbol gates = affine(sequence[t], "i2h") + affine(h, "h2h");
      const Symbol parts = apply("SliceChannel", gates, {{"num_outputs", "4"}}, join(layer, "t", t, "slice"));
      c = act(parts[1], "sigmoid") * c + act(parts[0], "sigmoid") * act(parts[2], "tanh");
      h = act(parts[3], "sigmoid") * act(c, "tanh");
      sequence[t] = h;
    }
  }
  return apply("Concat", sequence, {{"dim", "1"}}, "out");
}

struct Chain {
  std::string name;
  std::function<Symbol(const Symbol&, const Symbol&)> make;
};

std::vector<Chain> chains() {
  return {
      {"add_relu", [](const Symbol& a, const Symbol& b) { return act(a + b, "relu"); }},
      {"scalars", [](const Symbol& a, const Symbol& b) { return 1.0 / (3.0 + (a * 2.0 - 1.0) * (a * 2.0 - 1.0)) + b; }},
      {"shared",
       [](const Symbol& a, const Symbol& b) {
         const Symbol s = act(a * b, "softrelu");
         return s * unary("tanh", s) - s / (b + 3.0);
       }},
      {"outputs",
       [](const Symbol& a, const Symbol& b) {
         const Symbol s = unary("exp", a * b);
         return Symbol::group({unary("tanh", s + 1.0), s * s, unary("sin", a - b)});
       }},
      {"choices",
       [](const Symbol& a, const Symbol& b) {
         const Symbol larger = apply("_maximum", {a, b * 0.5});
         const Symbol leaky = apply("LeakyReLU", larger, {{"act_type", "elu"}});
         return apply("clip", apply("add_n", {leaky, a, b, a}), {{"a_min", "-0.5"}, {"a_max", "0.75"}});
       }},
      {"powers",
       [](const Symbol& a, const Symbol& b) {
         return apply("_power_scalar", a + b, {{"scalar", "2"}}) + apply("_power_scalar", a + 2.0, {{"scalar", "1.5"}});
       }},
  };
}

// To the bit, unless a GPU's compiler contracts a product and a sum that were two kernels, or the network has matrix
// products that fusing changes.
struct Expected {
  std::string grad_req;
  bool exact = true;
};
void expect_same(const NDArray& with, const NDArray& without, bool exact, const std::string& what) {
  EXPECT_TRUE(exact && !with.context().is_gpu() ? testing::same_bits(with, without)
                                                : testing::all_close(with, without, {1e-5, 1e-5}))
      << what;
}

void expect_fused_equals_unfused(const testing::Network& network, const Expected& expected, Context context) {
  const std::string& grad_req = expected.grad_req;
  auto with = testing::bind_with_values(network, context, {.grad_req = grad_req});
  auto without = testing::bind_with_values(network, context, {.grad_req = grad_req, .options = {.fuse = false}});
  for (Executor* executor : {with.get(), without.get()}) {
    std::vector<NDArray> heads;
    for (const NDArray& output : executor->forward(true))
      heads.push_back(testing::random_array(output.shape(), 5, -1, 1, output.dtype(), context));
    for (size_t i = 0; i < executor->grad_arrays().size(); ++i)
      testing::random_array(executor->grad_arrays()[i].shape(), i).copyto(executor->grad_arrays()[i]);
    executor->backward(heads);
  }
  EXPECT_NE(with->debug_str().find(context.is_gpu() ? "nvrtc" : "blocks"), std::string::npos)
      << network.name << " has no program at all on " << context;
  for (size_t i = 0; i < with->outputs().size(); ++i)
    expect_same(with->outputs()[i], without->outputs()[i], expected.exact, join(network.name, " output ", i));
  for (size_t i = 0; i < with->grad_arrays().size(); ++i)
    expect_same(with->grad_arrays()[i], without->grad_arrays()[i], expected.exact, join(network.name, " gradient ", i));
  expect_same(with->forward(false)[0], without->forward(false)[0], expected.exact, network.name + " in inference");
}

TEST(FusePointwise, LstmCellsGiveTheSameNumbers) {
  const testing::Network network{"lstm", lstm(6, 4), {{"data", {3, 4, 5}}, {"l0_h", {3, 6}}, {"l1_h", {3, 6}}}, 0};
  for (const Context context : testing::all_devices())
    for (const std::string grad_req : {"write", "add"})
      expect_fused_equals_unfused(network, {grad_req, false}, context);
}

TEST(FusePointwise, ChainsGiveTheSameNumbers) {
  for (const Context context : testing::all_devices())
    // One block, several with a rest, and enough for several threads.
    for (const Shape& shape : {Shape{3, 5}, Shape{7, 401}, Shape{130, 1031}})
      for (const Chain& chain : chains())
        for (const std::string grad_req : {"write", "add"})
          expect_fused_equals_unfused({chain.name, chain.make(var("a"), var("b")), {{"a", shape}, {"b", shape}}, 0},
                                      {grad_req}, context);
}

TEST(FusePointwise, PlansSayWhatAProgramDoes) {
  const auto executor = simple_bind(act(var("a") * 2.0 + var("b"), "sigmoid", "gate"), cpu(), {{"a", {2, 3}}});
  EXPECT_NE(executor->debug_str().find("mul, add, sigmoid"), std::string::npos) << executor->debug_str();
}

}  // namespace
}  // namespace symbind
