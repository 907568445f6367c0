// The plan is checked by running it in thought: every byte remembers which tensor wrote it last, and every read must
// find the tensor it wants. That is brute force, and knows nothing of lifetimes.
#include "symbind/passes/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "symbind/graph/builder.h"
#include "symbind/passes/target.h"

#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fc;
using testing::relu;
using testing::var;

size_t at(int number) { return static_cast<size_t>(number); }

struct Planned {
  Graph graph;
  std::vector<int> outside;
  MemoryPlan plan;
};

Planned plan(Graph graph, const GradientPorts* ports, bool share) {
  place(graph, cpu(), {});
  // The ports are numbers of nodes, which no pass between here and there changes in these networks.
  const size_t nodes = graph.nodes.size();
  separate_outputs(graph);
  const bool same_numbers = graph.nodes.size() == nodes;
  select(graph);
  build_kernels(graph);
  Planned planned{std::move(graph), {}, {}};
  planned.outside = testing::outside_arrays(planned.graph, same_numbers ? ports : nullptr);
  planned.plan = plan_memory(planned.graph, planned.outside, share);
  return planned;
}

Planned plan_training(const Symbol& symbol, const NamedShapes& shapes, bool share, GradReq req = GradReq::write) {
  auto training = testing::training_graph(symbol, shapes, {}, req);
  return plan(std::move(training.graph), &training.ports, share);
}

// Memory in pieces of 64 bytes, each with the tensor that wrote it last.
class Memory {
 public:
  static constexpr size_t piece = 64;

  void write(const Place& place, size_t bytes, int owner) {
    auto& pieces = owners_[{place.kind, place.index}];
    const size_t begin = place.offset / piece, end = (place.offset + bytes + piece - 1) / piece;
    if (pieces.size() < end) pieces.resize(end, -1);
    std::fill(pieces.begin() + static_cast<ptrdiff_t>(begin), pieces.begin() + static_cast<ptrdiff_t>(end), owner);
  }
  bool holds(const Place& place, size_t bytes, int owner) const {
    const auto found = owners_.find({place.kind, place.index});
    const size_t begin = place.offset / piece, end = (place.offset + bytes + piece - 1) / piece;
    if (begin == end) return true;
    if (found == owners_.end() || found->second.size() < end) return false;
    return std::all_of(found->second.begin() + static_cast<ptrdiff_t>(begin),
                       found->second.begin() + static_cast<ptrdiff_t>(end), [&](int each) { return each == owner; });
  }

 private:
  std::map<std::pair<Place::Kind, int>, std::vector<int>> owners_;
};

bool overlap(const Place& a, size_t a_bytes, const Place& b, size_t b_bytes) {
  return a.kind == b.kind && a.kind != Place::Kind::nowhere && a.index == b.index && a_bytes > 0 && b_bytes > 0 &&
         a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
}

void expect_right(const Planned& planned) {
  const Graph& graph = planned.graph;
  const MemoryPlan& plan = planned.plan;
  std::vector<int> shown(graph.tensors.size());  // a view shows another tensor's bytes
  std::iota(shown.begin(), shown.end(), 0);
  Memory memory;
  const auto bytes = [&](int tensor) { return graph.tensors[at(tensor)].bytes(); };

  for (const GraphNode& node : graph.nodes)
    if (node.is_variable())
      memory.write(plan.tensors[at(node.first_output)], bytes(node.first_output), node.first_output);

  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.is_variable()) continue;
    const std::string& name = node.source->name;
    if (plan.skip[i]) {
      ASSERT_TRUE(node.op().view) << name << " is skipped but is no view";
      shown[at(node.first_output)] = shown[at(node.inputs[0])];
      EXPECT_TRUE(
          memory.holds(plan.tensors[at(node.first_output)], bytes(node.first_output), shown[at(node.first_output)]))
          << name << " shows memory that holds something else";
      continue;
    }
    const Place& scratch = plan.scratch[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (Graph::is_shape_only(node, k)) continue;
      const int input = node.inputs[k];
      const Place& from = plan.tensors[at(input)];
      EXPECT_TRUE(memory.holds(from, bytes(input), shown[at(input)])) << name << " reads input " << k << " too late";
      EXPECT_FALSE(overlap(scratch, node.kernel->scratch_bytes, from, bytes(input)))
          << name << ": scratch on input " << k;
      for (int out = 0; out < node.outputs; ++out) {
        const int output = node.first_output + out;
        if (!overlap(plan.tensors[at(output)], bytes(output), from, bytes(input))) continue;
        const auto& allowed = node.kernel->in_place;
        EXPECT_NE(std::find(allowed.begin(), allowed.end(), std::pair(static_cast<int>(k), out)), allowed.end())
            << name << " writes output " << out << " onto input " << k;
        EXPECT_EQ(plan.tensors[at(output)].offset, from.offset) << name << " is in place, but shifted";
      }
    }
    for (int out = 0; out < node.outputs; ++out) {
      const int output = node.first_output + out;
      ASSERT_NE(plan.tensors[at(output)].kind, Place::Kind::nowhere) << name << " has nowhere to write";
      EXPECT_FALSE(overlap(scratch, node.kernel->scratch_bytes, plan.tensors[at(output)], bytes(output)))
          << name << ": scratch on output " << out;
      for (int other = 0; other < out; ++other)
        EXPECT_FALSE(overlap(plan.tensors[at(output)], bytes(output), plan.tensors[at(node.first_output + other)],
                             bytes(node.first_output + other)))
            << name << ": two outputs in one place";
      memory.write(plan.tensors[at(output)], bytes(output), output);
      shown[at(output)] = output;
    }
    if (scratch.kind != Place::Kind::nowhere) memory.write(scratch, node.kernel->scratch_bytes, -2);
  }
  for (const int output : graph.outputs) {
    EXPECT_EQ(plan.tensors[at(output)].kind, Place::Kind::outside);
    EXPECT_TRUE(memory.holds(plan.tensors[at(output)], bytes(output), shown[at(output)])) << "an output is lost";
  }
  // What an arena was said to need is enough, and places are aligned.
  for (size_t t = 0; t < plan.tensors.size(); ++t) {
    const Place& place = plan.tensors[t];
    if (place.kind != Place::Kind::arena) continue;
    EXPECT_EQ(place.offset % 64, 0u);
    EXPECT_LE(place.offset + graph.tensors[t].bytes(), plan.arena_bytes[at(place.index)]);
  }
}

