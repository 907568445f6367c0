// What a choice needs is estimated by walking through the nodes it leads to; the exact number is known only when
// kernels have been chosen.
#include "symbind/passes/repetition.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "symbind/graph/attributes.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

size_t at(int number) { return static_cast<size_t>(number); }

// ---- Nodes ----------------------------------------------------------------------------------------------------------

// Gives the same numbers when it runs a second time, and changes nothing.
bool may_repeat(const GraphNode& node) {
  if (node.is_variable() || node.op().keeps_state) return false;
  if (node.op().recomputed_by) return true;
  const std::vector<bool> updated = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
  return std::find(updated.begin(), updated.end(), true) == updated.end();
}

// Takes about as long as reading and writing its arrays.
bool is_cheap(const OpDef& op) { return op.elementwise || op.view || op.memory_bound; }
// Can its result take the place of its first input?
bool is_in_place(const OpDef& op) { return op.elementwise || op.in_place; }

std::optional<Recomputation> other_form(const GraphNode& node) {
  if (!node.op().recomputed_by) return std::nullopt;
  return node.op().recomputed_by(node.source->params.get());
}

// What a node that is computed again reads.
std::vector<int> inputs_again(const GraphNode& node) {
  const std::optional<Recomputation> form = other_form(node);
  if (!form) return node.inputs;
  std::vector<int> tensors;
  for (const int input : form->inputs) tensors.push_back(node.inputs[at(input)]);
  for (const int output : form->outputs) tensors.push_back(node.first_output + output);
  return tensors;
}
int outputs_again(const GraphNode& node) {
  const std::optional<Recomputation> form = other_form(node);
  return form ? static_cast<int>(form->op->output_count(form->params.get())) : node.outputs;
}

NodePtr source_again(const GraphNode& node, int time) {
  auto source = std::make_shared<Node>();
  source->op = node.source->op;
  source->params = node.source->params;
  source->name = node.source->name + (time == 0 ? "_again" : "_again2");
  if (const std::string* group = find_attribute(node.source->attributes, "__ctx_group__"))
    source->attributes["__ctx_group__"] = *group;
  if (const std::optional<Recomputation> form = other_form(node)) {
    source->op = form->op;
    source->params = form->params;
  }
  return source;
}

// In the time it takes to move four bytes: a matrix product or convolution does so many multiplications per element of
// its result.
double cost_of(const Graph& graph, const GraphNode& node) {
  double moved = 0;
  for (const int input : node.inputs) moved += static_cast<double>(graph.tensors[at(input)].bytes()) / 4;
  const auto made = static_cast<double>(graph.tensors[at(node.first_output)].shape.size());
  if (is_cheap(node.op()) || node.inputs.size() < 2) return moved + made;
  const Shape& weight = graph.tensors[at(node.inputs[1])].shape;
  const double row = weight.rank() > 0 && weight[0] > 0 ? static_cast<double>(weight.size() / weight[0]) : 1;
  return moved + made * (1 + row / 8);
}

}  // namespace

Repetition::Repetition(const Graph& given) : graph(given) {
  for (GraphNode& node : graph.nodes)
    if (!node.is_variable() && node.random_slot < 0 && node.op().is_random(node.source->params.get(), graph.is_train))
      node.random_slot = graph.random_slots++;
  for (const GraphNode& node : graph.nodes) shape_only.push_back(shape_only_inputs(node));
  for (size_t i = 0; i < graph.forward_nodes; ++i) {
    repeatable.push_back(may_repeat(graph.nodes[i]));
    cost.push_back(graph.nodes[i].is_variable() ? 0 : cost_of(graph, graph.nodes[i]));
  }
  find_saved();
  find_brief();
  find_crossing();
}

void Repetition::find_saved() {
  is_outside.assign(graph.tensors.size(), false);
  is_output.assign(graph.tensors.size(), false);
  is_saved.assign(graph.tensors.size(), false);
  for (const GraphNode& node : graph.nodes)
    if (node.is_variable()) is_outside[at(node.first_output)] = true;
  for (const int output : graph.outputs) is_outside[at(output)] = is_output[at(output)] = true;
  for (size_t i = graph.forward_nodes; i < graph.nodes.size(); ++i)
    for (size_t k = 0; k < graph.nodes[i].inputs.size(); ++k) {
      const int input = graph.nodes[i].inputs[k], maker = graph.producer[at(input)];
      if (!shape_only[i][k] && is_forward(maker) && !graph.nodes[at(maker)].is_variable()) is_saved[at(input)] = true;
    }
  for (size_t i = 0; i < graph.forward_nodes; ++i) {
    const GraphNode& node = graph.nodes[i];
    size_t sum = 0;
    for (int k = 0; k < (node.is_variable() ? 0 : outputs_again(node)); ++k)
      if (is_saved[at(node.first_output + k)]) sum += bytes(node.first_output + k);
    saved_bytes.push_back(sum);
  }
}

