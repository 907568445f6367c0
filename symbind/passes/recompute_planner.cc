// The memory of a choice is estimated by walking through its schedule; the exact number is known only when kernels have
// been chosen.
#include "symbind/passes/recompute_planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "symbind/graph/attributes.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

// ---- Nodes ----------------------------------------------------------------------------------------------------------

// Returns the same values when it runs again, and has no side effects.
bool may_recompute(const GraphNode& node) {
  if (node.is_variable() || node.op().keeps_state || node.op().synchronized) return false;
  if (node.op().recomputed_by) return true;
  const std::vector<bool> updated = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
  return std::find(updated.begin(), updated.end(), true) == updated.end();
}

// Takes about as long as reading and writing its arrays.
bool is_cheap(const OpDef& op) { return op.elementwise || op.view || op.memory_bound; }
// Can its result overwrite its first input?
bool is_in_place(const OpDef& op) { return op.elementwise || op.in_place; }

std::optional<Recomputation> recomputation_of(const GraphNode& node) {
  if (!node.op().recomputed_by) return std::nullopt;
  return node.op().recomputed_by(node.source->params.get());
}

// What a node that is recomputed reads.
std::vector<TensorId> recompute_inputs(const GraphNode& node) {
  const std::optional<Recomputation> form = recomputation_of(node);
  if (!form) return node.inputs;
  std::vector<TensorId> tensors;
  for (const int input : form->inputs) tensors.push_back(node.inputs[static_cast<size_t>(input)]);
  for (const int output : form->outputs) tensors.push_back(node.first_output + output);
  return tensors;
}
int recompute_outputs(const GraphNode& node) {
  const std::optional<Recomputation> form = recomputation_of(node);
  return form ? static_cast<int>(form->op->output_count(form->params.get())) : node.outputs;
}

NodePtr recompute_source(const GraphNode& node, int time) {
  auto source = std::make_shared<Node>();
  source->op = node.source->op;
  source->params = node.source->params;
  source->name = node.source->name + (time == 0 ? "_recompute" : "_recompute2");
  if (const std::string* group = find_attribute(node.source->attributes, "__ctx_group__"))
    source->attributes["__ctx_group__"] = *group;
  if (const std::optional<Recomputation> form = recomputation_of(node)) {
    source->op = form->op;
    source->params = form->params;
  }
  return source;
}

// In units of the time to move four bytes, taken for that of eight multiply-adds.
double cost_of(const Graph& graph, const GraphNode& node) {
  double moved = 0;
  for (const TensorId input : node.inputs) moved += static_cast<double>(graph.tensor(input).bytes()) / 4;
  const auto made = static_cast<double>(graph.tensor(node.first_output).shape.size());
  return moved + made + multiply_adds(graph, node) / 8;
}

}  // namespace

RecomputePlanner::RecomputePlanner(const Graph& given) : graph(given) {
  for (GraphNode& node : graph.nodes)
    if (!node.is_variable() && node.random_slot < 0 && node.op().is_random(node.source->params.get(), graph.is_train))
      node.random_slot = graph.random_slots++;
  for (const GraphNode& node : graph.nodes) shape_only.push_back(shape_only_inputs(node));
  for (const GraphNode& node : graph.forward_part()) {
    const bool by_another = !node.is_variable() && node.op().recomputed_by;
    recompute_shape_only.push_back(by_another ? std::vector<bool>(recompute_inputs(node).size(), false)
                                              : shape_only[node.id]);
    recomputable.push_back(may_recompute(node));
    cost.push_back(node.is_variable() ? 0 : cost_of(graph, node));
  }
  find_saved();
  find_short_lived();
  find_crossing();
}

void RecomputePlanner::find_saved() {
  is_outside.assign(graph.tensors.size(), false);
  is_output.assign(graph.tensors.size(), false);
  is_saved.assign(graph.tensors.size(), false);
  for (const GraphNode& node : graph.nodes)
    if (node.is_variable()) is_outside[node.first_output] = true;
  for (const TensorId output : graph.outputs) is_outside[output] = is_output[output] = true;
  for (const GraphNode& node : graph.backward_part())
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const GraphNode& maker = graph.producer(node.inputs[k]);
      if (!shape_only[node.id][k] && !graph.is_backward(maker.id) && !maker.is_variable())
        is_saved[node.inputs[k]] = true;
    }
  for (const GraphNode& node : graph.forward_part()) {
    size_t sum = 0;
    for (int k = 0; k < (node.is_variable() ? 0 : recompute_outputs(node)); ++k)
      if (is_saved[node.first_output + k]) sum += bytes(node.first_output + k);
    saved_bytes.push_back(sum);
  }
}

