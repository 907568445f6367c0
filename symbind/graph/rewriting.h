// Makes another network out of a network, node by node.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbind/graph/node.h"
#include "symbind/graph/symbol.h"

namespace symbind {

// The nodes are visited in the order of nodes(), and put() says what each became. The old nodes do not change.
class Rewriting {
 public:
  explicit Rewriting(const Symbol& old) : old_(old), nodes_(topological_order(old.entries())) {}

  const std::vector<NodePtr>& nodes() const { return nodes_; }
  Entry now(const Entry& entry) const {
    const auto output = outputs_.find({entry.node.get(), entry.index});
    return output != outputs_.end() ? output->second : Entry{now_.at(entry.node.get()), entry.index};
  }
  void put(const NodePtr& old, NodePtr made) { now_[old.get()] = std::move(made); }
  // Readers of this output of an old node read another one than that of the new node.
  void put_output(const NodePtr& old, int index, Entry made) { outputs_[{old.get(), index}] = std::move(made); }
  // The same node over other inputs.
  static NodePtr with_inputs(const Node& node, std::vector<Entry> inputs) {
    auto made = std::make_shared<Node>(node);
    made->inputs = std::move(inputs);
    return made;
  }
  // The inputs of a node in the new network.
  std::vector<Entry> inputs_of(const Node& node) const {
    std::vector<Entry> inputs;
    for (const Entry& input : node.inputs) inputs.push_back(now(input));
    return inputs;
  }
  std::vector<Entry> outputs() const {
    std::vector<Entry> entries;
    for (const Entry& entry : old_.entries()) entries.push_back(now(entry));
    return entries;
  }

 private:
  const Symbol& old_;
  std::vector<NodePtr> nodes_;
  std::unordered_map<const Node*, NodePtr> now_;
  std::map<std::pair<const Node*, int>, Entry> outputs_;
};

}  // namespace symbind
