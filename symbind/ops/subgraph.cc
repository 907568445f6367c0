#include "symbind/ops/subgraph.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <unordered_map>

#include "symbind/graph/attributes.h"
#include "symbind/graph/builder.h"
#include "symbind/graph/op.h"

namespace symbind {

// ---- Subgraph -------------------------------------------------------------------------------------------------------

Subgraph::Subgraph(const Symbol& network) : network_(network) {
  const Names states = network.list_auxiliary_states();
  require(states.empty(), "the body of a loop or branch cannot have auxiliary states: ", comma_separated(states));
  for (const NodePtr& node : topological_order(network.entries()))
    if (node->is_variable()) variables_.push_back(Symbol({{node, 0}}));
}

bool Subgraph::is_random(bool is_train) const {
  const auto order = topological_order(network_.entries());
  return std::any_of(order.begin(), order.end(), [&](const NodePtr& node) {
    return !node->is_variable() && node->op->is_random(node->params.get(), is_train);
  });
}

std::shared_ptr<const Subgraph> parsed_subgraph(const Attributes& texts, int index) {
  const auto found = texts.find("subgraph:" + std::to_string(index));
  require(found != texts.end(), "subgraph ", index, " is missing");
  // Each level is read by its operator, from a text of its own: unbounded nesting would take quadratic time and end in
  // a stack overflow.
  constexpr int deepest = 32;
  thread_local int depth = 0;
  struct Level {
    Level() { ++depth; }
    ~Level() { --depth; }
  } const level;
  require(depth <= deepest, "loops and branches may be nested ", deepest, " deep, not deeper");
  return std::make_shared<const Subgraph>(Symbol::load_json(found->second));
}

// ---- Cutting a body out of the network ------------------------------------------------------------------------------

const char* const subgraph_name = "__subgraph_name__";

std::string unique_scope(const std::string& name) {
  static std::atomic<uint64_t> count{0};
  return name + std::to_string(count++);
}

Cut cut_out(const std::vector<Symbol>& outputs, const std::string& name) {
  std::vector<Entry> entries;
  for (const Symbol& output : outputs) entries.push_back(output.entries().at(0));
  std::unordered_map<const Node*, NodePtr> copies;
  std::map<std::pair<const Node*, int>, NodePtr> variables;
  std::vector<std::pair<NodePtr, Entry>> outside;
  const auto is_inside = [&](const Node& node) {
    const std::string* of = find_attribute(node.attributes, subgraph_name);
    return of && *of == name;
  };
  const auto copied = [&](const Entry& entry) -> Entry {
    const Node& node = *entry.node;
    if (is_inside(node) && !node.is_variable()) return {copies.at(&node), entry.index};
    NodePtr& variable = variables[{&node, entry.index}];
    if (!variable) {
      if (node.is_variable()) {
        variable = entry.node;
      } else {
        variable = std::make_shared<Node>();
        variable->name = Symbol({entry}).list_outputs()[0];
      }
      outside.emplace_back(variable, entry);
    }
    return {variable, 0};
  };
  for (const NodePtr& node : topological_order(entries)) {
    if (node->is_variable() || !is_inside(*node)) continue;
    auto copy = std::make_shared<Node>(*node);
    for (Entry& input : copy->inputs) input = copied(input);
    copies[node.get()] = copy;
  }
  for (Entry& entry : entries) entry = copied(entry);
  return {Symbol(entries), std::move(outside)};
}

std::vector<Symbol> body_variables(const std::vector<Symbol>& of, const std::string& who) {
  std::vector<Symbol> variables;
  std::unordered_map<std::string, int> seen;
  for (const Symbol& each : of) {
    require(each.size() == 1, "[", who, "] each input must be one output, not a group of ", each.size());
    const std::string name = each.name();
    variables.push_back(Symbol::variable(name + "-" + std::to_string(seen[name]++)));
  }
  return variables;
}

// A plain variable would have no node in the body.
void add_returned(const std::vector<Symbol>& from, std::vector<Symbol>& to, const std::string& who) {
  for (const Symbol& each : from) {
    require(each.size() == 1, "[", who, "] the body must return single outputs, not a group of ", each.size());
    const std::string* scope = find_attribute(AttrScope::current(), subgraph_name);
    const std::string* of = find_attribute(each.entries()[0].node->attributes, subgraph_name);
    const bool inside = of && scope && *of == *scope && !each.entries()[0].node->is_variable();
    to.push_back(inside ? each : apply("_copy", each));
  }
}

}  // namespace symbind
