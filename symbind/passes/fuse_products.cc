// The gradient of a weight that many steps share is a sum of products aᵀ·b, each as large as the weight and over at
// most a batch of rows. With the rows of all steps concatenated it is one product: partial results are neither stored
// nor summed.
#include <map>
#include <ranges>
#include <vector>

#include "symbind/ops/concat.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/elementwise.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

class ProductFusion {
 public:
  explicit ProductFusion(const Graph& graph)
      : graph_(graph), readers_(graph), rewriter_(graph), absorbed_(graph.nodes.size(), false) {}

  Graph run() {
    std::map<NodeId, Sum> sums;                           // by their last node
    PerNode<bool> looked_at(graph_.nodes.size(), false);  // part of a larger sum
    for (const GraphNode& node : std::views::reverse(graph_.nodes)) {
      if (looked_at[node.id] || !is_sum(node)) continue;
      Sum sum = terms_of(node);
      for (const NodeId inside : sum.inside) looked_at[inside] = true;
      if (sum.products.size() < 2) continue;
      for (const NodeId inside : sum.inside) absorbed_[inside] = true;
      sums.emplace(node.id, std::move(sum));
    }
    rewriter_.for_each_node([&](const GraphNode& node) {
      if (absorbed_[node.id]) return;
      const auto found = sums.find(node.id);
      if (found == sums.end())
        rewriter_.copy(node);
      else
        write(node, found->second);
    });
    return rewriter_.finish();
  }

 private:
  struct Sum {
    std::vector<NodeId> products;  // in the order they are added
    std::vector<TensorId> others;
    std::vector<NodeId> inside;  // are removed
  };

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

  // The terms of a sum, including those of nested sums that only it reads.
  Sum terms_of(const GraphNode& last) const {
    Sum sum;
    std::vector<TensorId> open(last.inputs.rbegin(), last.inputs.rend());
    while (!open.empty()) {
      const TensorId tensor = open.back();
      open.pop_back();
      const GraphNode& maker = graph_.producer(tensor);
      const bool is_ours = readers_.count(tensor) == 1 && maker.context == last.context &&
                           graph_.is_backward(maker.id) == graph_.is_backward(last.id);
      if (is_ours && is_product(maker)) {
        sum.products.push_back(maker.id);
        sum.inside.push_back(maker.id);
      } else if (is_ours && is_sum(maker)) {
        sum.inside.push_back(maker.id);
        open.insert(open.end(), maker.inputs.rbegin(), maker.inputs.rend());
      } else {
        sum.others.push_back(tensor);
      }
    }
    return sum;
  }

  // A new node with one output, with the placement of `like`.
  template <class P>
  TensorId append(P params, const std::string& name, std::vector<TensorId> inputs, const GraphNode& like,
                  const Shape& made) {
    const NodePtr source = fused_node(*like.source, std::move(params));
    source->name = name;
    Graph& graph = rewriter_.graph();
    GraphNode& appended = graph.append(source, std::move(inputs));
    appended.context = like.context;
    graph.tensor(appended.first_output) = {made, graph_.tensor(like.first_output).dtype, Layout::plain};
    return appended.first_output;
  }

  // The rows of input `k` of all products, concatenated once for all sums.
  TensorId joined(const Sum& sum, size_t k, const GraphNode& like) {
    std::vector<TensorId> parts;
    int64_t rows = 0;
    for (const NodeId product : sum.products) {
      parts.push_back(rewriter_.now(graph_.node(product).inputs[k]));
      rows += shape(graph_.node(product).inputs[k])[0];
    }
    const auto [slot, is_new] = joined_.try_emplace(parts, TensorId::none);
    if (is_new) {
      const Concat concat{.num_args = static_cast<int64_t>(parts.size()), .dim = 0};
      const Shape made{rows, shape(graph_.node(sum.products[0]).inputs[k])[1]};
      slot->second = append(concat, join(like.source->name, k == 0 ? "_left" : "_right"), parts, like, made);
    }
    return slot->second;
  }

  void write(const GraphNode& last, const Sum& sum) {
    const Dot dot{.transpose_a = true};
    std::vector<TensorId> operands{joined(sum, 0, last), joined(sum, 1, last)};
    if (sum.others.empty()) {
      rewriter_.replace(last, fused_node(*last.source, dot), std::move(operands));
      return;
    }
    std::vector<TensorId> terms;
    for (const TensorId other : sum.others) terms.push_back(rewriter_.now(other));
    terms.push_back(append(dot, last.source->name + "_product", std::move(operands), last, shape(last.first_output)));
    const NodePtr source = terms.size() == 2
                               ? fused_node(*last.source, Binary<"elemwise_add">{})
                               : fused_node(*last.source, AddN{.num_args = static_cast<int64_t>(terms.size())});
    rewriter_.replace(last, source, std::move(terms));
  }

  const Graph& graph_;
  const Readers readers_;
  Rewriter rewriter_;
  PerNode<bool> absorbed_;
  std::map<std::vector<TensorId>, TensorId> joined_;
};

}  // namespace

void fuse_products(Graph& graph) { graph = ProductFusion(graph).run(); }

}  // namespace symbind
