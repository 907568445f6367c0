#include "symbind/graph/symbol.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "symbind/core/atomic_file.h"
#include "symbind/core/error.h"
#include "symbind/core/input_file.h"
#include "symbind/core/near_names.h"
#include "symbind/graph/builder.h"
#include "symbind/graph/json.h"
#include "symbind/graph/op.h"

namespace symbind {
namespace {

NodePtr make_variable(const std::string& name, Attributes attributes) {
  auto node = std::make_shared<Node>();
  node->name = name;
  node->attributes = std::move(attributes);
  return node;
}

std::string output_name(const Entry& entry) {
  const Node& node = *entry.node;
  if (node.is_variable()) return node.name;
  return node.name + "_" + node.op->output_name(node.params.get(), static_cast<size_t>(entry.index));
}

// The variables that some operator updates.
std::unordered_set<const Node*> auxiliary_nodes(const std::vector<NodePtr>& order) {
  std::unordered_set<const Node*> aux;
  for (const NodePtr& node : order) {
    if (node->is_variable()) continue;
    const size_t count = node->op->aux_count(node->params.get());
    for (size_t i = node->inputs.size() - count; i < node->inputs.size(); ++i)
      if (node->inputs[i].node->is_variable()) aux.insert(node->inputs[i].node.get());
  }
  return aux;
}

enum class Which { arguments, auxiliary, both };

std::vector<std::string> list_variables(const std::vector<Entry>& outputs, Which which) {
  const auto order = topological_order(outputs);
  const auto aux = auxiliary_nodes(order);
  std::vector<std::string> names;
  for (const NodePtr& node : order)
    if (node->is_variable() && (which == Which::both || (aux.count(node.get()) > 0) == (which == Which::auxiliary)))
      names.push_back(node->name);
  return names;
}

// These attributes as Python writes them.
std::string shape_text(const Shape& shape) {
  Tuple dims = shape.to_public();
  return print(dims);
}

}  // namespace

Symbol::Symbol(std::vector<Entry> outputs) : outputs_(std::move(outputs)) {
  require(!outputs_.empty(), "a symbol needs at least one output");
}
Symbol::~Symbol() = default;
Symbol::Symbol(const Symbol&) = default;
Symbol::Symbol(Symbol&&) noexcept = default;
Symbol& Symbol::operator=(const Symbol&) = default;
Symbol& Symbol::operator=(Symbol&&) noexcept = default;

Symbol Symbol::variable(const std::string& name, const VariableOptions& options) {
  require(!name.empty(), "a variable needs a name");
  Attributes own;
  for (const auto& [key, value] : options.attr) own[is_steering(key) ? hidden_key(key) : key] = value;
  if (options.shape.rank_known()) own["__shape__"] = shape_text(options.shape);
  if (options.lr_mult) own["__lr_mult__"] = print(*options.lr_mult);
  if (options.wd_mult) own["__wd_mult__"] = print(*options.wd_mult);
  if (options.dtype != DType::none) own["__dtype__"] = std::to_string(static_cast<int>(options.dtype));
  if (!options.init.empty()) own["__init__"] = options.init;
  return Symbol({{make_variable(name, AttrScope::merged(own)), 0}});
}

Symbol Symbol::group(const std::vector<Symbol>& symbols) {
  require(!symbols.empty(), "a group needs at least one symbol");
  std::vector<Entry> all;
  for (const Symbol& symbol : symbols) all.insert(all.end(), symbol.outputs_.begin(), symbol.outputs_.end());
  return Symbol(std::move(all));
}

Symbol Symbol::operator()(const std::map<std::string, Symbol>& replacements, const std::string& name) const {
  const auto order = topological_order(outputs_);
  std::unordered_map<const Node*, Entry> replaced;  // where output 0 of a node went; other outputs follow the node
  std::unordered_set<std::string> used;
  for (const NodePtr& node : order) {
    if (node->is_variable()) {
      const auto found = replacements.find(node->name);
      if (found == replacements.end()) {
        replaced[node.get()] = {node, 0};
      } else {
        require(found->second.size() == 1, "'", node->name, "' can be replaced by one output, not by ",
                found->second.size());
        replaced[node.get()] = found->second.outputs_[0];
        used.insert(node->name);
      }
      continue;
    }
    auto copy = std::make_shared<Node>(*node);
    for (Entry& input : copy->inputs) {
      const Entry& target = replaced.at(input.node.get());
      const bool was_variable = input.node->is_variable();
      input = {target.node, was_variable ? target.index : input.index};
    }
    replaced[node.get()] = {std::move(copy), 0};
  }
  for (const auto& [key, symbol] : replacements)
    if (used.count(key) == 0) fail("the network has no argument '", key, "'; it has ", comma_separated(list_inputs()));
  std::vector<Entry> outputs;
  for (const Entry& output : outputs_) {
    const Entry& target = replaced.at(output.node.get());
    outputs.push_back({target.node, output.node->is_variable() ? target.index : output.index});
  }
  if (!name.empty() && outputs.size() == 1 && !outputs[0].node->is_variable()) outputs[0].node->name = name;
  return Symbol(std::move(outputs));
}

Symbol Symbol::operator()(const std::vector<Symbol>& replacements, const std::string& name) const {
  const auto arguments = list_arguments();
  require(replacements.size() <= arguments.size(), replacements.size(), " symbols were given for ", arguments.size(),
          " arguments");
  std::map<std::string, Symbol> by_name;
  for (size_t i = 0; i < replacements.size(); ++i) by_name.emplace(arguments[i], replacements[i]);
  return (*this)(by_name, name);
}

Symbol Symbol::operator[](size_t index) const {
  require(index < size(), "output ", index, " was asked of a symbol with ", size());
  return Symbol({outputs_[index]});
}

Symbol Symbol::operator[](const std::string& wanted) const {
  const Entry* found = nullptr;
  for (const Entry& output : outputs_) {
    if (output_name(output) != wanted) continue;
    require(found == nullptr, "there are several outputs named '", wanted, "'");
    found = &output;
  }
  if (!found) fail("unknown output '", wanted, "'", suggestion(wanted, list_outputs()));
  return Symbol({*found});
}

std::string Symbol::name() const {
  const Node* only = outputs_[0].node.get();
  for (const Entry& output : outputs_)
    if (output.node.get() != only) return "";
  return only->name;
}

std::optional<std::string> Symbol::attr(const std::string& key) const {
  if (name().empty()) return std::nullopt;
  const Attributes& attributes = outputs_[0].node->attributes;
  const auto found = attributes.find(key);
  if (found != attributes.end()) return found->second;
  // AttrScope stores every attribute with underscores, so a plain name also finds the form with underscores.
  const std::string* hidden = find_attribute(attributes, key);
  return hidden ? std::optional(*hidden) : std::nullopt;
}

namespace {

// Attributes that control execution are shown under both spellings; the networks that are parameters
// (ops/control_flow.h) are not shown.
Attributes both_spellings(const Attributes& attributes) {
  Attributes all = attributes;
  std::erase_if(all, [](const auto& each) { return each.first.starts_with("subgraph:"); });
  for (const auto& [key, value] : attributes)
    if (key.size() > 4 && key.starts_with("__") && is_steering(std::string_view(key).substr(2, key.size() - 4)))
      all[key.substr(2, key.size() - 4)] = value;
  return all;
}

}  // namespace

Attributes Symbol::list_attr() const {
  return name().empty() ? Attributes{} : both_spellings(outputs_[0].node->attributes);
}

std::map<std::string, Attributes> Symbol::attr_dict() const {
  std::map<std::string, Attributes> all;
  for (const NodePtr& node : topological_order(outputs_))
    if (!node->attributes.empty()) all[node->name] = both_spellings(node->attributes);
  return all;
}

void Symbol::set_attr(const Attributes& attributes) {
  require(!name().empty(), "attributes can be set on a single node, not on a group");
  Node& node = *outputs_[0].node;
  for (const auto& [key, value] : attributes) {
    if (!node.is_variable() && !key.starts_with("__") && !is_steering(key)) {
      Attributes changed = node.attributes;
      changed[key] = value;
      node.params = node.op->parse_params(changed, node.name);
    }
    node.attributes[is_steering(key) ? hidden_key(key) : key] = value;
  }
}

std::vector<std::string> Symbol::list_arguments() const { return list_variables(outputs_, Which::arguments); }
std::vector<std::string> Symbol::list_auxiliary_states() const { return list_variables(outputs_, Which::auxiliary); }
std::vector<std::string> Symbol::list_inputs() const { return list_variables(outputs_, Which::both); }

std::vector<std::string> Symbol::list_outputs() const {
  std::vector<std::string> names;
  for (const Entry& output : outputs_) names.push_back(output_name(output));
  return names;
}

Symbol Symbol::get_internals() const {
  std::vector<Entry> all;
  for (const NodePtr& node : topological_order(outputs_)) {
    const int count = node->is_variable() ? 1 : node->op->visible_outputs(node->params.get());
    for (int i = 0; i < count; ++i) all.push_back({node, i});
  }
  return Symbol(std::move(all));
}

std::optional<Symbol> Symbol::get_children() const {
  std::vector<Entry> children;
  std::unordered_set<const Node*> seen;
  for (const Entry& output : outputs_)
    if (seen.insert(output.node.get()).second)
      children.insert(children.end(), output.node->inputs.begin(), output.node->inputs.end());
  return children.empty() ? std::nullopt : std::optional(Symbol(std::move(children)));
}

std::string Symbol::tojson() const { return to_json(*this); }

void Symbol::save(const std::string& file) const { write_file_atomically(file, tojson()); }

Symbol Symbol::load(const std::string& file) { return from_json(read_whole_file(file), file); }

Symbol Symbol::load_json(std::string_view text) { return from_json(text, "JSON text"); }

std::string Symbol::debug_str() const {
  TextStream out;
  const auto order = topological_order(outputs_);
  const auto aux = auxiliary_nodes(order);
  if (outputs_.size() == 1 && outputs_[0].node->is_variable()) return "Variable:" + outputs_[0].node->name + "\n";
  out << "Symbol Outputs:\n";
  for (size_t i = 0; i < outputs_.size(); ++i)
    out << "\toutput[" << i << "]=" << outputs_[i].node->name << "(" << outputs_[i].index << ")\n";
  for (const NodePtr& node : order) {
    if (node->is_variable()) {
      out << "Variable:" << node->name << "\n";
      continue;
    }
    out << "--------------------\nOp:" << node->op->name << ", Name=" << node->name << "\nInputs:\n";
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Entry& input = node->inputs[i];
      out << "\targ[" << i << "]=" << input.node->name << "(" << input.index << ")";
      if (input.node->is_variable()) out << " version=" << aux.count(input.node.get());
      out << "\n";
    }
    if (!node->attributes.empty()) out << "Attrs:\n";
    for (const auto& [key, value] : node->attributes) out << "\t" << key << "=" << value << "\n";
  }
  return out.str();
}

