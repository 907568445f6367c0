#include <map>
#include <set>

#include "symbind/core/error.h"
#include "symbind/ops/system.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"

namespace symbind {

void assign_contexts(Graph& graph, Context default_context, const std::map<std::string, Context>& group2ctx) {
  for (GraphNode& node : graph.nodes) {
    const std::string* group = find_attribute(node.source->attributes, "__ctx_group__");
    const auto found = group ? group2ctx.find(*group) : group2ctx.end();
    node.context = found == group2ctx.end() ? default_context : found->second;
  }
}

void place(Graph& graph, Context default_context, const std::map<std::string, Context>& group2ctx) {
  assign_contexts(graph, default_context, group2ctx);
  if (!group2ctx.empty()) copy_across_contexts(graph);
}

void copy_across_contexts(Graph& graph) {
  Rewriter rewriter(graph);
  std::map<std::pair<TensorId, Context>, TensorId> copies;  // tensor of the new graph and context → its copy there
  const auto on = [&](TensorId tensor, Context context) {
    const Context home = rewriter.graph().producer(tensor).context;
    if (home == context) return tensor;
    const auto [slot, is_new] = copies.try_emplace({tensor, context}, TensorId::none);
    if (is_new)
      slot->second =
          rewriter.insert(CrossDeviceCopy{home.str(), context.str()}, tensor, "_to_" + context.str(), context);
    return slot->second;
  };
  rewriter.for_each_node([&](const GraphNode& node) {
    std::vector<TensorId> inputs;
    const std::vector<bool> updated = node.is_variable()
                                          ? std::vector<bool>()
                                          : node.op().updated_inputs(node.source->params.get(), node.inputs.size());
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const TensorId tensor = rewriter.now(node.inputs[k]);
      const Context home = rewriter.graph().producer(tensor).context;
      require(!updated[k] || home == node.context, "[", node.op().name, " ", node.source->name, "] runs on ",
              node.context, ", but its state is on ", home);
      inputs.push_back(shape_only[k] ? tensor : on(tensor, node.context));
    }
    rewriter.replace(node, node.source, std::move(inputs));
  });
  std::vector<TensorId> outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const TensorId now = rewriter.now(graph.outputs[i]);
    const bool is_gradient = i >= graph.net_outputs && i < graph.output_contexts.size();
    outputs.push_back(is_gradient ? on(now, graph.output_contexts[i]) : now);
  }
  graph = rewriter.finish();
  graph.outputs = std::move(outputs);
}

}  // namespace symbind
