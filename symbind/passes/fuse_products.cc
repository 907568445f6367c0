// The gradient of a weight that many steps share is a sum of products aᵀ·b, each as large as the weight and over no
// more than a batch of rows. With the rows of all steps joined it is one product: the partial results are neither
// written nor kept nor summed.
#include <map>
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
    std::map<int, Sum> sums;                                  // by the node that ends them
    std::vector<bool> looked_at(graph_.nodes.size(), false);  // within a larger sum
    for (int i = static_cast<int>(graph_.nodes.size()) - 1; i >= 0; --i) {
      if (looked_at[at(i)] || !is_sum(node(i))) continue;
      Sum sum = terms_of(i);
      for (const int inside : sum.inside) looked_at[at(inside)] = true;
      if (sum.products.size() < 2) continue;
      for (const int inside : sum.inside) absorbed_[at(inside)] = true;
      sums.emplace(i, std::move(sum));
    }
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (at(i) == graph_.forward_nodes) rewriter_.end_of_forward();
      if (absorbed_[at(i)]) continue;
      const auto found = sums.find(i);
      if (found == sums.end())
        rewriter_.copy(node(i));
      else
        write(node(i), found->second);
    }
    if (graph_.forward_nodes == graph_.nodes.size()) rewriter_.end_of_forward();
    return rewriter_.finish();
  }

 private:
  struct Sum {
    std::vector<int> products;  // nodes, in the order they are added
    std::vector<int> others;    // tensors
    std::vector<int> inside;    // nodes that go away
  };

  static size_t at(int number) { return static_cast<size_t>(number); }
  const GraphNode& node(int number) const { return graph_.nodes[at(number)]; }
  const Shape& shape(int tensor) const { return graph_.tensors[at(tensor)].shape; }

  static bool is_sum(const GraphNode& node) { return params_if<Binary<"elemwise_add">>(node) || params_if<AddN>(node); }

  // aᵀ·b of matrices that are smaller than their product, so that joining them costs less than summing results.
  bool is_product(const GraphNode& node) const {
    const auto* dot = params_if<Dot>(node);
    if (!dot || !dot->transpose_a || dot->transpose_b) return false;
    const Shape &a = shape(node.inputs[0]), &b = shape(node.inputs[1]);
    return a.rank() == 2 && b.rank() == 2 && a[0] * (a[1] + b[1]) < 2 * a[1] * b[1] &&
           runs_on_device(op_of<Concat>(), node.context);
  }

  // What a sum and the sums it alone reads are made of.
  Sum terms_of(int last) const {
    Sum sum;
    std::vector<int> open(node(last).inputs.rbegin(), node(last).inputs.rend());
    while (!open.empty()) {
      const int tensor = open.back();
      open.pop_back();
      const int maker = graph_.producer[at(tensor)];
      const bool is_ours = readers_.count(tensor) == 1 && node(maker).context == node(last).context &&
                           graph_.is_backward(maker) == graph_.is_backward(last);
      if (is_ours && is_product(node(maker))) {
        sum.products.push_back(maker);
        sum.inside.push_back(maker);
      } else if (is_ours && is_sum(node(maker))) {
        sum.inside.push_back(maker);
        open.insert(open.end(), node(maker).inputs.rbegin(), node(maker).inputs.rend());
      } else {
        sum.others.push_back(tensor);
      }
    }
    return sum;
  }

  // A new node with one output, near `like`.
  template <class P>
  int append(P params, const std::string& name, std::vector<int> inputs, const GraphNode& like, const Shape& made) {
    const NodePtr source = fused_node(*like.source, std::move(params));
    source->name = name;
    Graph& graph = rewriter_.graph();
    GraphNode& appended = graph.nodes[at(graph.append(source, std::move(inputs)))];
    appended.context = like.context;
    graph.tensors[at(appended.first_output)] = {made, graph_.tensors[at(like.first_output)].dtype, Layout::plain};
    return appended.first_output;
  }

  // The rows of input `k` of all products, joined once for all who want them.
  int joined(const Sum& sum, size_t k, const GraphNode& like) {
    std::vector<int> parts;
    int64_t rows = 0;
    for (const int product : sum.products) {
      parts.push_back(rewriter_.now(node(product).inputs[k]));
      rows += shape(node(product).inputs[k])[0];
    }
    const auto [slot, is_new] = joined_.try_emplace(parts, -1);
    if (is_new) {
      const Concat concat{.num_args = static_cast<int64_t>(parts.size()), .dim = 0};
      const Shape made{rows, shape(node(sum.products[0]).inputs[k])[1]};
      slot->second = append(concat, join(like.source->name, k == 0 ? "_left" : "_right"), parts, like, made);
    }
    return slot->second;
  }

  void write(const GraphNode& last, const Sum& sum) {
    const Dot dot{.transpose_a = true};
    std::vector<int> operands{joined(sum, 0, last), joined(sum, 1, last)};
    if (sum.others.empty()) {
      rewriter_.replace(last, fused_node(*last.source, dot), std::move(operands));
      return;
    }
    std::vector<int> terms;
    for (const int other : sum.others) terms.push_back(rewriter_.now(other));
    terms.push_back(append(dot, last.source->name + "_product", std::move(operands), last, shape(last.first_output)));
    const NodePtr source = terms.size() == 2
                               ? fused_node(*last.source, Binary<"elemwise_add">{})
                               : fused_node(*last.source, AddN{.num_args = static_cast<int64_t>(terms.size())});
    rewriter_.replace(last, source, std::move(terms));
  }

  const Graph& graph_;
  const Readers readers_;
  Rewriter rewriter_;
  std::vector<bool> absorbed_;
  std::map<std::vector<int>, int> joined_;
};

}  // namespace

void fuse_products(Graph& graph) { graph = ProductFusion(graph).run(); }

}  // namespace symbind
