#include "symbind/train/mixed_precision.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "symbind/core/error.h"
#include "symbind/graph/gradient_probe.h"
#include "symbind/graph/op.h"
#include "symbind/graph/rewriting.h"
#include "symbind/ops/amp.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"
#include "symbind/train/names.h"

namespace symbind {
namespace {

// How a network's nodes are computed.
class Classifier {
 public:
  explicit Classifier(const PrecisionRules& rules)
      : full_nodes_(rules.full_nodes.begin(), rules.full_nodes.end()), full_if_(rules.full_if) {
    // An operator in two lists is computed as the first one states.
    add(rules.low, Precision::low);
    add(rules.full, Precision::full);
    add(rules.widest, Precision::widest);
    add(rules.narrowest, Precision::narrowest);
  }

  Precision of(const Node& node) const {
    if (full_nodes_.contains(node.name)) return Precision::full;
    for (const auto& [op, parameter, values] : full_if_)
      if (find(op) == node.op && contains(values, value_of(node, parameter))) return Precision::full;
    const auto found = precisions_.find(node.op);
    return found == precisions_.end() ? Precision::as_given : found->second;
  }

 private:
  // Lists may name operators that only MXNet has.
  static const OpDef* find(const std::string& op) { return OpRegistry::get().find_or_null(op); }
  void add(const std::vector<std::string>& ops, Precision precision) {
    for (const std::string& op : ops)
      if (const OpDef* found = find(op)) precisions_.try_emplace(found, precision);
  }
  static std::string value_of(const Node& node, const std::string& parameter) {
    const auto given = node.attributes.find(parameter);
    return given == node.attributes.end() ? "" : given->second;
  }

  std::map<const OpDef*, Precision> precisions_;
  std::set<std::string> full_nodes_;
  std::vector<PrecisionRules::Condition> full_if_;
};

size_t argument_count(const Node& node) { return node.inputs.size() - node.op->aux(node.params.get()).size(); }

// A new node is computed where the one that it reads is.
Entry placed_with(const Entry& source, const Symbol& made) {
  Entry entry = made.entries()[0];
  if (const std::string* group = find_attribute(source.node->attributes, "__ctx_group__"))
    entry.node->attributes.emplace("__ctx_group__", *group);
  return entry;
}

// Casts, each shared by all readers.
class Casts {
 public:
  // For a reader that gives variables of unknown type float32 itself.
  Entry float32_or_variable(const Entry& entry) {
    return entry.node->is_variable() ? entry : get(entry, DType::float32);
  }
  Entry get(const Entry& entry, DType type) {
    const Node& node = *entry.node;
    auto [found, is_new] = made_.try_emplace({entry.node.get(), entry.index, type});
    if (is_new) {
      const std::string index = entry.index > 0 ? std::to_string(entry.index) : "";
      const std::string source = node.is_variable() ? node.name : join(node.name, "_output", index);
      found->second =
          placed_with(entry, amp_cast(Symbol({entry}), {.dtype = type}, join(source, "_amp_cast_", name_of(type))));
    }
    return found->second;
  }

