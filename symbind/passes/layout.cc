// Propagates preferred layouts: an implementation that prefers one gets it, elementwise operators follow their inputs,
// and a reorder is inserted wherever a tensor is needed in another layout. Each tensor is reordered at most once per
// layout.
//
// An implementation that reorders plain weights itself does so in every run of every operator that reads them. On
// devices that convert all parameters in one operator, the weights are therefore offered to it in channels-last order:
// if it follows the offer, one reorder serves forward and backward, the weight's gradient has the same order, and
// merge_reorders makes these reorders part of the conversions.
#include <algorithm>
#include <map>

#include "symbind/ops/convert_arrays.h"
#include "symbind/ops/system.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

class LayoutFlow {
 public:
  LayoutFlow(Graph& graph, bool offer_parameters)
      : old_(graph),
        rewriter_(graph),
        readers_(graph),
        updated_(updated_tensors(graph)),
        offer_parameters_(offer_parameters) {}

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

  // A tensor that a conversion of all parameters reorders: a parameter, or its value in another type.
  bool is_parameter(TensorId id) const {
    const Tensor& now = old_.tensor(id);
    if (!is_floating(now.dtype) || !has_channels(now.shape) ||
        same_order(now.shape, Layout::plain, Layout::channels_last))
      return false;
    const GraphNode& producer = old_.producer(id);
    if (producer.is_variable()) return !updated_[id];
    return params_if<ConvertArrays>(producer) && !old_.is_backward(producer.id);
  }

  // A tensor that a conversion of all gradients reorders: a gradient, or its value in another type.
  bool is_gradient(TensorId id) const {
    const NodeId reader = readers_.last(id);
    return readers_.count(id) == 1 && (reader == NodeId::none || params_if<ConvertArrays>(old_.node(reader)));
  }

  // What the implementation prefers if its plain parameters are channels-last; none: it does not follow, or its results
  // would have to be reordered separately.
  std::optional<PreferredLayouts> preferred_if_offered(const GraphNode& node, std::vector<Layout> layouts,
                                                       const PreferredLayouts& preferred) const {
    if (!offer_parameters_ || !converts_arrays(node.context)) return std::nullopt;
    bool any = false;
    for (size_t i = 0; i < layouts.size(); ++i) {
      if (preferred.inputs[i] != Layout::plain || !is_parameter(node.inputs[i])) continue;
      layouts[i] = Layout::channels_last;
      any = true;
    }
    if (!any) return std::nullopt;
    std::optional<PreferredLayouts> offered = preferred_layouts(old_, node, layouts);
    if (!offered || offered->inputs == preferred.inputs) return std::nullopt;
    for (size_t i = 0; i < offered->outputs.size(); ++i)
      if (offered->outputs[i] != preferred.outputs[i] && !is_gradient(node.first_output + static_cast<int>(i)))
        return std::nullopt;
    return offered;
  }

  void visit(const GraphNode& node) {
    if (node.is_variable()) {
      rewriter_.copy(node);
      return;
    }
    std::vector<Layout> layouts;
    for (const TensorId input : node.inputs) layouts.push_back(tensor(rewriter_.now(input)).layout);
    std::optional<PreferredLayouts> preferred = preferred_layouts(old_, node, layouts);
    if (preferred) {
      if (auto offered = preferred_if_offered(node, std::move(layouts), *preferred)) preferred = std::move(offered);
    } else {
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
  const Readers readers_;
  const PerTensor<bool> updated_;
  const bool offer_parameters_;
  std::map<std::pair<TensorId, Layout>, TensorId> reordered_;  // an operator's output, in another layout
  std::map<TensorId, TensorId> origins_;                       // reordered tensor → the operator's output
  std::vector<TensorId> outputs_;
};

}  // namespace

void layout(Graph& graph, bool offer_parameters) {
  bool anyone = false;
  for (const GraphNode& node : graph.nodes)
    anyone |= !node.is_variable() && preferred_layouts(graph, node, {}).has_value();
  // In inference kernels cache what they derive from weights.
  if (anyone) graph = LayoutFlow(graph, offer_parameters && (graph.is_train || graph.has_backward())).run();
}

}  // namespace symbind
