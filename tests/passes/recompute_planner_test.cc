// The numbers that choices are made from, by hand: costs, bytes that are saved or cross a cut, bytes alive at one time.
#include "symbind/passes/recompute_planner.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "symbind/graph/builder.h"

#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fc;
using testing::find_node;
using testing::var;

constexpr size_t row = 4000;  // bytes of a thousand numbers
const NamedShapes a_row{{"x", {1000}}};

RecomputeChoice keep_all(const Graph& graph) {
  return {PerNode<bool>(graph.forward_nodes, false), PerNode<bool>(graph.forward_nodes, false)};
}

size_t bytes_of_inference(const Symbol& symbol) {
  const RecomputePlanner planner(testing::inference_graph(symbol, a_row));
  return planner.bytes_of(planner.schedule(keep_all(planner.graph)));
}

// (4, 8) → (4, 16) → (4, 4).
Graph two_layers() {
  const Symbol net = fc(apply("tanh", fc(var("x"), 16, "fc1"), {}, "tanh"), 4, "fc2");
  return testing::training_graph(net, {{"x", {4, 8}}}).graph;
}

// Each gradient reads the output of its function.
Graph chain() {
  Symbol net = apply("tanh", var("x"), {}, "first");
  for (const char* name : {"second", "third", "fourth"}) net = apply("exp", net, {}, name);
  return testing::training_graph(apply("relu", net, {}, "last"), a_row).graph;
}

std::set<std::string> names_of(const Graph& graph, const PerNode<bool>& chosen) {
  std::set<std::string> names;
  for (const GraphNode& node : graph.forward_part())
    if (chosen[node.id]) names.insert(node.source->name);
  return names;
}

TEST(RecomputePlanner, CountsWhatANodeMovesAndMultiplies) {
  const RecomputePlanner planner(two_layers());
  const auto cost = [&](const char* name) { return planner.cost[find_node(planner.graph, name)]; };
  EXPECT_EQ(cost("x"), 0);
  EXPECT_EQ(cost("fc1"), (32 + 128 + 16) + 64 * (1 + 8 / 8.0));
  EXPECT_EQ(cost("tanh"), 64 + 64);
  EXPECT_EQ(cost("fc2"), (64 + 64 + 4) + 16 * (1 + 16 / 8.0));
  const RecomputePlanner single(testing::training_graph(fc(var("x"), 1, "fc"), {{"x", {4, 8}}}).graph);
  EXPECT_EQ(single.cost[find_node(single.graph, "fc")], (32 + 8 + 1) + 4 * (1 + 8 / 8.0));
}

TEST(RecomputePlanner, KnowsWhatIsSavedAndWhatCrossesACut) {
  const RecomputePlanner planner(two_layers());
  const auto at = [&](const auto& values, const char* name) { return values[find_node(planner.graph, name)]; };
  EXPECT_EQ(at(planner.saved_bytes, "fc1"), 0u);  // the gradients of tanh and fc2 read the result of tanh
  EXPECT_EQ(at(planner.saved_bytes, "tanh"), 256u);
  EXPECT_EQ(at(planner.saved_bytes, "fc2"), 0u);
  EXPECT_EQ(at(planner.crossing, "x"), 0u);
  EXPECT_EQ(at(planner.crossing, "fc1"), 256u);
  EXPECT_EQ(at(planner.crossing, "tanh"), 256u);
  EXPECT_EQ(at(planner.crossing, "fc2_weight"), 256u);
  EXPECT_EQ(at(planner.crossing, "fc2"), 0u);
}

TEST(RecomputePlanner, KeepsEverySecondOfAChainOfCheapNodes) {
  const RecomputePlanner planner(chain());
  EXPECT_EQ(names_of(planner.graph, planner.short_lived), (std::set<std::string>{"first", "third", "last"}));
  EXPECT_EQ(planner.short_lived_saved.size(), 2u);  // the last one is the output
}

TEST(RecomputePlanner, RecomputesWhatARecomputedNodeReads) {
  const RecomputePlanner planner(two_layers());
  RecomputeChoice choice = keep_all(planner.graph);
  const NodeId fc1 = find_node(planner.graph, "fc1"), tanh = find_node(planner.graph, "tanh");
  choice.recomputed[fc1] = choice.recomputed[tanh] = true;
  const RecomputeSchedule schedule = planner.schedule(choice);
  EXPECT_EQ(schedule.recomputed, 2u);
  EXPECT_EQ(schedule.cost, planner.cost[fc1] + planner.cost[tanh]);
  const Graph made = planner.make(schedule);
  testing::expect_consistent(made);
  const GraphNode& again = made.node(find_node(made, "tanh_recompute"));
  EXPECT_EQ(made.producer(again.inputs[0]).source->name, "fc1_recompute");
  EXPECT_TRUE(made.is_backward(again.id));
  for (const GraphNode& node : made.backward_part())
    for (size_t k = 0; k < node.inputs.size(); ++k)
      EXPECT_TRUE(shape_only_inputs(node)[k] || made.producer(node.inputs[k]).source->name != "tanh")
          << node.source->name << " reads what was not kept";
}

TEST(RecomputePlanner, CountsNoBytesForVariablesOutputsAndWhatIsDoneInPlace) {
  EXPECT_EQ(bytes_of_inference(apply("exp", var("x"))), 0u);
  EXPECT_EQ(bytes_of_inference(apply("exp", apply("tanh", apply("sin", var("x"))))), row);
}

TEST(RecomputePlanner, CountsWhatIsReadLaterBesideWhatIsMade) {
  const Symbol shared = apply("exp", var("x"));
  EXPECT_EQ(bytes_of_inference(apply("sin", shared) + apply("cos", shared)), 2 * row);
  EXPECT_EQ(bytes_of_inference(apply("sin", apply("cos", apply("tanh", shared))) + shared), 2 * row);
  EXPECT_EQ(bytes_of_inference(apply("exp", shared + shared)), row);
}

TEST(RecomputePlanner, DropsOutputsThatAreNotRead) {
  const Symbol quarters = apply("SliceChannel", apply("exp", var("x")), {{"num_outputs", "4"}, {"axis", "0"}});
  const auto tiled = [](const Symbol& part) { return apply("exp", apply("tile", part, {{"reps", "(12,)"}})); };
  EXPECT_EQ(bytes_of_inference(tiled(quarters[0])), row / 4 + 3 * row);
  EXPECT_EQ(bytes_of_inference(tiled(quarters[3])), row / 4 + 3 * row);
}

TEST(RecomputePlanner, CountsLessForAChoiceThatKeepsLess) {
  const RecomputePlanner planner(chain());
  const size_t all = planner.bytes_of(planner.schedule(keep_all(planner.graph)));
  EXPECT_GE(all, 5 * row);  // four results and a gradient
  RecomputeChoice choice = keep_all(planner.graph);
  const NodeId third = find_node(planner.graph, "third");
  choice.recomputed[third] = choice.short_lived[third] = true;
  EXPECT_EQ(planner.bytes_of(planner.schedule(choice)), all - row);
}

}  // namespace
}  // namespace symbind
