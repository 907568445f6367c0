#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_set>

#include "symbind/core/error.h"
#include "symbind/ops/subgraph.h"
#include "symbind/passes/infer_graph.h"

namespace symbind {
namespace {

bool is_known(const Shape& shape) { return shape.known(); }
bool is_known(DType dtype) { return dtype != DType::none; }

bool unify(DType& known, DType other) {
  if (known == DType::none) known = other;
  return other == DType::none || known == other;
}

// Which nodes read which tensor.
class Users {
 public:
  explicit Users(const Graph& graph) : begins_(graph.tensors.size() + 1, 0) {
    for (const GraphNode& node : graph.nodes)
      for (const TensorId input : node.inputs) ++begins_[input + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    nodes_.resize(begins_.back());
    PerTensor<size_t> next = begins_;
    for (const GraphNode& node : graph.nodes)
      for (const TensorId input : node.inputs) nodes_[next[input]++] = node.id;
  }
  std::span<const NodeId> of(TensorId tensor) const {
    return std::span(nodes_).subspan(begins_[tensor], begins_[tensor + 1] - begins_[tensor]);
  }

 private:
  PerTensor<size_t> begins_;  // offset in nodes_; one more entry at the end
  std::vector<NodeId> nodes_;
};

// Infers one quantity (shape or type) of every tensor. Every operator runs once, in order; after that only those with a
// tensor whose value changed, alternating from the last to the first and back until a fixed point: so inference from
// the end of a long network costs no more than from its beginning.
template <class Value, Value Tensor::*member>
class Learner {
 public:
  using Ask = std::function<void(const void*, Inference<Value>&)> OpDef::*;

  Learner(Graph& graph, Ask ask) : graph_(graph), users_(graph), ask_(ask), settled_(graph.nodes.size(), false) {}

  void learn() {
    for (const GraphNode& node : graph_.nodes) {
      now_ = node.id;
      visit(node);
    }
    is_first_round_ = false;
    for (bool forward = false; !open_.empty(); forward = !forward) forward ? sweep_forward() : sweep_backward();
  }

 private:
  void sweep_forward() {
    for (auto next = open_.begin(); next != open_.end(); next = open_.upper_bound(now_)) take(next);
  }
  void sweep_backward() {
    for (auto next = open_.end(); next != open_.begin(); next = open_.lower_bound(now_)) take(std::prev(next));
  }
  void take(std::set<NodeId>::iterator node) {
    now_ = *node;
    open_.erase(node);
    visit(graph_.node(now_));
  }

  void visit(const GraphNode& node) {
    if (node.is_variable() || settled_[node.id]) return;
    const void* params = node.source->params.get();
    const Names input_names = node.op().all_inputs(params), output_names = node.op().outputs(params);
    values_.clear();
    for (const TensorId input : node.inputs) values_.push_back(graph_.tensor(input).*member);
    for (int i = 0; i < node.outputs; ++i) values_.push_back(graph_.tensor(node.first_output + i).*member);
    const std::span<Value> all(values_);
    const auto inputs = all.first(node.inputs.size()), outputs = all.subspan(node.inputs.size());
    Inference<Value> inference("[" + node.op().name + " " + node.source->name + "]", input_names, inputs, output_names,
                               outputs);
    try {
      (node.op().*ask_)(params, inference);
    } catch (const Error& error) {
      fail(error.what(), inputs_of(node, input_names));
    }
    settled_[node.id] = std::all_of(values_.begin(), values_.end(), [](const Value& value) { return is_known(value); });
    if (!inference.changed()) return;
    for (size_t i = 0; i < node.inputs.size(); ++i) learnt(node.inputs[i], inputs[i], inference.where());
    for (int i = 0; i < node.outputs; ++i)
      learnt(node.first_output + i, outputs[static_cast<size_t>(i)], inference.where());
    open(node.id);
  }

  // Every node with this tensor runs once more. A tensor that is two inputs of a node gets what is inferred for either.
  void learnt(TensorId id, const Value& value, const std::string& where) {
    Value& known = graph_.tensor(id).*member;
    Value both = known;
    if (!unify(both, value)) fail(where, " one array is two of its inputs, which need ", known, " and ", value);
    if (known == both) return;
    known = both;
    open(graph_.producer_id(id));
    for (const NodeId user : users_.of(id)) open(user);
  }

