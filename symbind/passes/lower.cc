// The sequence of passes, each in its own file:
//
//   infer             shapes and types of all tensors; those of the network are known when it is bound
//   gradient          appends the backward part for the requested gradients
//   recompute         forward results are recomputed in backward instead of being stored: as the network requests, and
//                     within a memory budget
//   place             the context of each node, and a copy where a tensor crosses contexts
//   drop_identities   removes casts that change no type
//   separate_outputs  every output and gradient is a separate tensor
//   fuse              several operators become one
//   recompute         again within a memory budget: results of fused operators that are cheap to recompute, which
//                     fuse_recomputed fuses with gradients
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
#include "symbind/passes/fuse.h"
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

bool fuses(const LowerRequest& request) { return request.options.fuse && !request.monitored; }

// The first passes of lower_to_kernels().
Graph place_and_fuse(Graph graph, const LowerRequest& request, Frugality frugality) {
  place(graph, request.context, request.group2ctx);
  if (fuses(request)) drop_identities(graph);
  separate_outputs(graph);
  if (fuses(request)) fuse(graph, frugality);
  return graph;
}

// The others.
Lowered lower_fused(Graph graph, const LowerRequest& request, Frugality frugality) {
  const CompileOptions& options = request.options;
  select(graph);
  if (options.layout && !request.monitored) {
    // Reordered weights stay allocated from forward to backward.
    const bool offer_parameters = fuses(request) && frugality == Frugality::none;
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

// From operators to kernels and addresses. Frugal: without optimizations that use more memory to save time.
Lowered lower_to_kernels(Graph graph, const LowerRequest& request, Frugality frugality = Frugality::none) {
  return lower_fused(place_and_fuse(std::move(graph), request, frugality), request, frugality);
}

// Looks for a plan within the budget, the fastest kind first; `best` is the smallest one so far.
class BudgetSearch {
 public:
  BudgetSearch(const Graph& graph, const LowerRequest& request)
      : request_(request), budget_(request.options.memory_budget), recompute_(graph) {}

  Lowered run() {
    best_ = lower_to_kernels(recompute_.as_requested().graph, request_);
    size_t as_requested = best_.memory.total_bytes();
    if (exceeds_budget()) recompute_fused(as_requested);
    for (const Frugality frugality : {Frugality::moderate, Frugality::full}) {
      if (!exceeds_budget()) break;
      Lowered frugal = lower_to_kernels(recompute_.as_requested().graph, request_, frugality);
      as_requested = std::min(as_requested, frugal.memory.total_bytes());
      keep_smaller(std::move(frugal));
    }
    if (exceeds_budget()) recompute_any(as_requested);
    if (exceeds_budget())
      log_warning("[bind] the memory budget of ", budget_, " bytes cannot be met: training needs ",
                  best_.memory.total_bytes(), " bytes of working memory, the least that was found");
    return std::move(best_);
  }

 private:
  bool exceeds_budget() const { return budget_ > 0 && best_.memory.total_bytes() > budget_; }
  void keep_smaller(Lowered plan) {
    if (plan.memory.total_bytes() < best_.memory.total_bytes()) best_ = std::move(plan);
  }

  // Results of fused operators: the kernels of forward and backward stay as fast as they are.
  void recompute_fused(size_t as_requested) {
    const Recompute fused(place_and_fuse(recompute_.as_requested().graph, request_, Frugality::none));
    approach_budget(
        as_requested, fused.as_requested().bytes, [&](size_t target) { return fused.within_cheaply(target); },
        [&](Graph graph) {
          if (fuses(request_)) fuse_recomputed(graph);
          return lower_fused(std::move(graph), request_, Frugality::none);
        });
  }

  // Any results, before operators are fused: some of what is recomputed, and of its gradients, cannot be fused then.
  void recompute_any(size_t as_requested) {
    approach_budget(
        as_requested, recompute_.as_requested().bytes, [&](size_t target) { return recompute_.within(target); },
        [&](Graph graph) { return lower_to_kernels(std::move(graph), request_, Frugality::full); });
  }

  // The memory of a choice is estimated before it is lowered; each attempt corrects the target by the error of the last
  // estimate. The plan as the network requests it needs `first_bytes`, and `estimate` was its estimate.
  template <class Choose, class Lower>
  void approach_budget(size_t first_bytes, size_t estimate, Choose choose, Lower lower) {
    auto needed = static_cast<double>(first_bytes), target = static_cast<double>(estimate);
    for (int attempt = 0; attempt < 6 && exceeds_budget(); ++attempt) {
      const double excess = needed - static_cast<double>(budget_);
      target = std::max(1.0, std::min(target, static_cast<double>(estimate)) - excess);
      Recompute::Result result = choose(static_cast<size_t>(target));
      if (result.bytes == estimate) break;  // there is no other choice
      estimate = result.bytes;
      Lowered plan = lower(std::move(result.graph));
      needed = static_cast<double>(plan.memory.total_bytes());
      keep_smaller(std::move(plan));
    }
  }

  const LowerRequest& request_;
  const size_t budget_;
  const Recompute recompute_;
  Lowered best_;
};

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
  Lowered lowered = may_recompute ? BudgetSearch(graph, request).run() : lower_to_kernels(std::move(graph), request);
  lowered.out_grads = std::move(out_grads);
  lowered.old_grads = std::move(old_grads);
  return lowered;
}

}  // namespace symbind