size_t Repetition::bytes(int tensor) const { return is_outside[at(tensor)] ? 0 : graph.tensors[at(tensor)].bytes(); }

// A saved tensor that is made from another saved one that is not kept either would only bring that one back: of a chain
// of such tensors every second one is kept. So is what is smaller than the arrays it is made from.
void Repetition::find_brief() {
  brief.assign(graph.forward_nodes, false);
  std::vector<bool> on_dropped(graph.forward_nodes, false);  // is a saved tensor that is not kept on the way to it?
  for (size_t i = 0; i < graph.forward_nodes; ++i) {
    const GraphNode& node = graph.nodes[i];
    if (!repeatable[i] || !is_cheap(node.op())) continue;
    const bool has_saved = saved_bytes[i] > 0;
    bool possible = true, below = false;
    const std::vector<int> inputs = inputs_again(node);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int input = inputs[k], maker = graph.producer[at(input)];
      if (maker == static_cast<int>(i) || (!node.op().recomputed_by && shape_only[i][k])) continue;
      if (graph.nodes[at(maker)].is_variable() || is_output[at(input)]) continue;
      if (brief[at(maker)]) {
        below = below || on_dropped[at(maker)];
        possible = possible && bytes(input) <= graph.tensors[at(node.first_output)].bytes();
      } else {
        possible = possible && is_saved[at(input)];
      }
    }
    if (!possible || (has_saved && below)) continue;
    brief[i] = true;
    on_dropped[i] = below || has_saved;
    if (has_saved) brief_saved.push_back(static_cast<int>(i));
  }
  std::stable_sort(brief_saved.begin(), brief_saved.end(),
                   [&](int a, int b) { return saved_bytes[at(a)] > saved_bytes[at(b)]; });
}

void Repetition::find_crossing() {
  std::vector<int64_t> change(graph.forward_nodes + 1, 0);
  std::vector<int> last(graph.tensors.size(), -1);
  for (size_t i = 0; i < graph.forward_nodes; ++i)
    for (size_t k = 0; k < graph.nodes[i].inputs.size(); ++k)
      if (!shape_only[i][k]) last[at(graph.nodes[i].inputs[k])] = static_cast<int>(i);
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (last[t] < 0 || !is_forward(graph.producer[t])) continue;
    change[at(graph.producer[t])] += static_cast<int64_t>(bytes(static_cast<int>(t)));
    change[at(last[t])] -= static_cast<int64_t>(bytes(static_cast<int>(t)));
  }
  int64_t now = 0;
  for (size_t i = 0; i < graph.forward_nodes; ++i) crossing.push_back(static_cast<size_t>(now += change[i]));
}

// ---- From a choice to nodes -----------------------------------------------------------------------------------------

namespace {

class Scheduler {
 public:
  Scheduler(const Repetition& all, const RepeatChoice& choice);
  RepeatSchedule run();

 private:
  // Nodes that backward reads twice over are told apart by `time`: 0 on the way to others, 1 for backward itself.
  struct Demand {
    int node, time;
  };
  bool is_again(int tensor) const;
  int time_of(int maker, int time) const;
  void add_step(int node, int time, const std::vector<int>& inputs, const std::vector<bool>& shape_only, int outputs);
  void make_again(const GraphNode& reader, size_t number);
  void ask(int tensor, int time);

  const Repetition& all_;
  const Graph& graph_;
  const RepeatChoice& choice_;
  std::array<std::vector<int>, 2> made_;  // by time and node: the first value, -1: not yet, -2: about to be
  std::vector<Demand> open_, found_;
  RepeatSchedule schedule_;
};

}  // namespace

RepeatSchedule Repetition::schedule(const RepeatChoice& choice) const { return Scheduler(*this, choice).run(); }

