// Chains and trees of elementwise operators become programs: from the last operator of a group backwards, every
// operator joins whose result only the group reads. The program stands where the last one stood, so whatever it reads
// is there by then, and nobody misses the values in between.
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

// What a device can be expected to keep close: streams of input, and values in between.
constexpr size_t max_inputs = 8, max_instructions = 32;

size_t instructions_of(const GraphNode& node) { return node.source->op == &op_of<AddN>() ? node.inputs.size() - 1 : 1; }

class PointwiseFusion {
 public:
  explicit PointwiseFusion(const Graph& graph)
      : graph_(graph), readers_(graph.tensors.size(), 0), group_(graph.nodes.size(), none) {
    std::vector<bool> updated(graph.tensors.size(), false);
    for (const GraphNode& node : graph.nodes) {
      for (const int input : node.inputs) ++readers_[at(input)];
      if (node.is_variable()) continue;
      const auto updates = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (updates[k]) updated[at(node.inputs[k])] = true;
    }
    for (const int output : graph.outputs) ++readers_[at(output)];
    for (const GraphNode& node : graph.nodes) fusible_.push_back(is_fusible(node, updated));
  }

  Graph run() {
    std::vector<std::vector<size_t>> members(graph_.nodes.size());  // of each group, by its last node
    for (size_t i = graph_.nodes.size(); i-- > 0;)
      if (fusible_[i] && group_[i] == none) members[i] = collect(i);

    Rewriter rewriter(graph_);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (i == graph_.forward_nodes) rewriter.end_of_forward();
      if (members[i].size() > 1)
        write_program(rewriter, members[i]);
      else if (group_[i] == none || group_[i] == i)
        rewriter.copy(graph_.nodes[i]);
    }
    if (graph_.forward_nodes == graph_.nodes.size()) rewriter.end_of_forward();
    return rewriter.finish();
  }

 private:
  static constexpr size_t none = static_cast<size_t>(-1);
  static size_t at(int number) { return static_cast<size_t>(number); }

  // Does the device run it as an instruction, and does it read nothing but same elements of arrays that stay as they
  // are? (An array that somebody updates must be read in its turn.)
  bool is_fusible(const GraphNode& node, const std::vector<bool>& updated) const {
    if (node.is_variable() || node.outputs != 1 || node.inputs.empty() || instructions_of(node) == 0) return false;
    const OpDef& op = node.op();
    if (op.view || op.keeps_state || !op.shape_only.empty() || op.is_random(node.source->params.get(), graph_.is_train))
      return false;
    const Tensor& output = graph_.tensors[at(node.first_output)];
    for (const int input : node.inputs) {
      const Tensor& tensor = graph_.tensors[at(input)];
      if (updated[at(input)] || !(tensor.shape == output.shape) || tensor.dtype != output.dtype) return false;
    }
    return accepts(node);
  }

  // A device's first implementation of programs is its own: it is asked about a program of this node alone.
  bool accepts(const GraphNode& node) const {
    Pointwise program{.num_args = static_cast<int64_t>(node.inputs.size()), .program = ""};
    std::vector<int> operands;
    for (size_t k = 0; k < node.inputs.size(); ++k) operands.push_back(static_cast<int>(k));
    append_instructions(*node.source->op, node.source->params, operands, static_cast<int>(operands.size()),
                        program.instructions);
    const std::vector<Tensor> tensors(node.inputs.size() + 1, graph_.tensors[at(node.first_output)]);
    const std::span<const Tensor> all(tensors);
    const OpDef& op = op_of<Pointwise>();
    return Target::get(node.context)
        .implementations(op)
        .front()
        .refuse({.op = op,
                 .params = &program,
                 .name = node.source->name,
                 .inputs = all.first(node.inputs.size()),
                 .outputs = all.last(1),
                 .is_train = graph_.is_train,
                 .context = node.context})
        .empty();
  }

  bool alike(size_t a, size_t b) const {
    const GraphNode &one = graph_.nodes[a], &other = graph_.nodes[b];
    const Tensor &x = graph_.tensors[at(one.first_output)], &y = graph_.tensors[at(other.first_output)];
    return one.context == other.context && x.dtype == y.dtype && x.shape == y.shape &&
           (a < graph_.forward_nodes) == (b < graph_.forward_nodes);
  }

  // The nodes of the group that ends in `last`, in order. Candidates are looked at from the last to the first, so that
  // all readers of one have been looked at before it.
  std::vector<size_t> collect(size_t last) {
    std::vector<size_t> members{last};
    group_[last] = last;
    std::multiset<int> reads(graph_.nodes[last].inputs.begin(), graph_.nodes[last].inputs.end());
    std::set<int> inputs(reads.begin(), reads.end());
    size_t instructions = instructions_of(graph_.nodes[last]);
    std::priority_queue<size_t> candidates;
    for (const int input : inputs) candidates.push(at(graph_.producer[at(input)]));
    for (; !candidates.empty(); candidates.pop()) {
      const size_t i = candidates.top();
      const GraphNode& node = graph_.nodes[i];
      if (!fusible_[i] || group_[i] != none || !alike(i, last)) continue;
      if (reads.count(node.first_output) != static_cast<size_t>(readers_[at(node.first_output)])) continue;
      if (instructions + instructions_of(node) > max_instructions) continue;
      std::set<int> added;  // what the node reads and the group does not yet
      for (const int input : node.inputs)
        if (!inputs.contains(input)) added.insert(input);
      if (inputs.size() - 1 + added.size() > max_inputs) continue;
      inputs.erase(node.first_output);
      inputs.merge(added);
      instructions += instructions_of(node);
      group_[i] = last;
      members.push_back(i);
      for (const int input : node.inputs) {
        reads.insert(input);
        candidates.push(at(graph_.producer[at(input)]));
      }
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  void write_program(Rewriter& rewriter, const std::vector<size_t>& members) const {
    std::vector<int> inputs;         // in numbers of the old graph
    std::map<int, int> register_of;  // of each tensor
    const auto is_made_inside = [&](int tensor) { return group_[at(graph_.producer[at(tensor)])] == members.back(); };
    for (const size_t i : members)
      for (const int input : graph_.nodes[i].inputs)
        if (!is_made_inside(input) && register_of.emplace(input, static_cast<int>(inputs.size())).second)
          inputs.push_back(input);

    Pointwise params{.num_args = static_cast<int64_t>(inputs.size()), .program = ""};
    for (const size_t i : members) {
      const GraphNode& node = graph_.nodes[i];
      std::vector<int> operands;
      for (const int input : node.inputs) operands.push_back(register_of.at(input));
      append_instructions(*node.source->op, node.source->params, operands,
                          static_cast<int>(inputs.size() + params.instructions.size()), params.instructions);
      register_of[node.first_output] = static_cast<int>(inputs.size() + params.instructions.size()) - 1;
    }
    params.program = program_text(params.instructions);

    const GraphNode& last = graph_.nodes[members.back()];
    for (int& input : inputs) input = rewriter.now(input);
    rewriter.replace(last, fused_node(*last.source, std::move(params)), std::move(inputs));
  }

  const Graph& graph_;
  std::vector<int> readers_;   // of each tensor, the world outside among them
  std::vector<bool> fusible_;  // by node
  std::vector<size_t> group_;  // by node: the last node of its group
};

}  // namespace

void fuse_pointwise(Graph& graph) { graph = PointwiseFusion(graph).run(); }

}  // namespace symbind
