#include "symbind/graph/node.h"

#include <unordered_set>

namespace symbind {

Node::~Node() {
  // Inputs that only this node holds are destroyed here iteratively instead of by nested destructors.
  std::vector<Entry> doomed = std::move(inputs);
  while (!doomed.empty()) {
    Entry entry = std::move(doomed.back());
    doomed.pop_back();
    if (entry.node && entry.node.use_count() == 1) {
      auto& below = entry.node->inputs;
      doomed.insert(doomed.end(), std::make_move_iterator(below.begin()), std::make_move_iterator(below.end()));
      below.clear();
    }
  }
}

std::vector<NodePtr> topological_order(const std::vector<Entry>& outputs) {
  struct Visit {
    const NodePtr* node;
    size_t next_input;
  };
  std::vector<NodePtr> order;
  std::unordered_set<const Node*> seen;
  std::vector<Visit> stack;
  for (const Entry& output : outputs) {
    if (!seen.insert(output.node.get()).second) continue;
    stack.push_back({&output.node, 0});
    while (!stack.empty()) {
      Visit& visit = stack.back();
      const auto& inputs = (*visit.node)->inputs;
      if (visit.next_input < inputs.size()) {
        const NodePtr& below = inputs[visit.next_input++].node;
        if (seen.insert(below.get()).second) stack.push_back({&below, 0});
      } else {
        order.push_back(*visit.node);
        stack.pop_back();
      }
    }
  }
  return order;
}

}  // namespace symbind