namespace {

Scheduler::Scheduler(const Repetition& all, const RepeatChoice& choice)
    : all_(all), graph_(all.graph), choice_(choice) {
  for (auto& times : made_) times.assign(graph_.forward_nodes, -1);
  schedule_.tensor_of.resize(graph_.tensors.size());
  std::iota(schedule_.tensor_of.begin(), schedule_.tensor_of.end(), 0);
}

RepeatSchedule Scheduler::run() {
  const std::vector<bool> none;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    if (i >= graph_.forward_nodes) make_again(node, i);
    add_step(static_cast<int>(i), -1, node.inputs, i >= graph_.forward_nodes ? all_.shape_only[i] : none, node.outputs);
  }
  return std::move(schedule_);
}

// Is the tensor one that backward must not read as forward made it?
bool Scheduler::is_again(int tensor) const {
  const int maker = graph_.producer[at(tensor)];
  if (!all_.is_forward(maker) || !choice_.again[at(maker)] || all_.is_output[at(tensor)]) return false;
  const GraphNode& node = graph_.nodes[at(maker)];
  return tensor - node.first_output < outputs_again(node);  // BatchNorm's statistics are kept
}

int Scheduler::time_of(int maker, int time) const { return choice_.brief[at(maker)] ? time : 0; }

void Scheduler::ask(int tensor, int time) {
  if (!is_again(tensor)) return;
  const int maker = graph_.producer[at(tensor)];
  time = time_of(maker, time);
  int& made = made_[at(time)][at(maker)];
  if (made != -1) return;
  made = -2;
  open_.push_back({maker, time});
  found_.push_back({maker, time});
}

void Scheduler::make_again(const GraphNode& reader, size_t number) {
  found_.clear();
  for (size_t k = 0; k < reader.inputs.size(); ++k)
    if (!all_.shape_only[number][k]) ask(reader.inputs[k], 1);
  while (!open_.empty()) {
    const Demand demand = open_.back();
    open_.pop_back();
    const GraphNode& node = graph_.nodes[at(demand.node)];
    const std::vector<int> inputs = inputs_again(node);
    for (size_t k = 0; k < inputs.size(); ++k)
      if (!all_.shape_only[at(demand.node)][k]) ask(inputs[k], choice_.brief[at(demand.node)] ? demand.time : 0);
  }
  std::sort(found_.begin(), found_.end(),
            [](const Demand& a, const Demand& b) { return std::pair(a.node, a.time) < std::pair(b.node, b.time); });
  for (const Demand& demand : found_) {
    const GraphNode& node = graph_.nodes[at(demand.node)];
    add_step(demand.node, demand.time, inputs_again(node), all_.shape_only[at(demand.node)], outputs_again(node));
    ++schedule_.repeated;
    schedule_.cost += all_.cost[at(demand.node)];
  }
}

// `shape_only` is empty for forward nodes, which read what stands in the graph.
void Scheduler::add_step(int number, int time, const std::vector<int>& inputs, const std::vector<bool>& shape_only,
                         int outputs) {
  const GraphNode& node = graph_.nodes[at(number)];
  const int side = time < 0 ? 1 : choice_.brief[at(number)] ? time : 0;
  const int first_input = static_cast<int>(schedule_.inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    int value = inputs[k];
    if (!shape_only.empty() && !shape_only[k] && is_again(value)) {
      const int maker = graph_.producer[at(value)];
      value = made_[at(time_of(maker, side))][at(maker)] + value - graph_.nodes[at(maker)].first_output;
    }
    schedule_.inputs.push_back(value);
  }
  int first_value = node.first_output;
  if (time >= 0) {
    first_value = static_cast<int>(schedule_.tensor_of.size());
    for (int k = 0; k < outputs; ++k) schedule_.tensor_of.push_back(node.first_output + k);
    made_[at(time)][at(number)] = first_value;
  }
  schedule_.steps.push_back({number, time, first_input, first_value});
}

// Follows the bytes that are alive through a schedule. Views need none, and operators that may work in place do.
class Walk {
 public:
  Walk(const Repetition& all, const RepeatSchedule& schedule)
      : all_(all), schedule_(schedule), last_(schedule.tensor_of.size(), -1), store_(schedule.tensor_of.size(), -1) {
    for (size_t s = 0; s < schedule_.steps.size(); ++s)
      each_input(s, [&](int value) { last_[at(value)] = static_cast<int>(s); });
  }

