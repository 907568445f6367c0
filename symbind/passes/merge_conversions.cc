// A network in mixed precision converts every parameter to 16 bits before its layer, and every gradient back, each in a
// kernel that is shorter than its launch. On devices with a kernel for many arrays these become one operator at the
// first conversion of a parameter, and one for each batch of gradients, at the last conversion of the batch.
#include <map>
#include <tuple>
#include <vector>

#include "symbind/ops/amp.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/convert_arrays.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/gradient_batches.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

struct Conversion {
  NodeId node;
  TensorId from, to;
  NodeId absorbed = NodeId::none;  // a cast whose result only this node reads
};

// Context, resulting type and factor (none: no factor), which conversions share.
using Kind = std::tuple<Context, DType, TensorId>;
using Groups = std::map<Kind, std::vector<Conversion>>;

void merge(const Graph& graph, const Kind& kind, const std::vector<Conversion>& conversions, const GraphNode& place,
           Replacements& replacements) {
  const auto& [context, dtype, scale] = kind;
  if (conversions.size() < 2) return;
  ConvertArrays params{.num_arrays = static_cast<int64_t>(conversions.size()), .dtype = dtype};
  params.scaled = scale != TensorId::none;
  Replacement merged{fused_node(*place.source, params), {}, {}};
  for (const Conversion& conversion : conversions) {
    merged.inputs.push_back(conversion.from);
    merged.replaced.push_back(conversion.to);
  }
  if (params.scaled) merged.inputs.push_back(scale);
  if (!has_fused_kernel(graph, context, merged)) return;
  for (const Conversion& conversion : conversions) {
    if (conversion.node != place.id) replacements.absorb(conversion.node);
    if (conversion.absorbed != NodeId::none) replacements.absorb(conversion.absorbed);
  }
  replacements.put(place.id, std::move(merged));
}

Groups parameter_casts(const Graph& graph) {
  const PerTensor<bool> updated = updated_tensors(graph);
  Groups groups;
  for (const GraphNode& node : graph.forward_part()) {
    if (!params_if<AmpCast>(node)) continue;
    TensorId from = node.inputs[0];
    const TensorId to = node.first_output;
    // In forward a scaled gradient is nothing but its variable.
    if (params_if<ScaleGradient>(graph.producer(from))) from = graph.producer(from).inputs[0];
    if (!graph.producer(from).is_variable() || updated[from]) continue;
    const DType type = graph.tensor(to).dtype;
    if (!is_floating(type) || !is_floating(graph.tensor(from).dtype)) continue;
    groups[{node.context, type, TensorId::none}].push_back({node.id, from, to});
  }
  return groups;
}

// Casts of parameters in forward.
void merge_parameters(Graph& graph) {
  if (parameter_casts(graph).empty()) return;
  graph = variables_first(graph);
  Replacements replacements(graph);
  for (const auto& [kind, casts] : parameter_casts(graph))
    merge(graph, kind, casts, graph.node(casts.front().node), replacements);
  replacements.apply();
}

// Casts and multiplications whose results are requested gradients.
void merge_gradients(Graph& graph) {
  const Readers readers(graph);
  const auto is_cast = [&](const GraphNode& node) {
    return params_if<CastLike>(node) && is_floating(graph.tensor(node.inputs[0]).dtype) &&
           is_floating(graph.tensor(node.first_output).dtype);
  };
  Groups groups;
  for (const GraphNode& node : graph.backward_part()) {
    const auto* const scaled = params_if<ConvertArrays>(node);
    if (!is_cast(node) && !(scaled && scaled->scaled && scaled->num_arrays == 1)) continue;
    const TensorId to = node.first_output;
    if (readers.count(to) != 1 || readers.last(to) != NodeId::none) continue;  // it is an output, and nothing else
    Conversion conversion{node.id, node.inputs[0], to};
    const GraphNode& before = graph.producer(conversion.from);
    if (scaled && is_cast(before) && before.context == node.context && readers.is_only(node.id, conversion.from)) {
      conversion.absorbed = before.id;
      conversion.from = before.inputs[0];
    }
    groups[{node.context, graph.tensor(to).dtype, scaled ? node.inputs[1] : TensorId::none}].push_back(conversion);
  }
  Replacements replacements(graph);
  const auto bytes_of = [&](const Conversion& conversion) { return graph.tensor(conversion.to).bytes(); };
  for (const auto& [kind, conversions] : groups)
    for (const auto& batch : gradient_batches(conversions, bytes_of))
      merge(graph, kind, batch, graph.node(batch.back().node), replacements);
  replacements.apply();
}

}  // namespace

void merge_conversions(Graph& graph) {
  merge_parameters(graph);
  merge_gradients(graph);
}

}  // namespace symbind
