// Reverse-mode differentiation on the level of operators. Nodes are visited from the last to the first; each turns the
// gradients of its outputs into gradients of its inputs by writing expressions. The nodes of the expressions are
// appended immediately, so a gradient is computed as early as possible, and the tensors it reads are released as early
// as possible.
#include "symbind/passes/gradient.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"

namespace symbind {

namespace {

// Names of backward nodes: fc1_backward_dot.
class BackwardNames : public NameManager {
 public:
  explicit BackwardNames(std::string node) : prefix_(std::move(node) + "_backward_") {}
  std::string get(const std::string& given, const std::string& hint) override {
    if (!given.empty()) return prefix_ + given;
    const int count = counts_[hint]++;
    return prefix_ + hint + (count ? std::to_string(count) : "");
  }

 private:
  std::string prefix_;
  std::unordered_map<std::string, int> counts_;
};

Attributes placement_of(const Node& node) {
  const std::string* group = find_attribute(node.attributes, "__ctx_group__");
  return group ? Attributes{{"__ctx_group__", *group}} : Attributes{};
}

class Differentiation {
 public:
  Differentiation(Graph& graph, const std::vector<GradientRequest>& requests)
      : graph_(graph),
        requests_(requests),
        forward_nodes_(graph.nodes.size()),
        matters_(graph.nodes.size(), false),
        gradients_(graph.tensors.size()) {
    for (const GraphNode& node : graph.nodes) id_[node.source.get()] = node.id;
    for (const GradientRequest& request : requests_) matters_[request.node] = true;
    for (const GraphNode& node : graph.nodes)
      for (const TensorId input : node.inputs)
        if (matters_[graph.producer_id(input)]) matters_[node.id] = true;
    for (size_t i = 0; i < graph.net_outputs; ++i) heads_[graph.outputs[i]].push_back(i);
    ports_.out_grads.assign(graph.net_outputs, NodeId::none);
    ports_.old_grads.assign(requests.size(), NodeId::none);
  }

  GradientPorts run() {
    for (size_t i = forward_nodes_; i-- > 0;) visit(graph_.nodes[i].id);
    for (size_t i = 0; i < requests_.size(); ++i) finish(i);
    return std::move(ports_);
  }

 private:
  class GradOfNode;

  Symbol symbol_of(TensorId tensor) const {
    const GraphNode& node = graph_.producer(tensor);
    return Symbol({{node.source, tensor - node.first_output}});
  }

  bool is_head(TensorId tensor) const { return heads_.contains(tensor); }

  void visit(NodeId id);
  void finish(size_t request);
  Symbol gradient_of(TensorId tensor);
  void contribute(TensorId tensor, const Symbol& part);
  NodeId append(const Entry& entry);
  void name_gradient(const Node& forward, size_t inputs, size_t input, const Entry& gradient) const;
  void name_zeros(TensorId variable, const Entry& zeros) const;

