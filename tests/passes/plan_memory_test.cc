// The plan is checked by simulating it: for every few bytes of memory the test stores which part of which tensor was
// written there last, and every read must find its own tensor. It does not use lifetimes.
#include "symbind/passes/plan_memory.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "symbind/graph/builder.h"
#include "symbind/passes/target.h"

#include "examples/support/networks.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fc;
using testing::var;

struct Planned {
  Graph graph;
  PerTensor<int> outside;
  MemoryPlan plan;
};

Planned plan(Graph graph, const GradientPorts* ports, bool share) {
  place(graph, cpu(), {});
  // The ports are ids of nodes, which no pass between here and there changes in these networks.
  const size_t nodes = graph.nodes.size();
  separate_outputs(graph);
  const bool same_ids = graph.nodes.size() == nodes;
  select(graph);
  build_kernels(graph);
  Planned planned{std::move(graph), {}, {}};
  planned.outside = testing::outside_arrays(planned.graph, same_ids ? ports : nullptr);
  planned.plan = plan_memory(planned.graph, planned.outside, share);
  return planned;
}

Planned plan_training(const Symbol& symbol, const NamedShapes& shapes, bool share, GradReq req = GradReq::write) {
  auto training = testing::training_graph(symbol, shapes, {}, req);
  return plan(std::move(training.graph), &training.ports, share);
}

// What a tensor holds, or memory: for every 64 bytes the tensor that wrote them, and which of its 64 bytes they are.
using Content = std::vector<std::pair<int, size_t>>;
constexpr size_t grain = 64;
size_t grains(size_t bytes) { return (bytes + grain - 1) / grain; }

Content written_by(int tensor, size_t bytes) {
  Content content;
  for (size_t i = 0; i < grains(bytes); ++i) content.emplace_back(tensor, i);
  return content;
}

class Memory {
 public:
  void write(const Location& location, const Content& content) {
    Content& now = content_[{location.kind, location.index}];
    const size_t begin = location.offset / grain;
    if (now.size() < begin + content.size()) now.resize(begin + content.size(), {-1, 0});
    std::copy(content.begin(), content.end(), now.begin() + static_cast<ptrdiff_t>(begin));
  }
  bool holds(const Location& location, const Content& content) const {
    const auto found = content_.find({location.kind, location.index});
    const size_t begin = location.offset / grain;
    if (content.empty()) return true;
    if (found == content_.end() || found->second.size() < begin + content.size()) return false;
    return std::equal(content.begin(), content.end(), found->second.begin() + static_cast<ptrdiff_t>(begin));
  }

 private:
  std::map<std::pair<Location::Kind, int>, Content> content_;
};

// What the outputs of a node that does nothing are said to hold.
std::vector<Content> shown_by(const Graph& graph, const GraphNode& node, const PerTensor<Content>& content) {
  if (node.op().view) return {content[node.inputs[0]]};
  std::vector<Shape> inputs, outputs;
  for (const TensorId input : node.inputs) inputs.push_back(graph.tensor(input).shape);
  for (int k = 0; k < node.outputs; ++k) outputs.push_back(graph.tensor(node.first_output + k).shape);
  const size_t element = size_of(graph.tensor(node.first_output).dtype);
  std::vector<Content> shown(static_cast<size_t>(node.outputs));
  if (node.op().pieces_of_input) {
    const auto begins = node.op().pieces_of_input(node.source->params.get(), inputs, outputs);
    for (size_t k = 0; k < begins.size(); ++k) {
      const Content& whole = content[node.inputs[0]];
      const auto begin = whole.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(begins[k]) * element / grain);
      shown[k].assign(begin, begin + static_cast<ptrdiff_t>(grains(static_cast<size_t>(outputs[k].size()) * element)));
    }
  } else {
    const auto begins = node.op().pieces_of_output(node.source->params.get(), inputs, outputs);
    shown[0].resize(grains(static_cast<size_t>(outputs[0].size()) * element));
    for (size_t k = 0; k < begins.size(); ++k) {
      const Content& part = content[node.inputs[k]];
      std::copy(part.begin(), part.end(),
                shown[0].begin() + static_cast<ptrdiff_t>(static_cast<size_t>(begins[k]) * element / grain));
    }
  }
  return shown;
}