// The bytes that are saved for a node's cost, rounded to a quarter of a power of two, and then its bytes: of nodes that
// are about as worthwhile the largest come first.
std::pair<int, size_t> RecomputePlanner::saved_for_cost(NodeId node) const {
  const auto saved = static_cast<double>(saved_bytes[node]);
  return {static_cast<int>(std::lround(4 * std::log2(saved / std::max(cost[node], 1.0)))), saved_bytes[node]};
}

size_t RecomputePlanner::bytes(TensorId tensor) const { return is_outside[tensor] ? 0 : graph.tensor(tensor).bytes(); }

// Recomputing a saved tensor from another saved tensor that is not stored either would only require that one again: of
// a chain of such tensors every second one is stored. So are tensors smaller than the arrays they are computed from.
void RecomputePlanner::find_short_lived() {
  short_lived.assign(graph.forward_nodes, false);
  PerNode<bool> on_dropped(graph.forward_nodes, false);  // does it depend on a saved tensor that is not stored?
  for (const GraphNode& node : graph.forward_part()) {
    if (!recomputable[node.id] || !is_cheap(node.op())) continue;
    const bool has_saved = saved_bytes[node.id] > 0;
    bool possible = true, below = false;
    const std::vector<TensorId> inputs = recompute_inputs(node);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const TensorId input = inputs[k];
      const NodeId maker = graph.producer_id(input);
      if (maker == node.id || recompute_shape_only[node.id][k]) continue;
      if (graph.node(maker).is_variable() || is_output[input]) continue;
      if (short_lived[maker]) {
        below = below || on_dropped[maker];
        possible = possible && bytes(input) <= graph.tensor(node.first_output).bytes();
      } else {
        possible = possible && is_saved[input];
      }
    }
    if (!possible || (has_saved && below)) continue;
    short_lived[node.id] = true;
    on_dropped[node.id] = below || has_saved;
    if (has_saved) short_lived_saved.push_back(node.id);
  }
  std::stable_sort(short_lived_saved.begin(), short_lived_saved.end(),
                   [&](NodeId a, NodeId b) { return saved_for_cost(a) > saved_for_cost(b); });
}

void RecomputePlanner::find_crossing() {
  PerNode<int64_t> change(graph.forward_nodes, 0);
  PerTensor<NodeId> last(graph.tensors.size(), NodeId::none);
  for (const GraphNode& node : graph.forward_part())
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (!shape_only[node.id][k]) last[node.inputs[k]] = node.id;
  for (const GraphNode& node : graph.forward_part())
    for (int k = 0; k < node.outputs; ++k) {
      const TensorId output = node.first_output + k;
      if (last[output] == NodeId::none) continue;
      change[node.id] += static_cast<int64_t>(bytes(output));
      change[last[output]] -= static_cast<int64_t>(bytes(output));
    }
  int64_t now = 0;
  for (const int64_t step : change) crossing.push_back(static_cast<size_t>(now += step));
}

// ---- From a choice to nodes -----------------------------------------------------------------------------------------

namespace {

class Scheduler {
 public:
  Scheduler(const RecomputePlanner& all, const RecomputeChoice& choice);
  RecomputeSchedule run();

 private:
  // A node may be recomputed twice, distinguished by `time`: 0 to recompute others, 1 for backward itself.
  struct Demand {
    NodeId node;
    int time;
  };
  bool is_recomputed(TensorId tensor) const;
  size_t time_of(NodeId maker, int time) const;
  void add_step(const GraphNode& node, int time, const std::vector<TensorId>& inputs,
                const std::vector<bool>& shape_only, int outputs);
  void recompute_for(const GraphNode& reader);
  void ask(TensorId tensor, int time);

  const RecomputePlanner& all_;
  const Graph& graph_;
  const RecomputeChoice& choice_;
  static constexpr size_t not_yet = static_cast<size_t>(-1), about_to_be = static_cast<size_t>(-2);
  std::array<PerNode<size_t>, 2> made_;  // by time: the first value, or one of these two
  std::vector<Demand> open_, found_;
  RecomputeSchedule schedule_;
};

}  // namespace

RecomputeSchedule RecomputePlanner::schedule(const RecomputeChoice& choice) const {
  return Scheduler(*this, choice).run();
}