// ---- New nodes ------------------------------------------------------------------------------------------------------

namespace {

// A hint for the name, in lower case: what the user called the operator, which may be an alias.
Symbol make_node(const OpDef& op, const Inputs& given, std::shared_ptr<const void> params, Attributes attributes,
                 const std::string& name, const std::string& hint) {
  auto node = std::make_shared<Node>();
  node->op = &op;
  node->name = NameManager::current().get(name, hint);
  node->params = std::move(params);
  node->attributes = AttrScope::merged(attributes);

  const std::string where = "[" + op.name + " " + node->name + "]";
  // Without any inputs all become variables.
  if (const size_t count = given.positional().size() + given.named().size(); count > 0)
    op.check_count(node->params.get(), count, node->name);
  const Names names = op.all_inputs(node->params.get());
  std::vector<const Symbol*> by_position(names.size(), nullptr);
  if (given.positional().size() > names.size())
    fail(where, " takes ", names.size(), " inputs (", comma_separated(names), "), not ", given.positional().size());
  for (size_t i = 0; i < given.positional().size(); ++i) by_position[i] = &given.positional()[i];
  std::unordered_map<std::string_view, size_t> position;
  if (!given.named().empty())
    for (size_t i = 0; i < names.size(); ++i) position.emplace(names[i], i);
  for (const auto& [input, symbol] : given.named()) {
    const auto found = position.find(input);
    if (found == position.end()) fail(where, " has no input '", input, "'; it has ", comma_separated(names));
    const Symbol*& slot = by_position[found->second];
    require(slot == nullptr, where, " input '", input, "' is given twice");
    slot = &symbol;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (by_position[i]) {
      require(by_position[i]->size() == 1, where, " input '", names[i], "' must be one output, not a group of ",
              by_position[i]->size());
      node->inputs.push_back(by_position[i]->entries()[0]);
      continue;
    }
    Attributes inherited = node->attributes;
    const auto init = op.input_attributes.find(names[i]);
    if (init != op.input_attributes.end()) inherited["__init__"] = init->second;
    node->inputs.push_back({make_variable(node->name + "_" + names[i], std::move(inherited)), 0});
  }
  std::vector<Entry> outputs;
  const int visible = op.visible_outputs(node->params.get());
  for (int i = 0; i < visible; ++i) outputs.push_back({node, i});
  return Symbol(std::move(outputs));
}

}  // namespace

