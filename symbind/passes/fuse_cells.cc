// The gates of a recurrent cell are one array: an affine map computes them side by side, SliceChannel splits them, and
// elementwise operators follow. All of these but the map become one program with several results. It reads the gates as
// columns of the array, and in backward writes their gradients as columns. From the last operator of a group backwards,
// an operator is added if everybody else who reads its result comes after the group; the program takes the position of
// the last one, so its inputs are computed by then.
#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <vector>

#include "symbind/ops/concat.h"
#include "symbind/ops/pointwise.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

// Limits for a device's registers: matrices that are read and written, and operators.
constexpr size_t max_reads = 16, max_results = 12, max_instructions = 48;

// The number of parts if a node splits the columns of a matrix, or puts them together again in backward; else 0.
template <class P>
int64_t parts_of(const Graph& graph, const GraphNode& node, TensorId whole) {
  const auto* params = params_if<P>(node);
  const Shape& shape = graph.tensor(whole).shape;
  const bool columns = params && shape.rank() == 2 && (params->axis == 1 || params->axis == -1);
  return columns && !params->squeeze_axis && shape.size() > 0 ? static_cast<int64_t>(params->num_outputs) : 0;
}

class CellFusion {
 public:
  explicit CellFusion(const Graph& graph)
      : graph_(graph),
        fusible_(fusible_nodes(graph)),
        group_(graph.nodes.size(), NodeId::none),
        readers_(graph.tensors.size()),
        is_output_(graph.tensors.size(), false) {
    for (const GraphNode& node : graph.nodes) {
      if (node.is_variable()) continue;
      const std::vector<bool> shape_only = shape_only_inputs(node);
      for (size_t k = 0; k < node.inputs.size(); ++k) readers_[node.inputs[k]].push_back({node.id, shape_only[k]});
    }
    for (const TensorId output : graph.outputs) is_output_[output] = true;
  }

