// The rows of several matrices as one matrix, for passes that turn many products into one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbind/passes/rewrite.h"

namespace symbind {

class ConcatenatedRows {
 public:
  ConcatenatedRows(const Graph& old, Rewriter& rewriter) : old_(old), rewriter_(rewriter) {}

  // To be called for every old node after it was copied: a concatenation of rows that exists is reused.
  void note(const GraphNode& node);
  // The rows of old matrices, in order, as a tensor of the new graph. A new node is placed like `like`.
  TensorId of(std::vector<TensorId> parts, const GraphNode& like, const std::string& name);
  // A node with one output at the end of the new graph, placed like `like`.
  template <class P>
  TensorId append(P params, const std::string& name, std::vector<TensorId> inputs, const GraphNode& like,
                  const Shape& shape) {
    auto source = std::make_shared<Node>();
    source->op = &op_of<P>();
    source->name = name;
    source->attributes = like.source->attributes;
    source->params = std::make_shared<P>(std::move(params));
    return append(std::move(source), std::move(inputs), like, shape);
  }

 private:
  struct Known {
    std::vector<TensorId> parts;  // of the old graph
    TensorId concatenated;        // of the new graph
  };

  TensorId append(NodePtr source, std::vector<TensorId> inputs, const GraphNode& like, const Shape& shape);
  TensorId without_views(TensorId matrix) const;
  TensorId split_from(const std::vector<TensorId>& parts) const;

  const Graph& old_;
  Rewriter& rewriter_;
  std::map<TensorId, std::vector<Known>> known_;  // by the first part
};

}  // namespace symbind