Inputs::Inputs(const Symbol& only) : positional_{only} {}
Inputs::Inputs(std::initializer_list<Symbol> inputs) : positional_(inputs) {}
Inputs::Inputs(std::vector<Symbol> inputs) : positional_(std::move(inputs)) {}
Inputs::Inputs(std::initializer_list<std::pair<const char*, Symbol>> named) : named_(named.begin(), named.end()) {}
Inputs::~Inputs() = default;
Inputs::Inputs(const Inputs&) = default;
Inputs::Inputs(Inputs&&) noexcept = default;
Inputs& Inputs::operator=(const Inputs&) = default;
Inputs& Inputs::operator=(Inputs&&) noexcept = default;
void Inputs::add(std::string name, Symbol symbol) { named_.emplace_back(std::move(name), std::move(symbol)); }

Symbol apply(const OpDef& op, const Inputs& inputs, std::shared_ptr<const void> params, Attributes given,
             const std::string& name) {
  return make_node(op, inputs, std::move(params), std::move(given), name, lower_case(op.name));
}

Symbol apply(const std::string& op_name, const Inputs& inputs, const Attributes& attributes, const std::string& name) {
  const OpDef& op = OpRegistry::get().find_public(op_name);
  Attributes all;
  for (const auto& [key, value] : attributes) all[is_steering(key) ? hidden_key(key) : key] = value;
  if (!op.count_field.empty() && !all.count(op.count_field))
    all[op.count_field] = std::to_string(inputs.positional().size() + inputs.named().size());
  auto params = op.parse_params(all, name);
  return make_node(op, inputs, std::move(params), std::move(all), name, lower_case(op_name));
}