  // None: there is no cell.
  std::optional<Graph> run() {
    std::map<NodeId, Cell> cells;  // by their last node
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const GraphNode& node = graph_.nodes[i];
      if (group_[node.id] != NodeId::none) continue;
      if (std::optional<Cell> cell = collect(node)) cells.emplace(node.id, std::move(*cell));
    }
    if (cells.empty()) return std::nullopt;
    Rewriter rewriter(graph_);
    rewriter.for_each_node([&](const GraphNode& node) {
      const auto found = cells.find(node.id);
      if (found != cells.end())
        write(rewriter, found->second);
      else if (group_[node.id] == NodeId::none)
        rewriter.copy(node);
    });
    return rewriter.finish();
  }

 private:
  struct Reader {
    NodeId node;
    bool shape_only;
  };

  struct Cell {
    NodeId last;
    Shape shape;                         // of its matrices
    bool packs = false;                  // does the last node put the parts together?
    std::vector<NodeId> members = {};    // elementwise operators on the matrices
    std::set<NodeId> splits = {};        // of which all parts are read by the cell alone
    std::set<NodeId> wholes = {};        // elementwise operators before a split, which are computed for each part
    std::vector<TensorId> results = {};  // read by others; without the parts
  };

  // A group while it is collected.
  struct Open {
    Cell cell;
    std::set<TensorId> reads = {};  // matrices
    size_t extra_reads = 0;         // by operators on wholes, beyond those of the parts
    size_t instructions = 0;
    std::priority_queue<NodeId> candidates = {};
  };

  std::optional<Cell> collect(const GraphNode& last) {
    const int64_t parts = parts_of<SliceChannelGrad>(graph_, last, last.first_output);
    const Shape& shape = graph_.tensor(parts ? last.inputs[0] : last.first_output).shape;
    if ((!parts && !fusible_[last.id]) || shape.rank() != 2 || shape.size() == 0) return std::nullopt;
    Open open{.cell = {.last = last.id, .shape = shape, .packs = parts > 0}};
    std::vector<NodeId> taken{last.id};
    group_[last.id] = last.id;
    if (parts)
      add_reads(open, std::span(last.inputs).first(static_cast<size_t>(parts)));
    else
      add_member(open, last);
    for (; !open.candidates.empty(); open.candidates.pop()) {
      const GraphNode& node = graph_.node(open.candidates.top());
      if (node.inputs.empty() || group_[node.id] != NodeId::none || !is_alike(node, last)) continue;
      if (!add(open, node)) continue;
      group_[node.id] = last.id;
      taken.push_back(node.id);
    }
    if (is_cell(open)) return std::move(open.cell);
    for (const NodeId node : taken) group_[node] = NodeId::none;
    return std::nullopt;
  }

  bool is_alike(const GraphNode& node, const GraphNode& last) const {
    return node.context == last.context && graph_.is_backward(node.id) == graph_.is_backward(last.id) &&
           graph_.tensor(node.first_output).dtype == graph_.tensor(last.first_output).dtype;
  }

  // Where it runs: a program takes the position of its last node. Later cells are found before earlier ones.
  NodeId position_of(NodeId node) const { return group_[node] == NodeId::none ? node : group_[node]; }

  bool is_in(const Cell& cell, NodeId node) const { return group_[node] == cell.last; }

  // Does the cell alone read it? Shapes may be read by others.
  bool is_read_inside(const Cell& cell, TensorId tensor) const {
    return !is_output_[tensor] && std::ranges::all_of(readers_[tensor], [&](const Reader& reader) {
      return reader.shape_only || is_in(cell, reader.node);
    });
  }

  void add_reads(Open& open, std::span<const TensorId> tensors) const {
    for (const TensorId tensor : tensors) {
      open.reads.insert(tensor);
      open.candidates.push(graph_.producer_id(tensor));
    }
  }

  void add_member(Open& open, const GraphNode& node) const {
    open.cell.members.push_back(node.id);
    open.reads.erase(node.first_output);
    open.instructions += instructions_of(node);
    add_reads(open, node.inputs);
  }

  // Candidates are visited from the last to the first, so that all readers of a node are visited before it.
  bool add(Open& open, const GraphNode& node) const {
    Cell& cell = open.cell;
    if (parts_of<SliceChannel>(graph_, node, node.inputs[0]) > 0) {
      if (!(graph_.tensor(node.first_output).shape == cell.shape)) return false;
      for (int k = 0; k < node.outputs; ++k) {
        const TensorId part = node.first_output + k;
        if (!is_read_inside(cell, part) || std::ranges::any_of(readers_[part], &Reader::shape_only)) return false;
      }
      cell.splits.insert(node.id);
      open.candidates.push(graph_.producer_id(node.inputs[0]));
      return true;
    }
    if (!fusible_[node.id]) return false;
    const TensorId made = node.first_output;
    if (graph_.tensor(made).shape == cell.shape) {
      for (const Reader& reader : readers_[made])
        if (!is_in(cell, reader.node) && position_of(reader.node) < cell.last) return false;
      if (open.instructions + instructions_of(node) > max_instructions) return false;
      if (open.reads.size() + open.extra_reads + node.inputs.size() > max_reads + 1) return false;
      add_member(open, node);
      return true;
    }
    return add_whole(open, node);
  }

  bool add_whole(Open& open, const GraphNode& node) const {
    Cell& cell = open.cell;
    if (!is_read_inside(cell, node.first_output)) return false;
    const auto parts = static_cast<size_t>(graph_.tensor(node.first_output).shape[1] / cell.shape[1]);
    const size_t extra = parts * (node.inputs.size() - 1);
    if (open.instructions + parts * instructions_of(node) > max_instructions) return false;
    if (open.reads.size() + open.extra_reads + extra > max_reads) return false;
    cell.wholes.insert(node.id);
    open.extra_reads += extra;
    open.instructions += parts * instructions_of(node);
    for (const TensorId input : node.inputs) open.candidates.push(graph_.producer_id(input));
    return true;
  }

  // A group is a cell if it reads or writes gates; others are left to fuse_pointwise().
  bool is_cell(Open& open) const {
    Cell& cell = open.cell;
    if (cell.members.empty() || (!cell.packs && cell.splits.empty())) return false;
    std::ranges::sort(cell.members);
    const GraphNode& last = graph_.node(cell.last);
    const size_t parts = cell.packs ? last.inputs.size() - 1 : 0;
    for (size_t k = 0; k < parts; ++k)
      if (!std::ranges::binary_search(cell.members, graph_.producer_id(last.inputs[k]))) return false;
    for (const NodeId member : cell.members) {
      const TensorId made = graph_.node(member).first_output;
      if (is_output_[made] ||
          !std::ranges::all_of(readers_[made], [&](const Reader& reader) { return is_in(cell, reader.node); }))
        cell.results.push_back(made);
    }
    if (parts + cell.results.size() > max_results) return false;
    const std::vector<Tensor> matrix(1, {cell.shape, graph_.tensor(last.first_output).dtype, Layout::plain});
    PointwiseCell params{.num_args = 1, .program = ""};
    for (const NodeId member : cell.members) {
      const Node& source = *graph_.node(member).source;
      const std::vector<int> operands(graph_.node(member).inputs.size(), 0);
      append_instructions(*source.op, source.params, operands, 1, params.instructions);
    }
    return accepts_program(graph_, op_of<PointwiseCell>(), &params, *last.source, last.context, matrix, matrix);
  }

  // ---- The program ----

  class Program {
   public:
    Program(const Graph& graph, const Cell& cell) : graph_(graph), cell_(cell) {
      params_.columns = cell.shape[1];
      for (const NodeId member : cell.members) find_reads(graph_.node(member));
      for (const NodeId member : cell.members) compute(graph_.node(member));
    }

    void write(Rewriter& rewriter) {
      const GraphNode& last = graph_.node(cell_.last);
      std::vector<TensorId> replaced;
      for (const TensorId result : cell_.results) {
        params_.results.push_back({value_of_.at(result), {static_cast<int>(replaced.size()), 0, params_.columns}});
        replaced.push_back(result);
      }
      if (cell_.packs) {
        const int64_t stride = graph_.tensor(last.first_output).shape[1];
        for (size_t k = 0; k + 1 < last.inputs.size(); ++k)
          params_.results.push_back(
              {value_of_.at(last.inputs[k]),
               {static_cast<int>(replaced.size()), static_cast<int64_t>(k) * params_.columns, stride}});
        replaced.push_back(last.first_output);
      }
      params_.num_args = static_cast<int64_t>(arrays_.size());
      params_.num_outputs = static_cast<int64_t>(replaced.size());
      params_.program = program_text(params_.instructions);
      // Shapes of arrays that are computed no more are those of others.
      for (const NodeId whole : cell_.wholes)
        rewriter.redirect(graph_.node(whole).first_output, rewriter.now(graph_.node(whole).inputs[0]));
      std::vector<TensorId> inputs;
      for (const TensorId array : arrays_) inputs.push_back(rewriter.now(array));
      const NodePtr source = fused_node(*last.source, std::move(params_));
      rewriter.replace(last, source, std::move(inputs), replaced);
    }

   private:
    // A matrix: a tensor, or one of the parts of a tensor with more columns.
    struct Matrix {
      TensorId tensor;
      int64_t part = 0;
      auto operator<=>(const Matrix&) const = default;
    };

    Matrix matrix_of(TensorId tensor) const {
      const GraphNode& maker = graph_.producer(tensor);
      return cell_.splits.contains(maker.id) ? Matrix{maker.inputs[0], tensor - maker.first_output} : Matrix{tensor};
    }
    bool is_member(TensorId tensor) const {
      return std::ranges::binary_search(cell_.members, graph_.producer_id(tensor));
    }

    // All reads come before the first instruction: registers are numbered in this order.
    void find_reads(const GraphNode& member) {
      for (const TensorId input : member.inputs)
        if (!is_member(input)) find_reads(matrix_of(input));
    }
    void find_reads(const Matrix& matrix) {
      const GraphNode& maker = graph_.producer(matrix.tensor);
      if (cell_.wholes.contains(maker.id)) {
        for (const TensorId input : maker.inputs) find_reads(Matrix{input, matrix.part});
        return;
      }
      if (!register_of_.emplace(matrix, static_cast<int>(params_.reads.size())).second) return;
      const auto found = std::ranges::find(arrays_, matrix.tensor);
      const auto array = static_cast<int>(found - arrays_.begin());
      if (found == arrays_.end()) arrays_.push_back(matrix.tensor);
      params_.reads.push_back({array, matrix.part * params_.columns, graph_.tensor(matrix.tensor).shape[1]});
    }

    int append(const Node& source, const std::vector<int>& operands) {
      const auto next = static_cast<int>(params_.reads.size() + params_.instructions.size());
      append_instructions(*source.op, source.params, operands, next, params_.instructions);
      return static_cast<int>(params_.reads.size() + params_.instructions.size()) - 1;
    }

    int value_of(const Matrix& matrix) {
      if (const auto known = register_of_.find(matrix); known != register_of_.end()) return known->second;
      const GraphNode& whole = graph_.producer(matrix.tensor);  // an operator before a split
      std::vector<int> operands;
      for (const TensorId input : whole.inputs) operands.push_back(value_of(Matrix{input, matrix.part}));
      return register_of_[matrix] = append(*whole.source, operands);
    }

    void compute(const GraphNode& member) {
      std::vector<int> operands;
      for (const TensorId input : member.inputs)
        operands.push_back(is_member(input) ? value_of_.at(input) : value_of(matrix_of(input)));
      value_of_[member.first_output] = append(*member.source, operands);
    }

    const Graph& graph_;
    const Cell& cell_;
    PointwiseCell params_{.num_args = 0, .program = ""};
    std::vector<TensorId> arrays_;  // that are read, of the old graph
    std::map<Matrix, int> register_of_;
    std::map<TensorId, int> value_of_;  // the registers of members
  };

  void write(Rewriter& rewriter, const Cell& cell) const { Program(graph_, cell).write(rewriter); }

  const Graph& graph_;
  const PerNode<bool> fusible_;
  PerNode<NodeId> group_;  // the last node of its group
  PerTensor<std::vector<Reader>> readers_;
  PerTensor<bool> is_output_;
};

}  // namespace

void fuse_cells(Graph& graph) {
  if (std::optional<Graph> fused = CellFusion(graph).run()) graph = std::move(*fused);
}

}  // namespace symbind