bool overlap(const Location& a, size_t a_bytes, const Location& b, size_t b_bytes) {
  return a.kind == b.kind && a.kind != Location::Kind::nowhere && a.index == b.index && a_bytes > 0 && b_bytes > 0 &&
         a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
}

void expect_right(const Planned& planned) {
  const Graph& graph = planned.graph;
  const MemoryPlan& plan = planned.plan;
  PerTensor<Content> content(graph.tensors.size());
  Memory memory;
  const auto bytes = [&](TensorId tensor) { return graph.tensor(tensor).bytes(); };
  const auto write = [&](TensorId tensor) {
    content[tensor] = written_by(static_cast<int>(tensor), bytes(tensor));
    memory.write(plan.tensors[tensor], content[tensor]);
  };
  const auto update = [&](TensorId tensor, NodeId node) {  // what it held is gone, from every view of it too
    content[tensor] = written_by(-3 - static_cast<int>(node), bytes(tensor));
    memory.write(plan.tensors[tensor], content[tensor]);
  };

  for (const GraphNode& node : graph.nodes)
    if (node.is_variable()) write(node.first_output);

  for (const GraphNode& node : graph.nodes) {
    if (node.is_variable()) continue;
    const std::string& name = node.source->name;
    if (plan.skip[node.id]) {
      ASSERT_TRUE(node.op().view || node.op().pieces_of_input || node.op().pieces_of_output)
          << name << " is skipped but is no view";
      const std::vector<Content> shown = shown_by(graph, node, content);
      for (int k = 0; k < node.outputs; ++k) {
        const TensorId output = node.first_output + k;
        content[output] = shown[static_cast<size_t>(k)];
        EXPECT_TRUE(memory.holds(plan.tensors[output], content[output]))
            << name << " shows memory that holds something else";
      }
      continue;
    }
    const std::vector<bool> updated = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
    const Location& scratch = plan.scratch[node.id];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (shape_only_inputs(node)[k]) continue;
      const TensorId input = node.inputs[k];
      const Location& from = plan.tensors[input];
      EXPECT_TRUE(memory.holds(from, content[input])) << name << " reads input " << k << " too late";
      EXPECT_FALSE(overlap(scratch, node.kernel->scratch_bytes, from, bytes(input)))
          << name << ": scratch on input " << k;
      for (int out = 0; out < node.outputs; ++out) {
        const TensorId output = node.first_output + out;
        if (!overlap(plan.tensors[output], bytes(output), from, bytes(input))) continue;
        const auto& allowed = node.kernel->in_place;
        EXPECT_NE(std::find(allowed.begin(), allowed.end(), std::pair(static_cast<int>(k), out)), allowed.end())
            << name << " writes output " << out << " onto input " << k;
        EXPECT_EQ(plan.tensors[output].offset, from.offset) << name << " is in place, but shifted";
      }
    }
    for (int out = 0; out < node.outputs; ++out) {
      const TensorId output = node.first_output + out;
      ASSERT_NE(plan.tensors[output].kind, Location::Kind::nowhere) << name << " has nowhere to write";
      EXPECT_FALSE(overlap(scratch, node.kernel->scratch_bytes, plan.tensors[output], bytes(output)))
          << name << ": scratch on output " << out;
      for (int other = 0; other < out; ++other)
        EXPECT_FALSE(overlap(plan.tensors[output], bytes(output), plan.tensors[node.first_output + other],
                             bytes(node.first_output + other)))
            << name << ": two outputs overlap";
      write(output);
    }
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (updated[k]) update(node.inputs[k], node.id);
    if (scratch.kind != Location::Kind::nowhere) memory.write(scratch, written_by(-2, node.kernel->scratch_bytes));
  }
  for (const TensorId output : graph.outputs) {
    EXPECT_EQ(plan.tensors[output].kind, Location::Kind::outside);
    EXPECT_TRUE(memory.holds(plan.tensors[output], content[output])) << "an output is lost";
  }
  // What an arena was said to need is enough, and offsets are aligned.
  for (size_t t = 0; t < plan.tensors.size(); ++t) {
    const Location& location = plan.tensors[TensorId{static_cast<int32_t>(t)}];
    if (location.kind != Location::Kind::arena) continue;
    EXPECT_EQ(location.offset % 64, 0u);
    EXPECT_LE(location.offset + graph.tensors[t].bytes(), plan.arena_bytes[static_cast<size_t>(location.index)]);
  }
}