  size_t most() {
    for (size_t s = 0; s < schedule_.steps.size(); ++s) {
      const RepeatSchedule::Step& step = schedule_.steps[s];
      const GraphNode& node = all_.graph.nodes[at(step.node)];
      const int outputs = step.time < 0 ? node.outputs : outputs_again(node);
      for (int k = 0; k < outputs; ++k) begin(step.first_value + k, k == 0 ? shared_store(s, node) : -1);
      most_ = std::max(most_, now_);
      for (int k = 0; k < outputs; ++k)
        if (last_[at(step.first_value + k)] < 0) end(step.first_value + k);
      each_input(s, [&](int value) {
        if (last_[at(value)] == static_cast<int>(s)) end(value);
      });
    }
    return most_;
  }

 private:
  template <class Visit>
  void each_input(size_t s, Visit visit) const {
    const RepeatSchedule::Step& step = schedule_.steps[s];
    const auto& only = all_.shape_only[at(step.node)];
    const GraphNode& node = all_.graph.nodes[at(step.node)];
    const size_t count = step.time < 0 ? node.inputs.size() : inputs_again(node).size();
    for (size_t k = 0; k < count; ++k)
      if (!only[k]) visit(schedule_.inputs[at(step.first_input) + k]);
  }

  size_t bytes(int value) const {
    const bool is_copy = at(value) >= all_.graph.tensors.size();
    const int tensor = schedule_.tensor_of[at(value)];
    return is_copy ? all_.graph.tensors[at(tensor)].bytes() : all_.bytes(tensor);
  }

  // The store of an input that the first output takes over, or -1.
  int shared_store(size_t s, const GraphNode& node) const {
    if (node.is_variable()) return -1;
    const bool in_place = is_in_place(node.op());
    if (!node.op().view && !in_place) return -1;
    int found = -1;
    each_input(s, [&](int value) {
      const int store = store_[at(value)];
      if (found >= 0 || store < 0 || bytes(value) != bytes(schedule_.steps[s].first_value)) return;
      const bool dies = last_[at(value)] == static_cast<int>(s) && users_[at(store)] == 1;
      if (node.op().view || dies) found = store;
    });
    return found;
  }

  void begin(int value, int store) {
    if (bytes(value) == 0) return;
    if (store < 0) {
      store = static_cast<int>(users_.size());
      users_.push_back(0);
      size_.push_back(bytes(value));
      now_ += bytes(value);
    }
    store_[at(value)] = store;
    ++users_[at(store)];
  }
  void end(int value) {
    const int store = store_[at(value)];
    if (store < 0) return;
    store_[at(value)] = -1;  // an input may be listed twice
    if (--users_[at(store)] == 0) now_ -= size_[at(store)];
  }

  const Repetition& all_;
  const RepeatSchedule& schedule_;
  std::vector<int> last_;   // by value: the step that reads it last, -1: none
  std::vector<int> store_;  // by value: where it is
  std::vector<int> users_;  // by store: values alive in it
  std::vector<size_t> size_;
  size_t now_ = 0, most_ = 0;
};

}  // namespace

size_t Repetition::bytes_of(const RepeatSchedule& schedule) const { return Walk(*this, schedule).most(); }

Graph Repetition::make(const RepeatSchedule& planned) const {
  Rewriter rewriter(graph);
  std::vector<int> now(planned.tensor_of.size(), -1);  // by value
  for (const RepeatSchedule::Step& step : planned.steps) {
    const GraphNode& node = graph.nodes[at(step.node)];
    if (step.time < 0 && at(step.node) == graph.forward_nodes) rewriter.end_of_forward();
    const size_t count = step.time < 0 ? node.inputs.size() : inputs_again(node).size();
    std::vector<int> inputs;
    for (size_t k = 0; k < count; ++k) inputs.push_back(now[at(planned.inputs[at(step.first_input) + k])]);
    if (step.time < 0) {
      const GraphNode& copy = rewriter.replace(node, node.source, std::move(inputs));
      for (int k = 0; k < node.outputs; ++k) now[at(node.first_output + k)] = copy.first_output + k;
      continue;
    }
    Graph& made = rewriter.graph();
    GraphNode& copy = made.nodes[at(made.append(source_again(node, step.time), std::move(inputs)))];
    copy.context = node.context;
    copy.random_slot = node.random_slot;
    for (int k = 0; k < copy.outputs; ++k) {
      made.tensors[at(copy.first_output + k)] = graph.tensors[at(node.first_output + k)];
      now[at(step.first_value + k)] = copy.first_output + k;
    }
  }
  if (graph.forward_nodes == graph.nodes.size()) rewriter.end_of_forward();
  return rewriter.finish();
}

}  // namespace symbind
