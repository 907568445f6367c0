// The sequence of passes, each in its own file:
//
//   infer             shapes and types of all tensors; those of the network are known when it is bound
//   gradient          appends the backward part for the requested gradients
//   recompute         forward results are recomputed in backward instead of being stored
//   place             the context of each node, and a copy where a tensor crosses contexts
//   drop_identities   removes casts that change no type
//   separate_outputs  every output and gradient is a separate tensor
//   fuse              several operators become one
//   select            the first implementation of the device that accepts the node
//   layout            preferred layouts, with reorders between them
//   merge_reorders    the reorders of all parameters, and of all gradients, become one operator each
//   build_kernels     shapes, layouts and library primitives are resolved
//   plan_memory       lifetimes become offsets in one arena per context
//
// The memory that a choice of the recompute pass needs is known only after the last pass, so the passes after it run
// once for every choice that is tried.
#include "symbind/passes/lower.h"

#include <algorithm>
#include <utility>

#include "symbind/core/environment.h"
#include "symbind/core/log.h"
#include "symbind/passes/infer_graph.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/recompute.h"
#include "symbind/passes/step_capture.h"

namespace symbind {
namespace {

std::vector<NodePtr> sources_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<NodePtr> sources;
  for (const NodeId node : nodes) sources.push_back(node == NodeId::none ? nullptr : graph.node(node).source);
  return sources;
}

std::vector<TensorId> outside_tensors(const Graph& graph) {
  std::vector<TensorId> outside;
  for (const GraphNode& node : graph.nodes)
    if (node.is_variable()) outside.push_back(node.first_output);
  outside.insert(outside.end(), graph.outputs.begin(), graph.outputs.end());
  return outside;
}

// Will steps of the backward part run concurrently where they do not depend on each other?
bool runs_concurrently(const Graph& graph, const LowerRequest& request) {
  return request.options.capture && request.group2ctx.empty() && !request.monitored &&
         graph.backward_part().size() <= most_concurrent_steps &&
         environment::variable("SYMBIND_CONCURRENT_STEPS").on() &&
         dynamic_cast<StepCapture*>(&Target::get(request.context));
}

// Steps that reuse memory wait for those that read it before. A small plan with a backward part has enough memory for
// all of its tensors if that lets the gradients of weights run beside those of data.
constexpr size_t most_separate_bytes = size_t{128} << 20;

MemoryPlan memory_for(const Graph& graph, const PerTensor<int>& home, const LowerRequest& request,
                      Frugality frugality) {
  const bool share = request.options.share_memory && !request.monitored;
  MemoryPlan memory = plan_memory(graph, home, share);
  if (!share || !graph.has_backward() || frugality != Frugality::none || request.options.memory_budget > 0 ||
      memory.unshared_bytes > most_separate_bytes || !runs_concurrently(graph, request))
    return memory;
  MemoryPlan separate = plan_separate_memory(graph, home);
  return separate.total_bytes() <= most_separate_bytes ? separate : memory;
}

// From operators to kernels and addresses. Frugal: without optimizations that use more memory to save time.
Lowered lower_to_kernels(Graph graph, const LowerRequest& request, Frugality frugality = Frugality::none) {
  const CompileOptions& options = request.options;
  place(graph, request.context, request.group2ctx);
  const bool fuses = options.fuse && !request.monitored;
  if (fuses) drop_identities(graph);
  separate_outputs(graph);
  if (fuses) fuse(graph, frugality);
  select(graph);
  if (options.layout && !request.monitored) {
    // Reordered weights stay allocated from forward to backward.
    const bool offer_parameters = fuses && frugality == Frugality::none;
    layout(graph, offer_parameters);
    if (offer_parameters) merge_reorders(graph);
  }
  request.build_kernels(graph);

  std::vector<TensorId> outside = outside_tensors(graph);
  PerTensor<int> home(graph.tensors.size(), -1);
  for (size_t i = 0; i < outside.size(); ++i) home[outside[i]] = static_cast<int>(i);
  MemoryPlan memory = memory_for(graph, home, request, frugality);
  return {std::move(graph), std::move(memory), std::move(outside), {}, {}};
}

// Recomputes what the network's attributes request, and more until the plan meets the budget. The memory of a choice is
// estimated first; each attempt corrects the target by the error of the last estimate. A plan over the budget is first
// lowered again with more frugality.
Lowered lower_within_budget(const Graph& graph, const LowerRequest& request) {
  const size_t budget = request.options.memory_budget;
  const auto exceeds_budget = [&](const Lowered& plan) { return budget > 0 && plan.memory.total_bytes() > budget; };
  const auto is_smaller = [](const Lowered& a, const Lowered& b) {
    return a.memory.total_bytes() < b.memory.total_bytes();
  };

  const Recompute recompute(graph);
  Recompute::Result result = recompute.as_requested();
  Lowered best = lower_to_kernels(std::move(result.graph), request);
  for (const Frugality frugality : {Frugality::moderate, Frugality::full}) {
    if (!exceeds_budget(best)) break;
    Lowered frugal = lower_to_kernels(recompute.as_requested().graph, request, frugality);
    if (is_smaller(frugal, best)) best = std::move(frugal);
  }
  auto needed = static_cast<double>(best.memory.total_bytes()), target = static_cast<double>(result.bytes);
  for (int attempt = 0; attempt < 6 && exceeds_budget(best); ++attempt) {
    const size_t before = result.bytes;
    target =
        std::max(1.0, std::min(target, static_cast<double>(result.bytes)) - (needed - static_cast<double>(budget)));
    result = recompute.within(static_cast<size_t>(target));
    if (result.bytes == before) break;  // there is no other choice
    Lowered other = lower_to_kernels(std::move(result.graph), request, Frugality::full);
    needed = static_cast<double>(other.memory.total_bytes());
    if (is_smaller(other, best)) best = std::move(other);
  }
  if (exceeds_budget(best))
    log_warning("[bind] the memory budget of ", budget, " bytes cannot be met: training needs ",
                best.memory.total_bytes(), " bytes of working memory, the least that was found");
  return best;
}

}  // namespace

Lowered lower(const Graph& network, const LowerRequest& request) {
  Graph graph = network;
  graph.is_train = request.kind == PlanKind::training;
  graph.objects = request.objects;
  graph.output_contexts = request.output_contexts;

  const bool has_backward = request.kind != PlanKind::inference && !request.gradients.empty();
  if (!has_backward) return lower_to_kernels(std::move(graph), request);

  const GradientPorts ports = add_gradient(graph, request.gradients);
  infer(graph);
  std::vector<NodePtr> out_grads = sources_of(graph, ports.out_grads), old_grads = sources_of(graph, ports.old_grads);
  const bool may_recompute = request.options.recompute && !request.monitored;
  Lowered lowered = may_recompute ? lower_within_budget(graph, request) : lower_to_kernels(std::move(graph), request);
  lowered.out_grads = std::move(out_grads);
  lowered.old_grads = std::move(old_grads);
  return lowered;
}

}  // namespace symbind