  Graph& graph_;
  const std::vector<GradientRequest>& requests_;
  const size_t forward_nodes_;
  PerNode<bool> matters_;  // does a requested gradient depend on it?
  struct Arrived {
    std::optional<Symbol> sum;  // none: nothing yet
    int sums = 0;               // number of additions so far
  };
  PerTensor<Arrived> gradients_;  // the contributions of its users
  std::unordered_map<const Node*, NodeId> id_;
  std::unordered_map<TensorId, std::vector<size_t>> heads_;  // by tensor: its indices among the outputs of the network
  Attributes placement_;                                     // of the nodes being made
  GradientPorts ports_;
};

// Adds a contribution to the gradient of a tensor immediately: for a shared weight only the sum is stored, not the
// contribution of each user.
void Differentiation::contribute(TensorId tensor, const Symbol& part) {
  append(part.entries()[0]);
  Arrived& arrived = gradients_[tensor];
  if (!arrived.sum) {
    arrived.sum = part;
    return;
  }
  const Node& maker = *graph_.producer(tensor).source;
  const BackwardNames names(maker.name);
  const int before = arrived.sums++;
  arrived.sum = apply("elemwise_add", {*arrived.sum, part}, {}, join("elemwise_add", before > 0 ? join(before) : ""));
  const Attributes placement = std::exchange(placement_, placement_of(maker));
  append(arrived.sum->entries()[0]);
  placement_ = placement;
}

// The sum of the contributions to a tensor; called once per tensor.
Symbol Differentiation::gradient_of(TensorId tensor) {
  static const std::vector<size_t> no_heads;
  const auto heads = heads_.find(tensor);
  for (const size_t i : heads == heads_.end() ? no_heads : heads->second) {
    if (ports_.out_grads[i] != NodeId::none) continue;
    const GraphNode& node = graph_.producer(tensor);
    auto variable = std::make_shared<Node>();
    variable->name = join(node.source->name, "_out_grad", i);
    ports_.out_grads[i] = append({variable, 0});
    // It has the shape and type of the output it belongs to.
    graph_.tensors.back() = {graph_.tensor(tensor).shape, graph_.tensor(tensor).dtype, Layout::plain};
    contribute(tensor, Symbol({{variable, 0}}));
  }
  const std::optional<Symbol>& sum = gradients_[tensor].sum;
  return sum ? *sum : apply("zeros_like", symbol_of(tensor));
}

class Differentiation::GradOfNode final : public Grad {
 public:
  GradOfNode(Differentiation& all, const GraphNode& node)
      : all_(all),
        node_(node),
        names_(node.op().all_inputs(node.source->params.get())),
        first_output_(node.first_output) {}

  Symbol input(std::string_view name) override { return input(index(name)); }
  Symbol input(size_t index) override { return all_.symbol_of(node_.inputs.at(index)); }
  size_t inputs() const override { return node_.inputs.size(); }
  Symbol output(size_t index) override { return all_.symbol_of(first_output_ + static_cast<int>(index)); }
  Symbol out_grad(size_t index) override { return all_.gradient_of(first_output_ + static_cast<int>(index)); }
  bool has_out_grad(size_t index) override {
    const TensorId tensor = first_output_ + static_cast<int>(index);
    return all_.gradients_[tensor].sum || all_.is_head(tensor);
  }
  bool wants(std::string_view name) override { return wants(index(name)); }
  bool wants(size_t index) override { return all_.matters_[all_.graph_.producer_id(node_.inputs.at(index))]; }
  void set(std::string_view name, const Symbol& gradient) override { set(index(name), gradient); }
  void set(size_t index, const Symbol& gradient) override {
    if (wants(index)) results.push_back({index, node_.inputs[index], gradient});
  }

  struct Result {
    size_t index;    // index of the input
    TensorId input;  // its tensor
    Symbol gradient;
  };
  std::vector<Result> results;

 private:
  size_t index(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    require(found != names_.end(), "the gradient of ", node_.op().name, " names an input '", name,
            "' that it does not have");
    return static_cast<size_t>(found - names_.begin());
  }

