#include <algorithm>
#include <iostream>

#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

// The view of a node, with the tensors it points to.
struct View {
  View(const Graph& graph, const GraphNode& node) {
    for (const TensorId input : node.inputs) tensors.push_back(graph.tensor(input));
    for (int i = 0; i < node.outputs; ++i) tensors.push_back(graph.tensor(node.first_output + i));
  }
  NodeView of(const Graph& graph, const GraphNode& node) const {
    const std::span<const Tensor> all(tensors);
    return {node.op(),
            node.source->params.get(),
            node.source->name,
            all.first(node.inputs.size()),
            all.subspan(node.inputs.size()),
            graph.is_train,
            node.random_slot,
            node.context,
            node.source.get(),
            graph.objects.get()};
  }
  std::vector<Tensor> tensors;
};

}  // namespace

int explain_level() {
  static const int level = environment::variable("SYMBIND_EXPLAIN").value();
  return level;
}

void select(Graph& graph) {
  for (GraphNode& node : graph.nodes)
    if (!node.is_variable()) select(graph, node);
}

void select(Graph& graph, GraphNode& node) {
  const bool explaining = explain_level() >= 2;
  // A recomputed node already has the slot of the original.
  if (node.random_slot < 0 && node.op().is_random(node.source->params.get(), graph.is_train))
    node.random_slot = graph.random_slots++;
  const View tensors(graph, node);
  const NodeView view = tensors.of(graph, node);
  node.implementation = &choose(view, [&](const Implementation& refusing, const std::string& reason) {
    if (explaining)
      std::clog << view.where() << " on " << node.context << ": not " << refusing.name << ": " << reason << "\n";
  });
  if (explaining) std::clog << view.where() << " on " << node.context << ": " << node.implementation->name << "\n";
}

void build_kernels(Graph& graph) { build_kernels(graph, 0, graph.nodes.size()); }

namespace {

// In inference, and only from variables that no node updates.
bool caches_derived(const Graph& graph, const GraphNode& node, const PerTensor<bool>& updated) {
  if (node.kernel->cached_bytes == 0 || graph.is_train || graph.has_backward()) return false;
  return std::all_of(node.kernel->cached_from.begin(), node.kernel->cached_from.end(), [&](int index) {
    const TensorId tensor = node.inputs[static_cast<size_t>(index)];
    return graph.producer(tensor).is_variable() && !updated[tensor];
  });
}

}  // namespace

void build_kernels(Graph& graph, size_t first, size_t end) {
  const PerTensor<bool> updated = updated_tensors(graph);
  for (size_t i = first; i < end; ++i) {
    GraphNode& node = graph.nodes[i];
    if (node.is_variable()) continue;
    const View tensors(graph, node);
    node.kernel = node.implementation->build(tensors.of(graph, node));
    node.caches_derived = caches_derived(graph, node, updated);
  }
}

std::optional<PreferredLayouts> preferred_layouts(const Graph& graph, const GraphNode& node,
                                                  std::span<const Layout> inputs) {
  if (!node.implementation || !node.implementation->preferred_layouts) return std::nullopt;
  View tensors(graph, node);
  for (size_t i = 0; i < inputs.size(); ++i) tensors.tensors[i].layout = inputs[i];
  return node.implementation->preferred_layouts(tensors.of(graph, node));
}

}  // namespace symbind
