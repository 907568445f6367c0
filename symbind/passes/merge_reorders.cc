// A network of convolutions whose kernels read channels-last weights reorders each weight before forward and each
// gradient after backward. On devices with a kernel for many arrays these reorders become a part of the operator that
// converts the arrays to another type, if there is one (merge_conversions), and otherwise such an operator of their
// own: one for all weights, and one for each batch of gradients.
#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "symbind/ops/convert_arrays.h"
#include "symbind/ops/system.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/gradient_batches.h"
#include "symbind/passes/passes.h"

namespace symbind {
namespace {

using Reorders = std::vector<NodeId>;

class Merging {
 public:
  explicit Merging(Graph& graph)
      : graph_(graph),
        readers_(graph),
        updated_(updated_tensors(graph)),
        shape_reads_(graph.tensors.size(), 0),
        replacements_(graph) {
    for (const GraphNode& node : graph.nodes) {
      const std::vector<bool> shape_only = shape_only_inputs(node);
      for (size_t i = 0; i < node.inputs.size(); ++i) shape_reads_[node.inputs[i]] += shape_only[i];
    }
  }

  void run() {
    for (const GraphNode& node : graph_.nodes)
      if (is_mergeable(node)) collect(node);
    for (const auto& [conversion, reorders] : after_) absorb_after(graph_.node(conversion), reorders);
    for (const auto& [conversion, reorders] : before_) absorb_before(graph_.node(conversion), reorders);
    for (const auto& [context, reorders] : of_variables_) make_one(reorders, graph_.node(reorders.front()));
    const auto bytes_of = [&](NodeId reorder) { return graph_.tensor(graph_.node(reorder).first_output).bytes(); };
    for (const auto& [context, reorders] : of_outputs_)
      for (const Reorders& batch : gradient_batches(reorders, bytes_of)) make_one(batch, graph_.node(batch.back()));
    replacements_.apply();
  }

 private:
  bool is_mergeable(const GraphNode& node) const {
    return params_if<Reorder>(node) && is_floating(graph_.tensor(node.first_output).dtype) &&
           converts_arrays(node.context);
  }

  void collect(const GraphNode& reorder) {
    if (graph_.is_backward(reorder.id))
      collect_backward(reorder);
    else
      collect_forward(reorder);
  }

  // Reorders of parameters, and of results of a conversion of parameters.
  void collect_forward(const GraphNode& reorder) {
    const TensorId from = reorder.inputs[0];
    const GraphNode& producer = graph_.producer(from);
    if (producer.context != reorder.context) return;
    if (producer.is_variable()) {
      if (!updated_[from]) of_variables_[reorder.context].push_back(reorder.id);
    } else if (params_if<ConvertArrays>(producer)) {
      after_[producer.id].push_back(reorder.id);
    }
  }

  // Reorders whose results are gradients, or are only read by a conversion of gradients.
  void collect_backward(const GraphNode& reorder) {
    const TensorId to = reorder.first_output;
    if (readers_.count(to) != 1) return;
    const NodeId reader = readers_.last(to);
    if (reader == NodeId::none)
      of_outputs_[reorder.context].push_back(reorder.id);
    else if (params_if<ConvertArrays>(graph_.node(reader)) && graph_.node(reader).context == reorder.context)
      before_[reader].push_back(reorder.id);
  }

  // Replaces the node `place` by a conversion of `arrays`: pairs of an array and the tensor that it becomes.
  bool put(const GraphNode& place, ConvertArrays params, const std::vector<std::pair<TensorId, TensorId>>& arrays,
           std::span<const TensorId> scale, const Reorders& absorbed) {
    params.num_arrays = static_cast<int64_t>(arrays.size());
    Replacement merged{fused_node(*place.source, params), {}, {}};
    for (const auto& [from, to] : arrays) {
      merged.inputs.push_back(from);
      merged.replaced.push_back(to);
    }
    merged.inputs.insert(merged.inputs.end(), scale.begin(), scale.end());
    if (!has_fused_kernel(graph_, place.context, merged)) return false;
    for (const NodeId reorder : absorbed)
      if (reorder != place.id) replacements_.absorb(reorder);
    replacements_.put(place.id, std::move(merged));
    return true;
  }

  static std::span<const TensorId> scale_of(const GraphNode& conversion) {
    return std::span(conversion.inputs).subspan(static_cast<size_t>(conversion.outputs));
  }

  // The reorders become results of the conversion that they read. Results that nothing else reads are left out; who
  // reads only their shape gets the reordered array.
  void absorb_after(const GraphNode& conversion, const Reorders& reorders) {
    std::vector<std::pair<TensorId, TensorId>> arrays;
    std::map<TensorId, TensorId> left_out;  // and what replaces it
    for (int i = 0; i < conversion.outputs; ++i) {
      const TensorId from = conversion.inputs[static_cast<size_t>(i)], to = conversion.first_output + i;
      int others = readers_.count(to) - shape_reads_[to];
      TensorId reordered = TensorId::none;
      for (const NodeId reorder : reorders) {
        if (graph_.node(reorder).inputs[0] != to) continue;
        reordered = graph_.node(reorder).first_output;
        arrays.emplace_back(from, reordered);
        --others;
      }
      if (others > 0 || reordered == TensorId::none)
        arrays.emplace_back(from, to);
      else
        left_out[to] = reordered;
    }
    if (!put(conversion, *params_if<ConvertArrays>(conversion), arrays, scale_of(conversion), reorders)) return;
    for (GraphNode& node : graph_.nodes)
      for (TensorId& input : node.inputs)
        if (const auto found = left_out.find(input); found != left_out.end() && !replacements_.is_absorbed(node.id))
          input = found->second;
  }

  // The conversion reads what the reorders read.
  void absorb_before(const GraphNode& conversion, const Reorders& reorders) {
    std::vector<std::pair<TensorId, TensorId>> arrays;
    for (int i = 0; i < conversion.outputs; ++i) {
      TensorId from = conversion.inputs[static_cast<size_t>(i)];
      if (std::count(reorders.begin(), reorders.end(), graph_.producer_id(from)))
        from = graph_.producer(from).inputs[0];
      arrays.emplace_back(from, conversion.first_output + i);
    }
    put(conversion, *params_if<ConvertArrays>(conversion), arrays, scale_of(conversion), reorders);
  }

  void make_one(const Reorders& reorders, const GraphNode& place) {
    if (reorders.size() < 2) return;
    std::vector<std::pair<TensorId, TensorId>> arrays;
    for (const NodeId reorder : reorders)
      arrays.emplace_back(graph_.node(reorder).inputs[0], graph_.node(reorder).first_output);
    put(place, {}, arrays, {}, reorders);
  }

  Graph& graph_;
  const Readers readers_;
  const PerTensor<bool> updated_;
  PerTensor<int> shape_reads_;  // how many readers read only its shape
  Replacements replacements_;
  std::map<NodeId, Reorders> after_, before_;  // by conversion
  std::map<Context, Reorders> of_variables_, of_outputs_;
};

}  // namespace

void merge_reorders(Graph& graph) {
  const auto is_reorder = [](const GraphNode& node) {
    return params_if<Reorder>(node) && converts_arrays(node.context);
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_reorder)) return;
  graph = variables_first(graph);
  Merging(graph).run();
  for (GraphNode& node : graph.nodes)
    if (params_if<ConvertArrays>(node)) select(graph, node);
}

}  // namespace symbind