namespace {

Scheduler::Scheduler(const RecomputePlanner& all, const RecomputeChoice& choice)
    : all_(all), graph_(all.graph), choice_(choice) {
  for (auto& times : made_) times.assign(graph_.forward_nodes, not_yet);
  for (const GraphNode& node : graph_.nodes)
    for (int k = 0; k < node.outputs; ++k) schedule_.tensor_of.push_back(node.first_output + k);
}

RecomputeSchedule Scheduler::run() {
  const std::vector<bool> none;
  for (const GraphNode& node : graph_.nodes) {
    const bool is_backward = graph_.is_backward(node.id);
    if (is_backward) recompute_for(node);
    add_step(node, -1, node.inputs, is_backward ? all_.shape_only[node.id] : none, node.outputs);
  }
  return std::move(schedule_);
}

// Must backward read a recomputed copy instead of the tensor that forward computed?
bool Scheduler::is_recomputed(TensorId tensor) const {
  const GraphNode& node = graph_.producer(tensor);
  if (graph_.is_backward(node.id) || !choice_.recomputed[node.id] || all_.is_output[tensor]) return false;
  return tensor - node.first_output < recompute_outputs(node);  // BatchNorm's statistics are stored
}

size_t Scheduler::time_of(NodeId maker, int time) const { return choice_.short_lived[maker] && time == 1 ? 1 : 0; }

void Scheduler::ask(TensorId tensor, int time) {
  if (!is_recomputed(tensor)) return;
  const NodeId maker = graph_.producer_id(tensor);
  const size_t when = time_of(maker, time);
  size_t& made = made_[when][maker];
  if (made != not_yet) return;
  made = about_to_be;
  const Demand demand{maker, static_cast<int>(when)};
  open_.push_back(demand);
  found_.push_back(demand);
}

void Scheduler::recompute_for(const GraphNode& reader) {
  found_.clear();
  for (size_t k = 0; k < reader.inputs.size(); ++k)
    if (!all_.shape_only[reader.id][k]) ask(reader.inputs[k], 1);
  while (!open_.empty()) {
    const Demand demand = open_.back();
    open_.pop_back();
    const GraphNode& node = graph_.node(demand.node);
    const std::vector<TensorId> inputs = recompute_inputs(node);
    for (size_t k = 0; k < inputs.size(); ++k)
      if (!all_.recompute_shape_only[demand.node][k])
        ask(inputs[k], choice_.short_lived[demand.node] ? demand.time : 0);
  }
  std::sort(found_.begin(), found_.end(),
            [](const Demand& a, const Demand& b) { return std::pair(a.node, a.time) < std::pair(b.node, b.time); });
  for (const Demand& demand : found_) {
    const GraphNode& node = graph_.node(demand.node);
    add_step(node, demand.time, recompute_inputs(node), all_.recompute_shape_only[demand.node],
             recompute_outputs(node));
    ++schedule_.recomputed;
    schedule_.cost += all_.cost[demand.node];
  }
}

// `shape_only` is empty for forward nodes, which read the tensors of the graph.
void Scheduler::add_step(const GraphNode& node, int time, const std::vector<TensorId>& inputs,
                         const std::vector<bool>& shape_only, int outputs) {
  const int side = time < 0 ? 1 : choice_.short_lived[node.id] ? time : 0;
  const size_t first_input = schedule_.inputs.size();
  for (size_t k = 0; k < inputs.size(); ++k) {
    size_t value = index_of(inputs[k]);
    if (!shape_only.empty() && !shape_only[k] && is_recomputed(inputs[k])) {
      const GraphNode& maker = graph_.producer(inputs[k]);
      value = made_[time_of(maker.id, side)][maker.id] + static_cast<size_t>(inputs[k] - maker.first_output);
    }
    schedule_.inputs.push_back(value);
  }
  size_t first_value = index_of(node.first_output);
  if (time >= 0) {
    first_value = schedule_.tensor_of.size();
    for (int k = 0; k < outputs; ++k) schedule_.tensor_of.push_back(node.first_output + k);
    made_[static_cast<size_t>(time)][node.id] = first_value;
  }
  schedule_.steps.push_back({node.id, time, first_input, first_value});
}

// Tracks the live bytes through a schedule. Views need no memory, and operators that may run in place do so.
class Walk {
 public:
  Walk(const RecomputePlanner& all, const RecomputeSchedule& schedule)
      : all_(all), schedule_(schedule), last_(schedule.tensor_of.size(), -1), store_(schedule.tensor_of.size(), -1) {
    for (size_t s = 0; s < schedule_.steps.size(); ++s)
      each_input(s, [&](size_t value) { last_[value] = static_cast<int>(s); });
  }