size_t total(const MemoryPlan& plan) { return plan.total_bytes(); }

bool is_skipped(const Planned& planned, const std::string& name) {
  return planned.plan.skip[testing::find_node(planned.graph, name)];
}

TEST(PlanMemory, NeverOverwritesWhatIsStillRead) {
  for (const auto& network : testing::all_networks()) {
    for (const bool share : {true, false}) {
      SCOPED_TRACE(network.name + (share ? " shared" : " not shared"));
      expect_right(plan_training(network.symbol, network.inputs, share));
      expect_right(plan(testing::inference_graph(network.symbol, network.inputs), nullptr, share));
    }
  }
}

TEST(PlanMemory, SharingNeedsFewerBytes) {
  for (const auto& network : testing::all_networks()) {
    const auto shared = plan_training(network.symbol, network.inputs, true);
    const auto apart = plan_training(network.symbol, network.inputs, false);
    EXPECT_LT(total(shared.plan), total(apart.plan)) << network.name;
    EXPECT_LE(total(shared.plan), shared.plan.unshared_bytes) << network.name;
    EXPECT_EQ(total(apart.plan), apart.plan.unshared_bytes) << network.name;
  }
}

TEST(PlanMemory, AChainNeedsTwoBuffersAtMostHoweverLong) {
  const NamedShapes shapes{{"x", {64, 16}}};
  Symbol net = var("x");
  for (int i = 0; i < 50; ++i) net = fc(net, 16, "fc" + std::to_string(i));
  const auto planned = plan(testing::inference_graph(net, shapes), nullptr, true);
  expect_right(planned);
  size_t scratch = 0;
  for (const GraphNode& node : planned.graph.nodes)
    if (node.kernel) scratch = std::max(scratch, node.kernel->scratch_bytes);
  EXPECT_LE(total(planned.plan), 2 * 64 * 16 * sizeof(float) + scratch + 64);
}

TEST(PlanMemory, ElementwiseChainsWorkInPlace) {
  Symbol net = fc(var("x"), 16, "fc");
  for (int i = 0; i < 20; ++i) net = apply("exp", apply("negative", net));
  const auto planned = plan(testing::inference_graph(net, {{"x", {64, 16}}}), nullptr, true);
  expect_right(planned);
  int in_place = 0;
  for (const GraphNode& node : planned.graph.nodes) {
    if (node.is_variable() || node.op().name == "FullyConnected") continue;
    const Location &from = planned.plan.tensors[node.inputs[0]], &to = planned.plan.tensors[node.first_output];
    in_place += from.kind == Location::Kind::arena && to.kind == from.kind && to.offset == from.offset;
  }
  EXPECT_EQ(in_place, 39) << "all but the last, whose result is the user's";
}