  // In the first round the nodes after this one have not run yet.
  void open(NodeId node) {
    const bool still_to_come = is_first_round_ && node > now_;
    if (!still_to_come && !settled_[node] && !graph_.node(node).is_variable()) open_.insert(node);
  }

  // "; lhs = a (2,3), rhs = b (3,2)": where the inputs come from. Variables named after the node itself are omitted.
  std::string inputs_of(const GraphNode& node, const Names& input_names) {
    constexpr size_t most = 8;
    std::vector<std::string> parts;
    for (size_t i = 0; i < node.inputs.size() && parts.size() < most; ++i) {
      const std::string& source = graph_.producer(node.inputs[i]).source->name;
      if (source == node.source->name + "_" + input_names[i]) continue;
      parts.push_back(join(input_names[i], " = ", source, " ", graph_.tensor(node.inputs[i]).*member));
    }
    return parts.empty() ? "" : "; " + comma_separated(parts);
  }

  Graph& graph_;
  const Users users_;
  Ask ask_;
  PerNode<bool> settled_;
  bool is_first_round_ = true;
  NodeId now_ = NodeId::none;
  std::set<NodeId> open_;  // nodes to run once more
  std::vector<Value> values_;
};

void infer_shapes(Graph& graph) { Learner<Shape, &Tensor::shape>(graph, &OpDef::infer_shape).learn(); }
void infer_types(Graph& graph) { Learner<DType, &Tensor::dtype>(graph, &OpDef::infer_type).learn(); }

Tensor& variable_tensor(Graph& graph, const GraphNode& node) { return graph.tensor(node.first_output); }

// Applies the attributes of variables (__shape__, __dtype__) where the caller gave no value.
void read_attributes(Graph& graph) {
  for (const GraphNode& node : graph.nodes) {
    if (!node.is_variable() || node.source->attributes.empty()) continue;
    Tensor& tensor = variable_tensor(graph, node);
    if (const std::string* text = find_attribute(node.source->attributes, "__shape__")) {
      Tuple dims;
      parse(*text, dims);
      const Shape declared = Shape::from_public(dims);
      if (Shape both = tensor.shape; unify(both, declared)) tensor.shape = both;
    }
    const std::string* text = find_attribute(node.source->attributes, "__dtype__");
    if (text && tensor.dtype == DType::none) parse(*text, tensor.dtype);
  }
}

// Names of variables (or of outputs, when every variable is known) without a known value.
template <class Known>
std::string unknown_names(const Graph& graph, Known known) {
  std::vector<std::string> names;
  const auto collect = [&](bool variables) {
    for (const GraphNode& node : graph.nodes)
      if (node.is_variable() == variables && names.size() < 20 && !known(graph.tensor(node.first_output)))
        names.push_back(node.source->name);
  };
  collect(true);
  if (names.empty()) collect(false);
  return comma_separated(names);
}

// The tensors of a symbol's variables and outputs, sorted into its three lists.
template <class Result, class Get>
Result sorted(const Graph& graph, const Symbol& symbol, Get get) {
  const auto aux_names = symbol.list_auxiliary_states();
  const std::unordered_set<std::string> aux(aux_names.begin(), aux_names.end());
  Result result;
  for (const GraphNode& node : graph.nodes)
    if (node.is_variable())
      (aux.count(node.source->name) ? result.aux : result.args).push_back(get(graph.tensor(node.first_output)));
  for (const TensorId output : graph.outputs) result.outputs.push_back(get(graph.tensor(output)));
  return result;
}

// Sets what is known of named variables; an unknown name fails.
template <class Known, class Set>
void give(Graph& graph, const Known& known, Set set) {
  std::unordered_set<std::string> found;
  for (const GraphNode& node : graph.nodes) {
    if (!node.is_variable()) continue;
    const auto given = known.find(node.source->name);
    if (given == known.end()) continue;
    set(variable_tensor(graph, node), given->second);
    found.insert(node.source->name);
  }
  for (const auto& [name, value] : known) {
    if (found.count(name)) continue;
    std::vector<std::string> names;
    for (const GraphNode& node : graph.nodes)
      if (node.is_variable() && names.size() < 50) names.push_back(node.source->name);
    fail("the network has no argument '", name, "'; it has ", comma_separated(names));
  }
}

Graph with_shapes(const Symbol& symbol, const NamedShapes& known) {
  Graph graph = Graph::from(symbol);
  give(graph, known, [](Tensor& tensor, const Shape& shape) { tensor.shape = Shape::from_public(shape.dims()); });
  read_attributes(graph);
  infer_shapes(graph);
  return graph;
}

bool all_shapes_known(const Graph& graph) {
  return std::all_of(graph.tensors.begin(), graph.tensors.end(), [](const Tensor& t) { return t.shape.known(); });
}

void require_shapes(const Graph& graph) {
  if (all_shapes_known(graph)) return;
  fail("shapes stay unknown: ", unknown_names(graph, [](const Tensor& t) { return t.shape.known(); }),
       "; give the shapes of more inputs");
}

}  // namespace

InferredShapes infer_shape_partial(const Symbol& symbol, const NamedShapes& known) {
  const Graph graph = with_shapes(symbol, known);
  auto result = sorted<InferredShapes>(graph, symbol, [](const Tensor& t) { return t.shape.to_public(); });
  result.complete = all_shapes_known(graph);
  return result;
}

InferredShapes infer_shape(const Symbol& symbol, const NamedShapes& known) {
  const Graph graph = with_shapes(symbol, known);
  require_shapes(graph);
  auto result = sorted<InferredShapes>(graph, symbol, [](const Tensor& t) { return t.shape.to_public(); });
  result.complete = true;
  return result;
}

InferredTypes infer_type(const Symbol& symbol, const NamedTypes& known) {
  Graph graph = Graph::from(symbol);
  give(graph, known, [](Tensor& tensor, DType dtype) { tensor.dtype = dtype; });
  read_attributes(graph);
  infer_types(graph);
  auto result = sorted<InferredTypes>(graph, symbol, [](const Tensor& t) { return t.dtype; });
  result.complete =
      std::all_of(graph.tensors.begin(), graph.tensors.end(), [](const Tensor& t) { return t.dtype != DType::none; });
  return result;
}

void set_shapes(Graph& graph, const NamedShapes& known) {
  give(graph, known, [](Tensor& tensor, const Shape& shape) { tensor.shape = shape; });
}

void set_types(Graph& graph, const NamedTypes& known) {
  give(graph, known, [](Tensor& tensor, DType dtype) { tensor.dtype = dtype; });
}

void infer(Graph& graph) {
  read_attributes(graph);
  infer_shapes(graph);
  require_shapes(graph);
  for (const Tensor& tensor : graph.tensors) tensor.shape.size();  // fails if the number of elements overflows
  infer_types(graph);
  bool guessed = false;
  for (const GraphNode& node : graph.nodes) {
    if (!node.is_variable() || variable_tensor(graph, node).dtype != DType::none) continue;
    variable_tensor(graph, node).dtype = DType::float32;
    guessed = true;
  }
  if (guessed) infer_types(graph);
  const auto known = [](const Tensor& t) { return t.dtype != DType::none; };
  if (!std::all_of(graph.tensors.begin(), graph.tensors.end(), known))
    fail("types stay unknown: ", unknown_names(graph, known));
}

// ---- Networks inside a network --------------------------------------------------------------------------------------

namespace {

template <class Value, Value Tensor::*member, class Infer>
void infer_inside(const Subgraph& inside, std::span<Value> variables, std::span<Value> outputs, Infer infer) {
  Graph graph = Graph::from(inside.network());
  std::vector<TensorId> ids;
  for (const Symbol& variable : inside.variables())
    for (const GraphNode& node : graph.nodes)
      if (node.source == variable.entries()[0].node) ids.push_back(node.first_output);
  for (size_t i = 0; i < ids.size(); ++i) graph.tensor(ids[i]).*member = variables[i];
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value& known = graph.tensor(graph.outputs[i]).*member;
    Value both = known;
    if (unify(both, outputs[i])) known = both;
  }
  infer(graph);
  for (size_t i = 0; i < ids.size(); ++i) variables[i] = graph.tensor(ids[i]).*member;
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = graph.tensor(graph.outputs[i]).*member;
}

}  // namespace

void infer_subgraph(const Subgraph& graph, std::span<Shape> variables, std::span<Shape> outputs) {
  infer_inside<Shape, &Tensor::shape>(graph, variables, outputs, infer_shapes);
}
void infer_subgraph(const Subgraph& graph, std::span<DType> variables, std::span<DType> outputs) {
  infer_inside<DType, &Tensor::dtype>(graph, variables, outputs, infer_types);
}

}  // namespace symbind