  size_t most() {
    for (size_t s = 0; s < schedule_.steps.size(); ++s) {
      const RecomputeSchedule::Step& step = schedule_.steps[s];
      const GraphNode& node = all_.graph.node(step.node);
      const auto outputs = static_cast<size_t>(step.time < 0 ? node.outputs : recompute_outputs(node));
      for (size_t k = 0; k < outputs; ++k) begin(step.first_value + k, k == 0 ? shared_store(s, node) : -1);
      most_ = std::max(most_, now_);
      for (size_t k = 0; k < outputs; ++k)
        if (last_[step.first_value + k] < 0) end(step.first_value + k);
      each_input(s, [&](size_t value) {
        if (last_[value] == static_cast<int>(s)) end(value);
      });
    }
    return most_;
  }

 private:
  template <class Visit>
  void each_input(size_t s, Visit visit) const {
    const RecomputeSchedule::Step& step = schedule_.steps[s];
    const std::vector<bool>& only = step.time < 0 ? all_.shape_only[step.node] : all_.recompute_shape_only[step.node];
    for (size_t k = 0; k < only.size(); ++k)
      if (!only[k]) visit(schedule_.inputs[step.first_input + k]);
  }

  size_t bytes(size_t value) const {
    const bool is_copy = value >= all_.graph.tensors.size();
    const TensorId tensor = schedule_.tensor_of[value];
    return is_copy ? all_.graph.tensor(tensor).bytes() : all_.bytes(tensor);
  }

  // The store of an input that the first output takes over, or -1.
  int shared_store(size_t s, const GraphNode& node) const {
    if (node.is_variable()) return -1;
    const bool in_place = is_in_place(node.op());
    if (!node.op().view && !in_place) return -1;
    int found = -1;
    each_input(s, [&](size_t value) {
      const int store = store_[value];
      if (found >= 0 || store < 0 || bytes(value) != bytes(schedule_.steps[s].first_value)) return;
      const bool dies = last_[value] == static_cast<int>(s) && users_[static_cast<size_t>(store)] == 1;
      if (node.op().view || dies) found = store;
    });
    return found;
  }

  void begin(size_t value, int store) {
    if (bytes(value) == 0) return;
    if (store < 0) {
      store = static_cast<int>(users_.size());
      users_.push_back(0);
      size_.push_back(bytes(value));
      now_ += bytes(value);
    }
    store_[value] = store;
    ++users_[static_cast<size_t>(store)];
  }
  void end(size_t value) {
    const int store = store_[value];
    if (store < 0) return;
    store_[value] = -1;  // an input may be listed twice
    if (--users_[static_cast<size_t>(store)] == 0) now_ -= size_[static_cast<size_t>(store)];
  }

  const RecomputePlanner& all_;
  const RecomputeSchedule& schedule_;
  std::vector<int> last_;   // by value: the step that reads it last, -1: none
  std::vector<int> store_;  // by value: where it is
  std::vector<int> users_;  // by store: values alive in it
  std::vector<size_t> size_;
  size_t now_ = 0, most_ = 0;
};

}  // namespace

size_t RecomputePlanner::bytes_of(const RecomputeSchedule& schedule) const { return Walk(*this, schedule).most(); }

Graph RecomputePlanner::make(const RecomputeSchedule& planned) const {
  Rewriter rewriter(graph);
  std::vector<TensorId> now(planned.tensor_of.size(), TensorId::none);  // by value
  for (const RecomputeSchedule::Step& step : planned.steps) {
    const GraphNode& node = graph.node(step.node);
    if (step.time < 0 && index_of(step.node) == graph.forward_nodes) rewriter.end_of_forward();
    const size_t count = step.time < 0 ? node.inputs.size() : recompute_inputs(node).size();
    std::vector<TensorId> inputs;
    for (size_t k = 0; k < count; ++k) inputs.push_back(now[planned.inputs[step.first_input + k]]);
    if (step.time < 0) {
      const GraphNode& copy = rewriter.replace(node, node.source, std::move(inputs));
      for (int k = 0; k < node.outputs; ++k) now[step.first_value + static_cast<size_t>(k)] = copy.first_output + k;
      continue;
    }
    Graph& made = rewriter.graph();
    GraphNode& copy = made.append(recompute_source(node, step.time), std::move(inputs));
    copy.context = node.context;
    copy.random_slot = node.random_slot;
    for (int k = 0; k < copy.outputs; ++k) {
      made.tensor(copy.first_output + k) = graph.tensor(node.first_output + k);
      now[step.first_value + static_cast<size_t>(k)] = copy.first_output + k;
    }
  }
  if (!graph.has_backward()) rewriter.end_of_forward();
  return rewriter.finish();
}

}  // namespace symbind