TEST(PlanMemory, ViewsAreNoWork) {
  Symbol net = fc(var("x"), 16, "fc");
  net = apply("Reshape", net, {{"shape", "(16, -1)"}}, "reshaped");
  net = apply("Flatten", net, {}, "flat");
  net = apply("exp", net);
  const auto planned = plan(testing::inference_graph(net, {{"x", {64, 16}}}), nullptr, true);
  expect_right(planned);
  EXPECT_TRUE(planned.plan.skip[testing::find_node(planned.graph, "reshaped")]);
}

TEST(PlanMemory, AViewOfAnArgumentNeverLetsItBeOverwritten) {
  const Symbol x = var("x");
  const Symbol net = apply("exp", apply("Flatten", x)) + apply("Flatten", x);
  expect_right(plan_training(net, {{"x", {4, 2, 3}}}, true));
  expect_right(plan(testing::inference_graph(net, {{"x", {4, 2, 3}}}), nullptr, true));
}

// BatchNorm updates its moving mean; who looked at it before reads the old one, however late.
TEST(PlanMemory, AViewOfAStateThatIsUpdatedIsACopy) {
  const Symbol mean = var("mean"), view = apply("Reshape", mean, {{"shape", "(1, 16)"}}, "view");
  Inputs inputs(std::vector<Symbol>{var("x")});
  inputs.add("moving_mean", mean);
  const Symbol net = apply("broadcast_add", {view, apply("BatchNorm", inputs, {}, "bn")}, {}, "sum");
  const auto planned = plan_training(net, {{"x", {4, 16}}}, true);
  expect_right(planned);
  EXPECT_FALSE(is_skipped(planned, "view"));
}

TEST(PlanMemory, AddedGradientsAreUpdatedWhereTheyAre) {
  const auto planned = plan_training(fc(var("x"), 2, "fc"), {{"x", {3, 4}}}, true, GradReq::add);
  for (size_t i = planned.graph.net_outputs; i < planned.graph.outputs.size(); ++i)
    EXPECT_EQ(planned.plan.tensors[planned.graph.outputs[i]].kind, Location::Kind::outside);
}

// ---- Pieces ---------------------------------------------------------------------------------------------------------

Symbol slice_rows(const Symbol& data, int begin, int end, const std::string& name) {
  return apply("slice_axis", data, {{"axis", "0"}, {"begin", std::to_string(begin)}, {"end", std::to_string(end)}},
               name);
}

TEST(PlanMemory, SlicesOfTheFirstAxisAreNoWork) {
  const Symbol x = fc(var("x"), 16, "fc");
  Symbol net =
      apply("exp", slice_rows(x, 0, 2, "rows")) + apply("slice", x, {{"begin", "(2,)"}, {"end", "(4,)"}}, "rest");
  const auto planned = plan(testing::inference_graph(net, {{"x", {4, 8}}}), nullptr, true);
  expect_right(planned);
  EXPECT_TRUE(is_skipped(planned, "rows"));
  EXPECT_TRUE(is_skipped(planned, "rest"));
  expect_right(plan_training(net, {{"x", {4, 8}}}, true));
}

TEST(PlanMemory, SlicesOfAnArgumentAreNoWork) {
  const Symbol net = apply("exp", slice_rows(var("x"), 1, 3, "rows"));
  const auto planned = plan(testing::inference_graph(net, {{"x", {4, 16}}}), nullptr, true);
  expect_right(planned);
  EXPECT_TRUE(is_skipped(planned, "rows"));
  const Location& location =
      planned.plan.tensors[planned.graph.node(testing::find_node(planned.graph, "rows")).first_output];
  EXPECT_EQ(location.kind, Location::Kind::outside);
  EXPECT_EQ(location.offset, 64u);
}