Symbol apply_struct(const OpDef& op, const Inputs& inputs, const void* params, const std::string& name) {
  auto copy = op.copy_params(params);
  if (op.set_count) op.set_count(copy.get(), static_cast<int64_t>(inputs.positional().size() + inputs.named().size()));
  auto checked = op.checked_params(copy.get(), name);
  Attributes given = op.print_params(copy.get());
  return make_node(op, inputs, std::move(checked), std::move(given), name, lower_case(op.name));
}

// ---- Arithmetic -----------------------------------------------------------------------------------------------------

namespace {

Symbol binary(const char* op, const Symbol& a, const Symbol& b) { return apply(op, {a, b}); }
Symbol scalar(const char* op, const Symbol& a, double b) { return apply(op, a, {{"scalar", print(b)}}); }

}  // namespace

// The names are those MXNet's own arithmetic uses: they determine the names of the nodes (_plus0, _mulscalar0).
Symbol operator-(const Symbol& a) { return apply("_MulScalar", a, {{"scalar", "-1.0"}}); }  // MXNet's text
Symbol operator+(const Symbol& a, const Symbol& b) { return binary("_Plus", a, b); }
Symbol operator-(const Symbol& a, const Symbol& b) { return binary("_Minus", a, b); }
Symbol operator*(const Symbol& a, const Symbol& b) { return binary("_Mul", a, b); }
Symbol operator/(const Symbol& a, const Symbol& b) { return binary("_Div", a, b); }
Symbol operator+(const Symbol& a, double b) { return scalar("_PlusScalar", a, b); }
Symbol operator-(const Symbol& a, double b) { return scalar("_MinusScalar", a, b); }
Symbol operator*(const Symbol& a, double b) { return scalar("_MulScalar", a, b); }
Symbol operator/(const Symbol& a, double b) { return scalar("_DivScalar", a, b); }
Symbol operator+(double a, const Symbol& b) { return b + a; }
Symbol operator-(double a, const Symbol& b) { return scalar("_RMinusScalar", b, a); }
Symbol operator*(double a, const Symbol& b) { return b * a; }
Symbol operator/(double a, const Symbol& b) { return scalar("_RDivScalar", b, a); }
Symbol pow(const Symbol& base, const Symbol& exponent) { return binary("_Power", base, exponent); }
Symbol pow(const Symbol& base, double exponent) { return scalar("_PowerScalar", base, exponent); }
Symbol pow(double base, const Symbol& exponent) { return scalar("_rpower_scalar", exponent, base); }
Symbol operator==(const Symbol& a, const Symbol& b) { return binary("_equal", a, b); }
Symbol operator!=(const Symbol& a, const Symbol& b) { return binary("_not_equal", a, b); }
Symbol operator<(const Symbol& a, const Symbol& b) { return binary("_lesser", a, b); }
Symbol operator<=(const Symbol& a, const Symbol& b) { return binary("_lesser_equal", a, b); }
Symbol operator>(const Symbol& a, const Symbol& b) { return binary("_greater", a, b); }
Symbol operator>=(const Symbol& a, const Symbol& b) { return binary("_greater_equal", a, b); }
Symbol operator==(const Symbol& a, double b) { return scalar("_equal_scalar", a, b); }
Symbol operator!=(const Symbol& a, double b) { return scalar("_not_equal_scalar", a, b); }
Symbol operator<(const Symbol& a, double b) { return scalar("_lesser_scalar", a, b); }
Symbol operator<=(const Symbol& a, double b) { return scalar("_lesser_equal_scalar", a, b); }
Symbol operator>(const Symbol& a, double b) { return scalar("_greater_scalar", a, b); }
Symbol operator>=(const Symbol& a, double b) { return scalar("_greater_equal_scalar", a, b); }

}  // namespace symbind
