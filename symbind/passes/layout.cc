// Propagates preferred layouts: an implementation that prefers one gets it, elementwise operators follow their inputs,
// and a reorder is inserted wherever a tensor is needed in another layout. Each tensor is reordered at most once per
// layout.
#include <algorithm>
#include <map>

#include "symbind/ops/system.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

class LayoutFlow {
 public:
  explicit LayoutFlow(Graph& graph) : old_(graph), rewriter_(graph) {}

  Graph run() {
    rewriter_.for_each_node([&](const GraphNode& node) { visit(node); }, [&] { make_outputs_plain(); });
    for (size_t i = old_.net_outputs; i < old_.outputs.size(); ++i)
      outputs_.push_back(in_layout(rewriter_.now(old_.outputs[i]), Layout::plain));
    Graph made = rewriter_.finish();
    made.outputs = std::move(outputs_);
    return made;
  }

 private:
  Tensor& tensor(TensorId id) { return rewriter_.graph().tensor(id); }

  // Tensors that users see are plain; the network's outputs must be reordered before forward ends.
  void make_outputs_plain() {
    for (size_t i = 0; i < old_.net_outputs; ++i)
      outputs_.push_back(in_layout(rewriter_.now(old_.outputs[i]), Layout::plain));
  }

  // The tensor in a layout: itself, an existing reordered version, or a new reorder. All derive from the tensor that an
  // operator computed, so that returning to its layout needs no second reorder.
  TensorId in_layout(TensorId id, Layout layout) {
    if (tensor(id).layout == layout) return id;
    const auto found = origins_.find(id);
    const TensorId origin = found == origins_.end() ? id : found->second;
    if (tensor(origin).layout == layout) return origin;
    const auto [slot, is_new] = reordered_.try_emplace({origin, layout}, TensorId::none);
    if (!is_new) return slot->second;
    // There may be no direct reorder between two preferred layouts.
    const bool direct = block_of(tensor(origin).layout) == 1 || block_of(layout) == 1;
    const TensorId from = direct ? origin : in_layout(origin, Layout::plain);
    Graph& made = rewriter_.graph();
    const Context context = made.producer(from).context;
    const bool no_work = same_order(tensor(from).shape, tensor(from).layout, layout);
    const TensorId result = no_work ? rewriter_.insert(Relabel{}, from, suffix(layout), context)
                                    : rewriter_.insert(Reorder{}, from, suffix(layout), context);
    tensor(result).layout = layout;
    made.nodes.back().implementation = &Target::get(context).implementations(made.nodes.back().op()).front();
    origins_[result] = origin;
    return slot->second = result;
  }

  static std::string suffix(Layout layout) {
    std::string text = "_to_" + std::string(name_of(layout));
    std::replace(text.begin(), text.end(), ' ', '_');
    return text;
  }

  static bool has_channels(const Shape& shape) { return shape.rank() >= 3 && shape.rank() <= 5; }

  // An elementwise operator works on any layout its arrays share: it uses that of the first input that is not plain.
  std::optional<Layout> followed(const GraphNode& node) {
    if (!node.op().elementwise || node.inputs.empty()) return std::nullopt;
    const Shape& shape = old_.tensor(node.first_output).shape;
    if (!has_channels(shape)) return std::nullopt;
    std::optional<Layout> layout;
    for (const TensorId input : node.inputs) {
      const Tensor& now = tensor(rewriter_.now(input));
      if (!(now.shape == shape)) return std::nullopt;
      if (!layout && now.layout != Layout::plain) layout = now.layout;
    }
    return layout;
  }

  void visit(const GraphNode& node) {
    if (node.is_variable()) {
      rewriter_.copy(node);
      return;
    }
    std::vector<Layout> layouts;
    for (const TensorId input : node.inputs) layouts.push_back(tensor(rewriter_.now(input)).layout);
    std::optional<PreferredLayouts> preferred = preferred_layouts(old_, node, layouts);
    if (!preferred) {
      if (const std::optional<Layout> layout = followed(node))
        preferred = PreferredLayouts{std::vector(node.inputs.size(), *layout),
                                     std::vector(static_cast<size_t>(node.outputs), *layout)};
    }
    std::vector<TensorId> inputs;
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId now = rewriter_.now(node.inputs[i]);
      const Layout wanted = preferred ? preferred->inputs[i] : Layout::plain;
      inputs.push_back(shape_only[i] ? now : in_layout(now, wanted));
    }
    const GraphNode& made = rewriter_.replace(node, node.source, std::move(inputs));
    if (!preferred) return;
    for (int i = 0; i < made.outputs; ++i)
      tensor(made.first_output + i).layout = preferred->outputs[static_cast<size_t>(i)];
  }

  const Graph& old_;
  Rewriter rewriter_;
  std::map<std::pair<TensorId, Layout>, TensorId> reordered_;  // an operator's output, in another layout
  std::map<TensorId, TensorId> origins_;                       // reordered tensor → the operator's output
  std::vector<TensorId> outputs_;
};

}  // namespace

void layout(Graph& graph) {
  bool anyone = false;
  for (const GraphNode& node : graph.nodes)
    anyone |= !node.is_variable() && preferred_layouts(graph, node, {}).has_value();
  if (anyone) graph = LayoutFlow(graph).run();
}

}  // namespace symbind