TEST(PlanMemory, SlicesThatAreNotOnePieceAreCopied) {
  const Symbol x = fc(var("x"), 16, "fc");
  const Symbol columns = apply("slice_axis", x, {{"axis", "1"}, {"begin", "0"}, {"end", "8"}}, "columns");
  const Symbol steps = apply("slice", x, {{"begin", "(0,)"}, {"end", "(4,)"}, {"step", "(2,)"}}, "steps");
  const Symbol backwards =
      apply("slice", x, {{"begin", "(None,)"}, {"end", "(None,)"}, {"step", "(-1,)"}}, "backwards");
  const Symbol net = Symbol::group({apply("exp", columns), apply("exp", steps), apply("exp", backwards)});
  const auto planned = plan(testing::inference_graph(net, {{"x", {4, 8}}}), nullptr, true);
  expect_right(planned);
  for (const char* name : {"columns", "steps", "backwards"}) EXPECT_FALSE(is_skipped(planned, name)) << name;
}

TEST(PlanMemory, ASmallSliceDoesNotHoldALargeArray) {
  const Symbol large = fc(var("x"), 1024, "large");
  const Symbol small = slice_rows(large, 0, 1, "small");
  Symbol net = fc(apply("exp", large), 1024, "on");
  net = fc(net, 1024, "on2");
  net = apply("broadcast_add", {net, small}, {}, "sum");
  const auto planned = plan(testing::inference_graph(net, {{"x", {64, 8}}}), nullptr, true);
  expect_right(planned);
  EXPECT_FALSE(is_skipped(planned, "small"));
}

TEST(PlanMemory, PartsAreComputedInsideOfWhatTheyAreJoinedTo) {
  const auto part = [](int i) { return apply("exp", fc(var("x"), 16, "fc" + std::to_string(i))); };
  Symbol joined = apply("Concat", {part(0), part(1), part(2)}, {{"dim", "0"}, {"num_args", "3"}}, "joined");
  const Symbol net = fc(joined, 4, "head");
  const auto planned = plan(testing::inference_graph(net, {{"x", {32, 8}}}), nullptr, true);
  expect_right(planned);
  EXPECT_TRUE(is_skipped(planned, "joined"));
  expect_right(plan_training(net, {{"x", {32, 8}}}, true));
}

TEST(PlanMemory, PartsOfABatchOfOneAreJoinedAlongTheChannels) {
  const Symbol x = var("x");
  const Symbol joined = apply("Concat", {apply("exp", x), apply("negative", x)}, {{"num_args", "2"}}, "joined");
  const Symbol net = apply("tanh", joined);
  const auto planned = plan(testing::inference_graph(net, {{"x", {1, 3, 8, 8}}}), nullptr, true);
  expect_right(planned);
  EXPECT_TRUE(is_skipped(planned, "joined"));
  const auto batch = plan(testing::inference_graph(net, {{"x", {2, 3, 8, 8}}}), nullptr, true);
  expect_right(batch);
  EXPECT_FALSE(is_skipped(batch, "joined"));
}

TEST(PlanMemory, PartsThatCannotBeWrittenIntoTheWholeAreCopied) {
  const Symbol x = var("x"), y = apply("exp", x);
  const auto joined = [](const std::vector<Symbol>& parts) {
    return apply("tanh", apply("Concat", parts, {{"dim", "0"}, {"num_args", std::to_string(parts.size())}}, "joined"));
  };
  const NamedShapes shapes{{"x", {4, 16}}};
  for (const Symbol& net : {joined({y, y}), joined({y, x}), joined({slice_rows(y, 1, 3, "rows"), apply("tanh", x)})}) {
    const auto planned = plan(testing::inference_graph(net, shapes), nullptr, true);
    expect_right(planned);
    EXPECT_FALSE(is_skipped(planned, "joined"));
  }
  // Pieces that begin anywhere but at a multiple of 64 bytes.
  const auto odd = plan(testing::inference_graph(joined({y, apply("tanh", x)}), {{"x", {4, 3}}}), nullptr, true);
  expect_right(odd);
  EXPECT_FALSE(is_skipped(odd, "joined"));
}