  Differentiation& all_;
  const GraphNode node_;  // a copy: appending may reallocate the graph's nodes
  const Names names_;
  const TensorId first_output_;
};

void Differentiation::visit(NodeId id) {
  if (!matters_[id] || graph_.node(id).is_variable()) return;
  const NodePtr source = graph_.node(id).source;
  if (!source->op->gradient && !source->op->refuses_gradient) return;
  GradOfNode gradient(*this, graph_.node(id));
  bool reached = false;
  for (int i = 0; i < graph_.node(id).outputs; ++i) reached |= gradient.has_out_grad(static_cast<size_t>(i));
  if (!reached) return;
  require(!source->op->refuses_gradient, "[", source->op->name, " ", source->name,
          "] has no gradient; put a BlockGrad after it where none is needed");

  BackwardNames names(source->name);
  placement_ = placement_of(*source);
  source->op->gradient(source->params.get(), gradient);
  // All are named before the first is appended to the graph: several may be outputs of one node.
  const size_t inputs = source->op->inputs(source->params.get()).size();
  for (const auto& [index, input, symbol] : gradient.results)
    name_gradient(*source, inputs, index, symbol.entries()[0]);
  for (const auto& [index, input, symbol] : gradient.results) contribute(input, symbol);
}

// Sets the name that a monitor shows for the gradient of one of so many inputs: fc1_backward_output1, or
// relu1_backward_output if there is only one. Existing nodes already have another meaning.
void Differentiation::name_gradient(const Node& forward, size_t inputs, size_t input, const Entry& gradient) const {
  if (id_.contains(gradient.node.get())) return;
  gradient.node->attributes.try_emplace(
      gradient_name_attribute(gradient.index),
      join(forward.name, "_backward_output", inputs == 1 ? "" : std::to_string(input)));
}

// For a variable that nothing depends on: the name comes from the node that reads it.
void Differentiation::name_zeros(TensorId variable, const Entry& zeros) const {
  for (size_t i = 0; i < forward_nodes_; ++i) {
    const auto& inputs = graph_.nodes[i].inputs;
    const auto found = std::find(inputs.begin(), inputs.end(), variable);
    if (found == inputs.end()) continue;
    const Node& reader = *graph_.nodes[i].source;
    return name_gradient(reader, reader.op->inputs(reader.params.get()).size(),
                         static_cast<size_t>(found - inputs.begin()), zeros);
  }
}

void Differentiation::finish(size_t request) {
  const NodeId variable = requests_[request].node;
  const GraphNode& node = graph_.node(variable);
  BackwardNames names(node.source->name);
  placement_ = placement_of(*node.source);
  const TensorId tensor = node.first_output;
  const bool is_zero = !gradients_[tensor].sum && !is_head(tensor);
  Symbol total = gradient_of(tensor);
  if (is_zero) name_zeros(tensor, total.entries()[0]);
  if (requests_[request].req == GradReq::add) {
    auto old = std::make_shared<Node>();
    old->name = graph_.node(variable).source->name + "_old_grad";
    ports_.old_grads[request] = append({old, 0});
    total = apply("elemwise_add", {Symbol({{old, 0}}), total});
  }
  const Entry& entry = total.entries()[0];
  graph_.outputs.push_back(graph_.node(append(entry)).first_output + entry.index);
}

// Appends the nodes that an entry needs and that the graph does not have yet; returns the id of its node.
NodeId Differentiation::append(const Entry& wanted) {
  struct Visit {
    const NodePtr* node;
    size_t next;
  };
  const auto known = id_.find(wanted.node.get());
  if (known != id_.end()) return known->second;
  std::vector<Visit> stack{{&wanted.node, 0}};
  while (!stack.empty()) {
    Visit& top = stack.back();
    const auto& inputs = (*top.node)->inputs;
    if (top.next < inputs.size()) {
      const NodePtr& below = inputs[top.next++].node;
      if (!id_.count(below.get())) stack.push_back({&below, 0});
      continue;
    }
    const NodePtr node = *top.node;
    stack.pop_back();
    if (id_.count(node.get())) continue;
    std::vector<TensorId> tensors;
    for (const Entry& input : inputs)
      tensors.push_back(graph_.node(id_.at(input.node.get())).first_output + input.index);
    // A backward node is where its forward node is, whatever scope the caller happens to be in.
    node->attributes.erase("__ctx_group__");
    node->attributes.insert(placement_.begin(), placement_.end());
    id_[node.get()] = graph_.append(node, std::move(tensors)).id;
  }
  return id_.at(wanted.node.get());
}

}  // namespace

GradientPorts add_gradient(Graph& graph, const std::vector<GradientRequest>& requests) {
  return Differentiation(graph, requests).run();
}

}  // namespace symbind
