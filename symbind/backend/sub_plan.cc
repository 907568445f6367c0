#include "symbind/backend/sub_plan.h"

#include <algorithm>

#include "symbind/core/error.h"
#include "symbind/passes/infer_graph.h"
#include "symbind/passes/passes.h"

namespace symbind {
namespace {

constexpr size_t alignment = 64;
size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

const Node* node_of(const Symbol& variable) { return variable.entries()[0].node.get(); }

// Data that a kernel derives from its inputs is valid for one run only: the variables are not the user's arrays.
void build_for_one_run(Graph& graph) {
  build_kernels(graph);
  for (GraphNode& node : graph.nodes) node.caches_derived = false;
}

Lowered compile(const Symbol& network, std::span<const Symbol> variables, std::span<const Tensor> tensors,
                const SubPlanOptions& options) {
  Graph graph = Graph::from(network);
  std::vector<NodeId> ids(variables.size(), NodeId::none);
  for (const GraphNode& node : graph.nodes) {
    if (!node.is_variable()) continue;
    const auto found = std::find_if(variables.begin(), variables.end(),
                                    [&](const Symbol& each) { return node_of(each) == node.source.get(); });
    require(found != variables.end(), "the network reads '", node.source->name, "', which is none of its inputs");
    const auto index = static_cast<size_t>(found - variables.begin());
    ids[index] = node.id;
    graph.tensor(node.first_output) = {tensors[index].shape, tensors[index].dtype, Layout::plain};
  }
  graph.random_slots = options.random_slot;
  infer(graph);

  LowerRequest request;
  request.context = options.context;
  request.build_kernels = build_for_one_run;
  const bool with_gradients = !options.gradients.empty();
  request.kind =
      options.is_train ? PlanKind::training : (with_gradients ? PlanKind::test_with_gradients : PlanKind::inference);
  for (size_t i = 0; i < options.gradients.size(); ++i) {
    const NodeId id = ids[options.gradients[i]];
    require(id != NodeId::none, "the gradient of an input that the network does not read");
    const bool adds = !options.adds.empty() && options.adds[i];
    request.gradients.push_back({id, adds ? GradReq::add : GradReq::write});
  }
  request.options.recompute = false;
  return lower(graph, request);
}

}  // namespace

SubPlan::SubPlan(const Symbol& network, std::span<const Symbol> variables, std::span<const Tensor> tensors,
                 const SubPlanOptions& options)
    : plan_(compile(network, variables, tensors, options)) {
  require(plan_.memory.arena_bytes.size() <= 1, "a network inside of an operator is on one context");
  find_roles(variables);
  make_steps();
  make_spares(options.may_lack_outputs);
}

void SubPlan::find_roles(std::span<const Symbol> variables) {
  const Graph& graph = plan_.graph;
  outside_.resize(plan_.outside.size());
  bases_.resize(outside_.size());
  out_grads_.assign(graph.net_outputs, -1);
  for (size_t i = 0; i < outside_.size(); ++i) {
    const GraphNode& producer = graph.producer(plan_.outside[i]);
    if (!producer.is_variable()) continue;
    for (size_t k = 0; k < variables.size(); ++k)
      if (node_of(variables[k]) == producer.source.get()) outside_[i] = {Role::input, k};
    for (size_t k = 0; k < plan_.out_grads.size(); ++k)
      if (plan_.out_grads[k] == producer.source) {
        outside_[i] = {Role::out_grad, k};
        out_grads_[k] = static_cast<int>(i);
      }
    for (size_t k = 0; k < plan_.old_grads.size(); ++k)
      if (plan_.old_grads[k] == producer.source) outside_[i] = {Role::old_grad, k};
  }
  // The outputs are the last ones, and separate tensors.
  const size_t first = outside_.size() - graph.outputs.size();
  for (size_t k = 0; k < graph.outputs.size(); ++k)
    outside_[first + k] =
        k < graph.net_outputs ? Outside{Role::output, k} : Outside{Role::gradient, k - graph.net_outputs};
}

void SubPlan::make_steps() {
  const Graph& graph = plan_.graph;
  size_t addresses = 0;
  for (const GraphNode& node : graph.nodes) {
    if (index_of(node.id) == graph.forward_nodes) forward_steps_ = steps_.size();
    if (node.is_variable() || plan_.memory.skip[node.id]) continue;
    steps_.push_back({node.kernel.get(), &node, addresses, node.kernel->cached_bytes > 0});
    addresses += node.inputs.size() + static_cast<size_t>(node.outputs);
    capturable_ &= node.kernel->capturable;
  }
  if (graph.forward_nodes >= graph.nodes.size()) forward_steps_ = steps_.size();
  addresses_.resize(addresses);
}

// Results for which the caller may pass no memory are placed after the arena.
void SubPlan::make_spares(bool may_lack_outputs) {
  arena_bytes_ = plan_.memory.arena_bytes.empty() ? 0 : aligned(plan_.memory.arena_bytes[0]);
  scratch_bytes_ = arena_bytes_;
  if (!may_lack_outputs) return;
  for (size_t i = 0; i < outside_.size(); ++i) {
    if (outside_[i].role != Role::output && outside_[i].role != Role::gradient) continue;
    outside_[i].spare = scratch_bytes_;
    scratch_bytes_ += aligned(plan_.graph.tensor(plan_.outside[i]).bytes());
  }
}

void SubPlan::take_bases(const Args& outer, const SubPlanArrays& arrays) {
  const auto at = [](std::span<void* const> list, size_t index) { return index < list.size() ? list[index] : nullptr; };
  auto* const scratch = static_cast<std::byte*>(outer.scratch);
  for (size_t i = 0; i < outside_.size(); ++i) {
    const auto [role, index, spare] = outside_[i];
    switch (role) {
      case Role::input:
        bases_[i] = at(arrays.inputs, index);
        break;
      case Role::out_grad:
        bases_[i] = at(arrays.out_grads, index);
        break;
      case Role::output:
        bases_[i] = at(arrays.outputs, index);
        break;
      case Role::gradient:
      case Role::old_grad:
        bases_[i] = at(arrays.gradients, index);
        break;
      case Role::none:
        bases_[i] = nullptr;
        break;
    }
    if (!bases_[i] && spare != no_spare) bases_[i] = scratch + spare;
  }
}

void* SubPlan::address(const Location& location, std::byte* scratch) const {
  switch (location.kind) {
    case Location::Kind::nowhere:
      return nullptr;
    case Location::Kind::arena:
      return scratch + location.offset;
    case Location::Kind::outside: {
      auto* const base = static_cast<std::byte*>(bases_[static_cast<size_t>(location.index)]);
      return base ? base + location.offset : nullptr;
    }
  }
  return nullptr;
}

void SubPlan::run(size_t begin, size_t end, const Args& outer, const SubPlanArrays& arrays) {
  take_bases(outer, arrays);
  auto* const scratch = static_cast<std::byte*>(outer.scratch);
  for (size_t i = begin; i < end; ++i) {
    const Step& step = steps_[i];
    const GraphNode& node = *step.node;
    Args args = outer;
    size_t next = step.first_address;
    args.inputs = addresses_.data() + next;
    for (const TensorId input : node.inputs) addresses_[next++] = address(plan_.memory.tensors[input], scratch);
    args.outputs = addresses_.data() + next;
    for (int k = 0; k < node.outputs; ++k)
      addresses_[next++] = address(plan_.memory.tensors[node.first_output + k], scratch);
    args.scratch = address(plan_.memory.scratch[node.id], scratch);
    args.cached = step.prepares ? static_cast<std::byte*>(args.scratch) + cached_offset(*step.kernel) : nullptr;
    if (step.prepares) step.kernel->prepare(args);
    step.kernel->run(args);
  }
}

void SubPlan::forward(const Args& outer, const SubPlanArrays& arrays) { run(0, forward_steps_, outer, arrays); }

void SubPlan::backward(const Args& outer, const SubPlanArrays& arrays) {
  run(forward_steps_, steps_.size(), outer, arrays);
}

}  // namespace symbind