TEST(PlanMemory, PartsOfAnOutputAreComputedInTheUsersArray) {
  const Symbol x = var("x");
  const Symbol net = apply("Concat", {apply("exp", x), apply("tanh", x)}, {{"dim", "0"}, {"num_args", "2"}}, "joined");
  const auto planned = plan(testing::inference_graph(net, {{"x", {4, 16}}}), nullptr, true);
  expect_right(planned);
  EXPECT_TRUE(is_skipped(planned, "joined"));
  EXPECT_EQ(total(planned.plan), 0u);
}

// ---- How much -------------------------------------------------------------------------------------------------------

void expect_tight(const Planned& planned, const std::string& name) {
  EXPECT_GE(total(planned.plan), planned.plan.lower_bound) << name;
  EXPECT_LE(static_cast<double>(total(planned.plan)), 1.03 * static_cast<double>(planned.plan.lower_bound)) << name;
}

// An LSTM cell, unrolled.
Symbol lstm(int steps) {
  const Symbol weight = var("weight"), input_weight = var("input_weight"), bias = var("bias"),
               input_bias = var("input_bias");
  const Symbol sequence =
      apply("SliceChannel", var("x"), {{"num_outputs", std::to_string(steps)}, {"axis", "0"}, {"squeeze_axis", "1"}});
  Symbol state = var("state"), cell = var("cell");
  std::vector<Symbol> outputs;
  for (int i = 0; i < steps; ++i) {
    const Attributes size{{"num_hidden", "512"}};
    const Symbol sum = apply("FullyConnected", {sequence[static_cast<size_t>(i)], input_weight, input_bias}, size) +
                       apply("FullyConnected", {state, weight, bias}, size);
    const Symbol gates = apply("SliceChannel", sum, {{"num_outputs", "4"}});
    const auto sigmoid = [&](size_t k) { return apply("Activation", gates[k], {{"act_type", "sigmoid"}}); };
    cell = sigmoid(0) * cell + sigmoid(1) * apply("Activation", gates[2], {{"act_type", "tanh"}});
    state = sigmoid(3) * apply("Activation", cell, {{"act_type", "tanh"}});
    outputs.push_back(state);
  }
  return apply("Concat", outputs, {{"dim", "0"}, {"num_args", std::to_string(steps)}}, "states");
}

TEST(PlanMemory, NeedsHardlyMoreThanIsAliveAtOnce) {
  const NamedShapes images{{"data", {32, 3, 224, 224}}}, digits{{"data", {64, 1, 28, 28}}};
  const struct {
    std::string name;
    Symbol symbol;
    NamedShapes shapes;
  } cases[] = {{"lenet", networks::lenet(), digits},
               {"resnet18", networks::resnet({.depth = 18}), images},
               {"resnet50", networks::resnet({.depth = 50}), images},
               {"lstm", lstm(20), {{"x", {20, 32, 100}}, {"state", {32, 128}}, {"cell", {32, 128}}}}};
  for (const auto& [name, symbol, shapes] : cases) {
    expect_tight(plan_training(symbol, shapes, true), name + " in training");
    expect_tight(plan(testing::inference_graph(symbol, shapes), nullptr, true), name + " in inference");
  }
}

TEST(PlanMemory, IsRightForRandomNetworks) {
  size_t needed = 0, bound = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const int64_t columns = seed % 3 == 0 ? 6 : 16;  // rows of any length, or of 64 bytes
    const Symbol net = testing::random_network(seed, columns);
    NamedShapes shapes;
    for (const std::string& name : net.list_arguments())
      if (name == "a" || name == "b") shapes[name] = {4, columns};
    for (const bool share : {true, false}) {
      const auto training = plan_training(net, shapes, share);
      expect_right(training);
      needed += total(training.plan);
      bound += training.plan.lower_bound;
      expect_right(plan(testing::inference_graph(net, shapes), nullptr, share));
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_LE(static_cast<double>(needed), 1.02 * static_cast<double>(bound));
}

}  // namespace
}  // namespace symbind
