// The steps of an unrolled recurrent network multiply different rows by the same weight. Products of steps that do not
// depend on each other become one product of the concatenated rows, and so do their data gradients. The steps of the
// layer before are then computed first: nodes run in another order.
#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "symbind/ops/concat.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/passes/concatenated_rows.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

constexpr size_t least_products = 4;
// Of a merged product. Larger ones gain nothing, and all rows stay allocated until the last is read.
constexpr int64_t most_rows = 512;
constexpr size_t most_bytes = size_t{1} << 20;

class ProductMerging {
 public:
  explicit ProductMerging(Graph& graph) : graph_(graph), chunk_(graph.nodes.size(), none), before_(graph.nodes.size()) {
    for (const GraphNode& node : graph.nodes) order_.push_back(node.id);
    find_dependencies();
  }

  void run() {
    for (const auto& [key, products] : candidates()) merge(products);
    if (chunks_.empty()) return;
    // Draws are numbered before the order changes.
    for (GraphNode& node : graph_.nodes)
      if (!node.is_variable() && node.random_slot < 0 &&
          node.op().is_random(node.source->params.get(), graph_.is_train))
        node.random_slot = graph_.random_slots++;
    write();
  }

 private:
  static constexpr int none = -1;
  using Key = std::tuple<const OpDef*, std::vector<TensorId>, int64_t, int64_t>;  // weight and bias, rows, no_bias

  // Products of a weight and matrices of equally many rows: affine maps in forward, data gradients in backward.
  std::optional<Key> key_of(const GraphNode& node) const {
    const bool is_map = params_if<FullyConnected>(node) && !graph_.is_backward(node.id);
    const auto* product = params_if<Dot>(node);
    if (product && (product->transpose_a || product->transpose_b || !graph_.is_backward(node.id))) return std::nullopt;
    if (!is_map && !product) return std::nullopt;
    const Shape &data = graph_.tensor(node.inputs[0]).shape, &weight = graph_.tensor(node.inputs[1]).shape;
    if (data.rank() != 2 || weight.rank() != 2 || data.size() == 0 || 2 * data[0] > most_rows) return std::nullopt;
    return Key{&node.op(), {node.inputs.begin() + 1, node.inputs.end()}, data[0], is_map ? 1 : 0};
  }

  std::map<Key, std::vector<NodeId>> candidates() const {
    std::map<Key, std::vector<NodeId>> found;
    for (const GraphNode& node : graph_.nodes)
      if (!node.is_variable() && runs_on_device(op_of<Concat>(), node.context))
        if (const std::optional<Key> key = key_of(node)) found[*key].push_back(node.id);
    std::erase_if(found, [](const auto& entry) { return entry.second.size() < least_products; });
    return found;
  }

  // Nodes that must run before a node: the producers of its inputs, and of two that update or read an array that is
  // updated, or that have effects of their own, the earlier one.
  void find_dependencies() {
    const PerTensor<bool> updated = updated_tensors(graph_);
    std::map<TensorId, NodeId> last_reader;
    NodeId last_with_state = NodeId::none;
    for (const GraphNode& node : graph_.nodes) {
      std::vector<NodeId>& before = before_[node.id];
      for (const TensorId input : node.inputs) {
        before.push_back(graph_.producer_id(input));
        if (!updated[input]) continue;
        const auto [slot, is_first] = last_reader.try_emplace(input, node.id);
        if (!is_first) before.push_back(std::exchange(slot->second, node.id));
      }
      if (node.is_variable() || !node.op().keeps_state) continue;
      const NodeId earlier = std::exchange(last_with_state, node.id);
      if (earlier != NodeId::none) before.push_back(earlier);
    }
  }

  // Visits the nodes that run together with a node: those of its chunk, or itself alone.
  template <class Visit>
  void for_each_together(NodeId node, Visit visit) const {
    if (chunk_[node] == none)
      visit(node);
    else
      for (const NodeId other : chunks_[static_cast<size_t>(chunk_[node])]) visit(other);
  }

  // The depth of a product is the largest number of products of the same weight that it depends on one after the other:
  // those of one depth are independent, given the chunks found so far.
  void merge(const std::vector<NodeId>& products) {
    PerNode<bool> is_product(graph_.nodes.size(), false);
    for (const NodeId product : products) is_product[product] = true;
    PerNode<int> depth(graph_.nodes.size(), 0);
    for (const NodeId node : order_) {
      if (chunk_[node] != none && chunks_[static_cast<size_t>(chunk_[node])].front() != node) continue;
      int deepest = 0;
      for_each_together(node, [&](NodeId member) {
        for (const NodeId earlier : before_[member])
          deepest = std::max(deepest, depth[earlier] + (is_product[earlier] ? 1 : 0));
      });
      for_each_together(node, [&](NodeId member) { depth[member] = deepest; });
    }
    std::map<int, std::vector<NodeId>> by_depth;
    for (const NodeId product : products) by_depth[depth[product]].push_back(product);
    const size_t chunks_before = chunks_.size();
    for (auto& [level, independent] : by_depth)
      if (independent.size() >= least_products) divide(independent);
    if (chunks_.size() > chunks_before) sort();
  }

