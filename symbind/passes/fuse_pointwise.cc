// Chains and trees of elementwise operators become programs: from the last operator of a group backwards, every
// operator is added whose result only the group reads. The program takes the position of the last one, so its inputs
// are computed by then, and intermediate values are not stored.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <vector>

#include "symbind/ops/elementwise.h"
#include "symbind/ops/pointwise.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

// Limits for a device's caches and registers: input streams, and intermediate values.
constexpr size_t max_inputs = 8, max_instructions = 32;

class PointwiseFusion {
 public:
  explicit PointwiseFusion(const Graph& graph)
      : graph_(graph),
        readers_(graph.tensors.size(), 0),
        fusible_(fusible_nodes(graph)),
        group_(graph.nodes.size(), NodeId::none) {
    for (const GraphNode& node : graph.nodes)
      for (const TensorId input : node.inputs) ++readers_[input];
    for (const TensorId output : graph.outputs) ++readers_[output];
  }

  Graph run() {
    PerNode<std::vector<NodeId>> members(graph_.nodes.size());  // of each group, by its last node
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const GraphNode& node = graph_.nodes[i];
      if (fusible_[node.id] && group_[node.id] == NodeId::none) members[node.id] = collect(node);
    }

    Rewriter rewriter(graph_);
    rewriter.for_each_node([&](const GraphNode& node) {
      if (members[node.id].size() > 1)
        write_program(rewriter, members[node.id]);
      else if (group_[node.id] == NodeId::none || group_[node.id] == node.id)
        rewriter.copy(node);
    });
    return rewriter.finish();
  }

 private:
  bool alike(const GraphNode& one, const GraphNode& other) const {
    const Tensor &x = graph_.tensor(one.first_output), &y = graph_.tensor(other.first_output);
    return one.context == other.context && x.dtype == y.dtype && x.shape == y.shape &&
           graph_.is_backward(one.id) == graph_.is_backward(other.id);
  }

  // The nodes of the group that ends in `last`, in order. Candidates are visited from the last to the first, so that
  // all readers of a node are visited before it.
  std::vector<NodeId> collect(const GraphNode& last) {
    std::vector<NodeId> members{last.id};
    group_[last.id] = last.id;
    std::multiset<TensorId> reads(last.inputs.begin(), last.inputs.end());
    std::set<TensorId> inputs(reads.begin(), reads.end());
    size_t instructions = instructions_of(last);
    std::priority_queue<NodeId> candidates;
    for (const TensorId input : inputs) candidates.push(graph_.producer_id(input));
    for (; !candidates.empty(); candidates.pop()) {
      const GraphNode& node = graph_.node(candidates.top());
      if (!fusible_[node.id] || group_[node.id] != NodeId::none || !alike(node, last)) continue;
      if (reads.count(node.first_output) != static_cast<size_t>(readers_[node.first_output])) continue;
      if (instructions + instructions_of(node) > max_instructions) continue;
      std::set<TensorId> added;  // inputs of the node that the group does not read yet
      for (const TensorId input : node.inputs)
        if (!inputs.contains(input)) added.insert(input);
      if (inputs.size() - 1 + added.size() > max_inputs) continue;
      inputs.erase(node.first_output);
      inputs.merge(added);
      instructions += instructions_of(node);
      group_[node.id] = last.id;
      members.push_back(node.id);
      for (const TensorId input : node.inputs) {
        reads.insert(input);
        candidates.push(graph_.producer_id(input));
      }
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  void write_program(Rewriter& rewriter, const std::vector<NodeId>& members) const {
    std::vector<TensorId> inputs;  // of the old graph
    std::map<TensorId, int> register_of;
    const auto is_made_inside = [&](TensorId tensor) { return group_[graph_.producer_id(tensor)] == members.back(); };
    for (const NodeId member : members)
      for (const TensorId input : graph_.node(member).inputs)
        if (!is_made_inside(input) && register_of.emplace(input, static_cast<int>(inputs.size())).second)
          inputs.push_back(input);

    Pointwise params{.num_args = static_cast<int64_t>(inputs.size()), .program = ""};
    for (const NodeId member : members) {
      const GraphNode& node = graph_.node(member);
      std::vector<int> operands;
      for (const TensorId input : node.inputs) operands.push_back(register_of.at(input));
      append_instructions(*node.source->op, node.source->params, operands,
                          static_cast<int>(inputs.size() + params.instructions.size()), params.instructions);
      register_of[node.first_output] = static_cast<int>(inputs.size() + params.instructions.size()) - 1;
    }
    params.program = program_text(params.instructions);

    const GraphNode& last = graph_.node(members.back());
    for (TensorId& input : inputs) input = rewriter.now(input);
    rewriter.replace(last, fused_node(*last.source, std::move(params)), std::move(inputs));
  }

  const Graph& graph_;
  PerTensor<int> readers_;  // number of readers; being an output counts as one
  const PerNode<bool> fusible_;
  PerNode<NodeId> group_;  // the last node of its group
};

}  // namespace

void fuse_pointwise(Graph& graph) { graph = PointwiseFusion(graph).run(); }

}  // namespace symbind
