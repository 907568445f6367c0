// The gradient of a weight that many steps share is a sum of products aᵀ·b, each as large as the weight and over at
// most a batch of rows. With the rows of all steps concatenated it is one product: partial results are neither stored
// nor summed. The gradient of a shared bias, a sum of sums over the same rows, becomes one sum.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "symbind/ops/concat.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/reduce.h"
#include "symbind/passes/concatenated_rows.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

class ProductFusion {
 public:
  explicit ProductFusion(const Graph& graph)
      : graph_(graph),
        readers_(graph),
        rewriter_(graph),
        concatenated_(graph, rewriter_),
        absorbed_(graph.nodes.size()) {}

  Graph run() {
    std::map<NodeId, Total> totals;                       // by their last node
    PerNode<bool> looked_at(graph_.nodes.size(), false);  // part of a larger sum
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const GraphNode& node = graph_.nodes[i];
      if (looked_at[node.id] || !is_sum(node)) continue;
      Total total = terms_of(node);
      for (const NodeId inside : total.inside) looked_at[inside] = true;
      if (total.products.size() >= 2) totals.emplace(node.id, std::move(total));
    }
    remove_lone_sums(totals);
    for (const auto& [last, total] : totals)
      for (const NodeId inside : total.inside) absorbed_[inside] = true;
    rewriter_.for_each_node([&](const GraphNode& node) {
      if (absorbed_[node.id]) return;
      const auto found = totals.find(node.id);
      if (found == totals.end())
        copy(node);
      else
        write(node, found->second);
    });
    return rewriter_.finish();
  }

 private:
  struct Total {
    bool of_rows = false;          // are the products sums over rows, not products of matrices?
    std::vector<NodeId> products;  // in the order of their rows
    std::vector<TensorId> others;
    std::vector<NodeId> inside;  // are removed
  };

  void copy(const GraphNode& node) {
    rewriter_.copy(node);
    concatenated_.note(node);
  }

  const Shape& shape(TensorId tensor) const { return graph_.tensor(tensor).shape; }

  static bool is_sum(const GraphNode& node) { return params_if<Binary<"elemwise_add">>(node) || params_if<AddN>(node); }

  // aᵀ·b of matrices that are smaller than their product, so that concatenating them costs less than summing results.
  bool is_product(const GraphNode& node) const {
    const auto* dot = params_if<Dot>(node);
    if (!dot || !dot->transpose_a || dot->transpose_b) return false;
    const Shape &a = shape(node.inputs[0]), &b = shape(node.inputs[1]);
    return a.rank() == 2 && b.rank() == 2 && a[0] * (a[1] + b[1]) < 2 * a[1] * b[1] &&
           runs_on_device(op_of<Concat>(), node.context);
  }

  bool is_sum_over_rows(const GraphNode& node) const {
    const auto* params = params_if<Sum>(node);
    return params && params->axis == Tuple{0} && !params->keepdims && !params->exclude &&
           shape(node.inputs[0]).rank() == 2;
  }

  // The terms of a sum, including those of nested sums that only it reads.
  Total terms_of(const GraphNode& last) const {
    Total total;
    std::vector<TensorId> open(last.inputs.rbegin(), last.inputs.rend());
    while (!open.empty()) {
      const TensorId tensor = open.back();
      open.pop_back();
      const GraphNode& maker = graph_.producer(tensor);
      const bool is_ours = readers_.count(tensor) == 1 && maker.context == last.context &&
                           graph_.is_backward(maker.id) == graph_.is_backward(last.id);
      const bool of_rows = is_ours && is_sum_over_rows(maker);
      if (is_ours && (of_rows || is_product(maker)) && (total.products.empty() || total.of_rows == of_rows)) {
        total.of_rows = of_rows;
        total.products.push_back(maker.id);
        total.inside.push_back(maker.id);
      } else if (is_ours && is_sum(maker)) {
        total.inside.push_back(maker.id);
        open.insert(open.end(), maker.inputs.rbegin(), maker.inputs.rend());
      } else {
        total.others.push_back(tensor);
      }
    }
    // Backward visits the steps from the last to the first: from the first to the last, the rows have the order that
    // forward may have concatenated them in.
    std::ranges::stable_sort(total.products, std::ranges::greater(),
                             [&](NodeId product) { return graph_.node(product).inputs[0]; });
    return total;
  }

  std::vector<TensorId> operands(const Total& total, size_t k) const {
    std::vector<TensorId> tensors;
    for (const NodeId product : total.products) tensors.push_back(graph_.node(product).inputs[k]);
    return tensors;
  }

  // Sums over rows stay where no product needs the same rows concatenated.
  void remove_lone_sums(std::map<NodeId, Total>& totals) const {
    std::set<std::vector<TensorId>> concatenated;
    for (const auto& [last, total] : totals)
      if (!total.of_rows) concatenated.insert(operands(total, 0));
    std::erase_if(totals, [&](const auto& entry) {
      return entry.second.of_rows && !concatenated.contains(operands(entry.second, 0));
    });
  }

  TensorId concatenated(const Total& total, size_t k, const GraphNode& like) {
    return concatenated_.of(operands(total, k), like, like.source->name + (k == 0 ? "_left" : "_right"));
  }

  // One node instead of all products, which has this position and name.
  template <class P>
  void write(const GraphNode& last, const Total& total, const P& product, std::vector<TensorId> inputs) {
    if (total.others.empty()) {
      rewriter_.replace(last, fused_node(*last.source, product), std::move(inputs));
      return;
    }
    std::vector<TensorId> terms;
    for (const TensorId other : total.others) terms.push_back(rewriter_.now(other));
    terms.push_back(concatenated_.append(product, last.source->name + "_product", std::move(inputs), last,
                                         shape(last.first_output)));
    const NodePtr source = terms.size() == 2
                               ? fused_node(*last.source, Binary<"elemwise_add">{})
                               : fused_node(*last.source, AddN{.num_args = static_cast<int64_t>(terms.size())});
    rewriter_.replace(last, source, std::move(terms));
  }

  void write(const GraphNode& last, const Total& total) {
    if (total.of_rows)
      write(last, total, Sum{.axis = Tuple{0}}, {concatenated(total, 0, last)});
    else
      write(last, total, Dot{.transpose_a = true}, {concatenated(total, 0, last), concatenated(total, 1, last)});
  }

  const Graph& graph_;
  const Readers readers_;
  Rewriter rewriter_;
  ConcatenatedRows concatenated_;
  PerNode<bool> absorbed_;
};

}  // namespace

void fuse_products(Graph& graph) { graph = ProductFusion(graph).run(); }

}  // namespace symbind