  // In the order of the rows: that of the steps, which backward visits from the last to the first.
  void divide(std::vector<NodeId>& products) {
    const auto data_of = [&](NodeId product) { return graph_.node(product).inputs[0]; };
    if (graph_.is_backward(products[0]))
      std::ranges::stable_sort(products, std::ranges::greater(), data_of);
    else
      std::ranges::stable_sort(products, std::ranges::less(), data_of);
    const auto count = static_cast<int64_t>(products.size()), rows = graph_.tensor(data_of(products[0])).shape[0];
    const size_t bytes = graph_.tensor(graph_.node(products[0]).first_output).bytes() * products.size();
    const int64_t chunks = std::max((count * rows + most_rows - 1) / most_rows,
                                    static_cast<int64_t>((bytes + most_bytes - 1) / most_bytes));
    for (int64_t i = 0; i < chunks; ++i) {
      const auto begin = products.begin() + count * i / chunks, end = products.begin() + count * (i + 1) / chunks;
      if (end - begin < 2) continue;
      for (auto product = begin; product != end; ++product) chunk_[*product] = static_cast<int>(chunks_.size());
      chunks_.emplace_back(begin, end);
    }
  }

  // The original order as far as the chunks permit: of the nodes that are ready, the first runs next.
  void sort() {
    PerNode<int> missing(graph_.nodes.size(), 0);  // of each node, or of the first of its chunk
    PerNode<std::vector<NodeId>> after(graph_.nodes.size());
    const auto first_of = [&](NodeId node) {
      return chunk_[node] == none ? node : chunks_[static_cast<size_t>(chunk_[node])].front();
    };
    for (const GraphNode& node : graph_.nodes)
      for (const NodeId earlier : before_[node.id]) {
        ++missing[first_of(node.id)];
        after[earlier].push_back(first_of(node.id));
      }
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    const auto make_ready = [&](NodeId first) {
      NodeId earliest = first;
      for_each_together(first, [&](NodeId member) { earliest = std::min(earliest, member); });
      ready.push(earliest);
    };
    for (const GraphNode& node : graph_.nodes)
      if (first_of(node.id) == node.id && missing[node.id] == 0) make_ready(node.id);
    order_.clear();
    while (!ready.empty()) {
      const NodeId next = first_of(ready.top());
      ready.pop();
      for_each_together(next, [&](NodeId member) { order_.push_back(member); });
      for_each_together(next, [&](NodeId member) {
        for (const NodeId later : after[member])
          if (--missing[later] == 0) make_ready(later);
      });
    }
    // Forward runs to its end before backward begins.
    std::stable_partition(order_.begin(), order_.end(), [&](NodeId node) { return !graph_.is_backward(node); });
  }

  void write() {
    Rewriter rewriter(graph_);
    ConcatenatedRows concatenated(graph_, rewriter);
    for (size_t i = 0; i < order_.size(); ++i) {
      if (i == graph_.forward_nodes) rewriter.end_of_forward();
      const GraphNode& node = graph_.node(order_[i]);
      if (chunk_[node.id] == none) {
        rewriter.copy(node);
        concatenated.note(node);
        continue;
      }
      const std::vector<NodeId>& chunk = chunks_[static_cast<size_t>(chunk_[node.id])];
      if (node.id == chunk.front()) write(chunk, rewriter, concatenated);
    }
    if (!graph_.has_backward()) rewriter.end_of_forward();
    graph_ = rewriter.finish();
  }

  // The product of the concatenated rows, and its parts.
  void write(const std::vector<NodeId>& chunk, Rewriter& rewriter, ConcatenatedRows& concatenated) const {
    const GraphNode& first = graph_.node(chunk[0]);
    const auto steps = static_cast<int64_t>(chunk.size());
    std::vector<TensorId> rows, results;
    for (const NodeId product : chunk) {
      rows.push_back(graph_.node(product).inputs[0]);
      results.push_back(graph_.node(product).first_output);
    }
    const std::string name = join(first.source->name, "_and_", steps - 1, "_more");
    std::vector<TensorId> inputs{concatenated.of(rows, first, name + "_rows")};
    for (size_t k = 1; k < first.inputs.size(); ++k) inputs.push_back(rewriter.now(first.inputs[k]));
    const Shape& part = graph_.tensor(first.first_output).shape;
    const Shape whole{steps * part[0], part[1]};
    const TensorId product = params_if<Dot>(first)
                                 ? concatenated.append(*params_if<Dot>(first), name, inputs, first, whole)
                                 : concatenated.append(*params_if<FullyConnected>(first), name, inputs, first, whole);
    const NodePtr parts = fused_node(*first.source, SliceChannel{.num_outputs = steps, .axis = 0});
    rewriter.replace(first, parts, {product}, results);
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> chunks_;  // that become one product each
  PerNode<int> chunk_;                       // the index of its chunk
  PerNode<std::vector<NodeId>> before_;
  std::vector<NodeId> order_;
};

// Layers on several devices run concurrently, step by step: they do not wait for each other's last step.
bool is_on_one_device(const Graph& graph) {
  return std::ranges::all_of(graph.nodes,
                             [&](const GraphNode& node) { return node.context == graph.nodes[0].context; });
}

}  // namespace

void merge_products(Graph& graph) {
  if (is_on_one_device(graph)) ProductMerging(graph).run();
}

}  // namespace symbind