 private:
  std::map<std::tuple<const Node*, int, DType>, Entry> made_;
};

// Casts those of the inputs of `node` to one type, the widest or the narrowest among them.
void cast_to_common_type(const Node& node, const std::vector<size_t>& chosen, bool narrow, std::vector<Entry>& inputs) {
  if (chosen.size() < 2) return;
  std::vector<Symbol> symbols;
  for (const size_t i : chosen) symbols.push_back(Symbol({inputs[i]}));
  const Symbol casts =
      amp_multicast(Inputs(symbols), {.num_outputs = static_cast<int64_t>(chosen.size()), .cast_narrow = narrow},
                    node.name + "_amp_multicast");
  placed_with(inputs[chosen[0]], casts);
  for (size_t i = 0; i < chosen.size(); ++i) inputs[chosen[i]] = casts.entries()[i];
}

// The inputs of a node by index, without auxiliary states.
struct InputsByPrecision {
  std::vector<size_t> full;  // float32 whatever the precision of the node
  std::vector<size_t> others;
};

InputsByPrecision inputs_by_precision(const Node& node) {
  const Names& full = node.op->full_precision_inputs;
  const Names names = full.empty() ? Names{} : node.op->inputs(node.params.get());
  InputsByPrecision result;
  for (size_t i = 0; i < argument_count(node); ++i)
    (!full.empty() && contains(full, names[i]) ? result.full : result.others).push_back(i);
  return result;
}

// The type of each output of a node, from those of the inputs.
std::map<std::pair<const Node*, int>, DType> types_inside(const Symbol& network, const NamedTypes& inputs) {
  const Symbol internals = network.get_internals();
  const std::vector<DType> inferred = infer_type(internals, inputs).outputs;
  std::map<std::pair<const Node*, int>, DType> types;
  for (size_t i = 0; i < inferred.size(); ++i)
    types[{internals.entries()[i].node.get(), internals.entries()[i].index}] = inferred[i];
  return types;
}

}  // namespace

PrecisionRules default_precision_rules() {
  PrecisionRules rules;
  const auto list_of = [&](Precision precision) -> std::vector<std::string>* {
    switch (precision) {
      case Precision::low:
        return &rules.low;
      case Precision::full:
        return &rules.full;
      case Precision::widest:
        return &rules.widest;
      case Precision::narrowest:
        return &rules.narrowest;
      case Precision::as_given:
        break;
    }
    return nullptr;
  };
  for (const OpDef* op : OpRegistry::get().all_public()) {
    if (std::vector<std::string>* list = list_of(op->precision)) {
      list->push_back(op->name);
      list->insert(list->end(), op->aliases.begin(), op->aliases.end());
    }
    if (const auto& [parameter, values] = op->full_precision_if; !parameter.empty())
      rules.full_if.push_back({op->name, parameter, values});
  }
  return rules;
}

Symbol mixed_precision(const Symbol& network, DType target, const PrecisionRules& rules) {
  require(is_half(target), "[mixed precision] networks compute in float16 or bfloat16, not ", target);
  const Classifier classifier(rules);
  Rewriting rewriting(network);
  Casts casts;
  for (const NodePtr& node : rewriting.nodes()) {
    if (node->is_variable()) {
      rewriting.put(node, node);
      continue;
    }
    std::vector<Entry> inputs = rewriting.inputs_of(*node);
    const auto [full, others] = inputs_by_precision(*node);
    const Precision precision = classifier.of(*node);
    for (const size_t i : full) inputs[i] = casts.float32_or_variable(inputs[i]);
    switch (precision) {
      case Precision::as_given:
        break;
      case Precision::low:
        for (const size_t i : others) inputs[i] = casts.get(inputs[i], target);
        break;
      case Precision::full:
        for (const size_t i : others) inputs[i] = casts.float32_or_variable(inputs[i]);
        break;
      case Precision::widest:
      case Precision::narrowest:
        cast_to_common_type(*node, others, precision == Precision::narrowest, inputs);
        break;
    }
    rewriting.put(node, Rewriting::with_inputs(*node, std::move(inputs)));
  }
  return Symbol(rewriting.outputs());
}

Symbol with_low_parameters(const Symbol& converted, DType target, const std::vector<std::string>& except) {
  Rewriting rewriting(converted);
  std::map<const Node*, bool> only_cast;  // variables: is each reader a cast to the target?
  for (const NodePtr& node : rewriting.nodes())
    for (const Entry& input : node->inputs) {
      const bool casts =
          node->op == &op_of<AmpCast>() && DType(static_cast<const AmpCast*>(node->params.get())->dtype) == target;
      const auto [found, is_new] = only_cast.try_emplace(input.node.get(), casts);
      found->second &= casts;
    }
  for (const NodePtr& node : rewriting.nodes()) {
    NodePtr made = Rewriting::with_inputs(*node, rewriting.inputs_of(*node));
    const auto found = only_cast.find(node.get());
    if (node->is_variable() && found != only_cast.end() && found->second && !contains(except, node->name))
      made->attributes["__dtype__"] = std::to_string(static_cast<int>(target));
    rewriting.put(node, std::move(made));
  }
  return Symbol(rewriting.outputs());
}

DType effective_compute_dtype(DType compute_dtype) {
  if (compute_dtype == DType::none) return DType::float32;
  require(is_half(compute_dtype) || compute_dtype == DType::float32,
          "[compute_dtype] must be float32, float16 or bfloat16, not ", compute_dtype);
  return compute_dtype;
}

bool computes_in_16_bits(DType compute_dtype) { return is_half(effective_compute_dtype(compute_dtype)); }

void require_float32(const Symbol& network, DType target, const NamedTypes& inputs) {
  NamedTypes wide = inputs;
  std::erase_if(wide, [](const auto& input) { return input.second != DType::float64; });
  if (wide.empty()) return;
  const std::map<std::pair<const Node*, int>, DType> types = types_inside(network, wide);
  const Classifier classifier(default_precision_rules());
  for (const NodePtr& node : topological_order(network.entries())) {
    if (node->is_variable() || classifier.of(*node) != Precision::low) continue;
    const std::vector<size_t> low = inputs_by_precision(*node).others;
    const bool is_wide = std::ranges::any_of(low, [&](size_t i) {
      return types.at({node->inputs[i].node.get(), node->inputs[i].index}) == DType::float64;
    });
    if (!is_wide) continue;
    const std::vector<std::string> read = Symbol({{node, 0}}).list_arguments();
    const auto source = std::ranges::find_if(wide, [&](const auto& input) { return contains(read, input.first); });
    fail("[compute_dtype] only networks of float32 compute in ", target, "; '",
         (source == wide.end() ? wide.begin() : source)->first, "' has type float64, which reaches ", node->op->name,
         " '", node->name, "'");
  }
}

Symbol computed_in(const Symbol& network, DType target) {
  std::vector<Entry> outputs = mixed_precision(network, target).entries();
  Casts casts;
  for (Entry& output : outputs) {
    const Node& node = *output.node;
    if (node.is_variable() || is_loss(node)) continue;
    const Entry cast = casts.get(output, DType::float32);
    // The cast of an output without a gradient has none either: backward() needs no gradient for it.
    output = passes_gradient(node) ? cast : stop_gradient(Symbol({cast})).entries()[0];
  }
  return Symbol(std::move(outputs));
}

Symbol with_scaled_loss(const Symbol& network, const std::vector<std::string>& arguments, const std::string& scale,
                        const std::string& inverse) {
  const Symbol factor = Symbol::variable(scale), inverse_factor = Symbol::variable(inverse);
  const auto scaled = [](const Entry& entry, const Symbol& by) {
    const std::string index = entry.index > 0 ? std::to_string(entry.index) : "";
    return placed_with(entry, scale_gradient(Symbol({entry}), by, {}, join(entry.node->name, index, "_scaled")));
  };
  Rewriting rewriting(network);
  for (const NodePtr& node : rewriting.nodes()) {
    if (node->is_variable()) {
      rewriting.put(node, contains(arguments, node->name) ? scaled({node, 0}, inverse_factor).node : node);
      continue;
    }
    std::vector<Entry> inputs = rewriting.inputs_of(*node);
    const bool is_unscaled = node->op->own_gradient_terms && passes_gradient(*node);
    if (is_unscaled || is_loss(*node))
      for (const size_t i : probe_gradient(*node).inputs_with_gradient) inputs[i] = scaled(inputs[i], factor);
    const NodePtr made = Rewriting::with_inputs(*node, std::move(inputs));
    rewriting.put(node, made);
    if (!is_unscaled) continue;
    for (int i = 0; i < node->op->visible_outputs(node->params.get()); ++i)
      rewriting.put_output(node, i, scaled({made, i}, inverse_factor));
  }
  std::vector<Entry> outputs = rewriting.outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (passes_gradient(*network.entries()[i].node)) outputs[i] = scaled(outputs[i], factor);
  return Symbol(std::move(outputs));
}

}  // namespace symbind
