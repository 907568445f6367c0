// A node of a network: a variable, or an operator applied to the outputs of other nodes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

class OpDef;
struct Node;
using NodePtr = std::shared_ptr<Node>;

// Text attributes: an operator's parameters as the user gave them, and those that control execution (__ctx_group__, …).
using Attributes = std::map<std::string, std::string>;

// Output `index` of a node.
struct Entry {
  NodePtr node;
  int index = 0;
  friend bool operator==(const Entry&, const Entry&) = default;
};

struct Node {
  const OpDef* op = nullptr;  // none: a variable
  std::string name;
  Attributes attributes;
  std::shared_ptr<const void> params;  // the operator's parameter struct, parsed
  std::vector<Entry> inputs;           // auxiliary states come last

  bool is_variable() const { return op == nullptr; }
  Node() = default;
  Node(const Node&) = default;
  ~Node();  // iterative: a chain of a million nodes does not exhaust the stack
};

// Every node reachable from the entries, inputs before users, in the depth-first order of list_arguments().
std::vector<NodePtr> topological_order(const std::vector<Entry>& outputs);

}  // namespace symbind