size_t total(const MemoryPlan& plan) {
  return std::accumulate(plan.arena_bytes.begin(), plan.arena_bytes.end(), size_t{0});
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
  EXPECT_LE(total(planned.plan), 2 * 64 * 16 * sizeof(float) + 4096);
}

TEST(PlanMemory, ViewsAreNoWork) {
  Symbol net = fc(var("x"), 16, "fc");
  net = apply("Reshape", net, {{"shape", "(16, -1)"}}, "reshaped");
  net = apply("Flatten", net, {}, "flat");
  net = apply("exp", net);
  const auto planned = plan(testing::inference_graph(net, {{"x", {64, 16}}}), nullptr, true);
  expect_right(planned);
  EXPECT_TRUE(planned.plan.skip[at(testing::find_node(planned.graph, "reshaped"))]);
}

TEST(PlanMemory, AViewOfAnArgumentNeverLetsItBeOverwritten) {
  const Symbol x = var("x");
  const Symbol net = apply("exp", apply("Flatten", x)) + apply("Flatten", x);
  expect_right(plan_training(net, {{"x", {4, 2, 3}}}, true));
  expect_right(plan(testing::inference_graph(net, {{"x", {4, 2, 3}}}), nullptr, true));
}

TEST(PlanMemory, AddedGradientsAreUpdatedWhereTheyAre) {
  const auto planned = plan_training(fc(var("x"), 2, "fc"), {{"x", {3, 4}}}, true, GradReq::add);
  for (size_t i = planned.graph.net_outputs; i < planned.graph.outputs.size(); ++i)
    EXPECT_EQ(planned.plan.tensors[at(planned.graph.outputs[i])].kind, Place::Kind::outside);
}

// Random networks of everything that shares memory: in place, views, several users, several outputs.
Symbol random_network(uint32_t seed) {
  std::mt19937 engine(seed);
  const auto pick = [&](size_t count) { return static_cast<size_t>(engine() % count); };
  std::vector<Symbol> values{var("a"), var("b")};
  const int nodes = 5 + static_cast<int>(engine() % 25);
  for (int i = 0; i < nodes; ++i) {
    const Symbol x = values[pick(values.size())], y = values[pick(values.size())];
    switch (engine() % 9) {
      case 0:
        values.push_back(apply("negative", x));
        break;
      case 1:
        values.push_back(apply("tanh", x));
        break;
      case 2:
        values.push_back(relu(x, ""));
        break;
      case 3:
        values.push_back(x + y);
        break;
      case 4:
        values.push_back(x * y);
        break;
      case 5:
        values.push_back(apply("Reshape", apply("Reshape", x, {{"shape", "(-1,)"}}), {{"shape", "(4, 6)"}}));
        break;
      case 6:
        values.push_back(apply("transpose", apply("Reshape", x, {{"shape", "(6, 4)"}})));
        break;
      case 7:
        values.push_back(fc(x, 6, "fc" + std::to_string(i)));
        break;
      case 8:
        values.push_back(apply("Dropout", x, {{"p", "0.5"}}));
        break;
    }
  }
  std::vector<Symbol> outputs{values.back()};
  for (size_t extra = pick(3); extra > 0; --extra) outputs.push_back(values[pick(values.size())]);
  return Symbol::group(outputs);
}

TEST(PlanMemory, IsRightForRandomNetworks) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Symbol net = random_network(seed);
    NamedShapes shapes;
    for (const std::string& name : net.list_arguments())
      if (name == "a" || name == "b") shapes[name] = {4, 6};
    for (const bool share : {true, false}) {
      expect_right(plan_training(net, shapes, share));
      expect_right(plan(testing::inference_graph(net, shapes), nullptr, share));
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace symbind
