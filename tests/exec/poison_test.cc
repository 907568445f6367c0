// Poisoned memory: what is poisoned is dead, all that is dead is poisoned, and a kernel that reads it is seen.
#include "symbind/exec/poison.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/custom.h"
#include "symbind/passes/target.h"

#include "tests/support/arrays.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

struct Planned {
  Graph graph;
  MemoryPlan memory;
};

Planned planned(const testing::Network& network, bool train, bool share) {
  Graph graph = train ? testing::training_graph(network.symbol, network.inputs).graph
                      : testing::inference_graph(network.symbol, network.inputs);
  place(graph, cpu(), {});
  separate_outputs(graph);
  fuse(graph);
  select(graph);
  layout(graph);
  build_kernels(graph);
  MemoryPlan memory = plan_memory(graph, testing::outside_arrays(graph), share);
  return {std::move(graph), std::move(memory)};
}

// Runs a plan in thought: every byte of the arena either holds something or is poison.
class Arena {
 public:
  explicit Arena(const Planned& planned) : planned_(planned) {
    for (const size_t bytes : planned.memory.arena_bytes) holds_.emplace_back(bytes, false);
  }
  void mark(const ArenaRange& range, bool holds) {
    auto& bytes = holds_[static_cast<size_t>(range.arena)];
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(range.begin),
              bytes.begin() + static_cast<std::ptrdiff_t>(range.end), holds);
  }
  void write(TensorId tensor) {
    each_range(tensor, [&](const ArenaRange& range) { mark(range, true); });
  }
  bool is_whole(TensorId tensor) const {
    bool whole = true;
    each_range(tensor, [&](const ArenaRange& range) {
      for (size_t i = range.begin; i < range.end; ++i) whole &= holds_[static_cast<size_t>(range.arena)][i];
    });
    return whole;
  }
  size_t held_bytes() const {
    size_t sum = 0;
    for (const auto& bytes : holds_) sum += static_cast<size_t>(std::count(bytes.begin(), bytes.end(), true));
    return sum;
  }

 private:
  template <class Function>
  void each_range(TensorId tensor, Function&& function) const {
    const Location& location = planned_.memory.tensors[tensor];
    const size_t bytes = planned_.graph.tensor(tensor).bytes();
    if (location.kind == Location::Kind::arena)
      function(ArenaRange{location.index, location.offset, location.offset + bytes});
  }

  const Planned& planned_;
  std::vector<std::vector<bool>> holds_;
};

void run_in_thought(const Planned& planned) {
  const Poison poison(planned.graph, planned.memory);
  Arena arena(planned);
  for (const GraphNode& node : planned.graph.nodes) {
    if (node.is_variable()) continue;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (!shape_only_inputs(node)[k]) {
        EXPECT_TRUE(arena.is_whole(node.inputs[k])) << node.source->name << " reads poison as input " << k;
      }
    }
    if (planned.memory.skip[node.id]) continue;
    for (const ArenaRange& range : poison.before(node.id)) arena.mark(range, true);
    for (int k = 0; k < node.outputs; ++k) arena.write(node.first_output + k);
    for (const ArenaRange& range : poison.after(node.id)) arena.mark(range, false);
  }
  EXPECT_EQ(arena.held_bytes(), 0u) << "of the arena are never poisoned";
}

TEST(Poison, CoversWhatIsDeadAndNothingElse) {
  for (const testing::Network& network : testing::networks_for_plans())
    if (!network.name.starts_with("resnet50"))
      for (const bool train : {false, true})
        for (const bool share : {false, true}) {
          SCOPED_TRACE(join(network.name, train ? " in training" : "", share ? "" : ", memory apart"));
          run_in_thought(planned(network, train, share));
        }
}

TEST(Poison, RefusesAPlanThatReachesBeyondItsArena) {
  Planned small = planned(testing::lenet(), false, true);
  small.memory.arena_bytes[0] /= 2;
  EXPECT_TRUE(testing::fails_with([&] { Poison(small.graph, small.memory); }, "beyond its arena"));
}

// An operator with a mistake: it adds to what it finds in its output.
class AddsToItsOutput : public CustomOp {
 public:
  void forward(bool, const std::vector<OpReq>&, const std::vector<NDArray>& in, const std::vector<NDArray>& out,
               const std::vector<NDArray>&) override {
    const auto x = in[0].to_vector<float>();
    auto y = out[0].to_vector<float>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = y[i] * 0 + x[i];
    out[0].copy_from(y);
  }
};
class AddsToItsOutputProp : public CustomOpProp {
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<AddsToItsOutput>();
  }
};

TEST(Poison, ShowsAKernelThatReadsUninitialisedMemory) {
  register_custom_op("adds_to_its_output", [](const Attributes&) { return std::make_shared<AddsToItsOutputProp>(); });
  const Symbol net = 2 * custom(testing::var("x") * 3, {.op_type = "adds_to_its_output"}) + 1;
  for (const bool share : {true, false}) {
    auto executor = bind(net, cpu(), {{"x", array({1, 2})}},
                         {.grad_req = "null", .options = {.share_memory = share, .poison = true}});
    for (const double value : executor->forward()[0].to_vector<double>()) EXPECT_TRUE(std::isnan(value)) << value;
  }
}

TEST(Poison, ShowsAResultThatIsOnlyAddedTo) {
  register_custom_op("adds_to_its_output", [](const Attributes&) { return std::make_shared<AddsToItsOutputProp>(); });
  auto executor = bind(custom(testing::var("x"), {.op_type = "adds_to_its_output"}), cpu(), {{"x", array({1, 2})}},
                       {.grad_req = "null", .options = {.poison = true}});
  for (const double value : executor->forward()[0].to_vector<double>()) EXPECT_TRUE(std::isnan(value)) << value;
}

TEST(Poison, LeavesAloneWhatIsAddedTo) {
  const auto network = testing::added_gradients_net();
  auto poisoned = testing::bind_with_values(network, cpu(), {.grad_req = "add", .options = {.poison = true}});
  auto usual = testing::bind_with_values(network, cpu(), {.grad_req = "add"});
  for (auto* executor : {&poisoned, &usual})
    for (int step = 0; step < 3; ++step) {
      (*executor)->forward(true);
      (*executor)->backward();
    }
  for (const auto& [name, gradient] : usual->grad_dict())
    EXPECT_TRUE(testing::same_bits(poisoned->grad_dict().at(name), gradient)) << name;
}

TEST(Poison, IsNotSeenThroughAMonitor) {
  const auto network = testing::reused_operand_net();
  auto executor = testing::bind_with_values(network, cpu(), {.options = {.poison = true}});
  std::set<std::string> poisoned;
  executor->set_monitor_callback(
      [&](const std::string& name, const NDArray& array) {
        for (const double value : array.to_vector<double>())
          if (std::isnan(value)) poisoned.insert(name);
      },
      /*monitor_all=*/true);
  executor->forward(true);
  executor->backward();
  EXPECT_EQ(comma_separated(std::vector(poisoned.begin(), poisoned.end())), "");
}

}  // namespace
}  // namespace symbind
