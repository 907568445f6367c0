// Converts files of older versions of MXNet to the conventions of 1.9.1 while a network is read:
//
//   any before 1.9.1   lr_mult, ctx_group, … without underscores; weight_lr_mult on an operator, meant for its weight
//   before 0.9.5       argmax and argmin with axis -1 meant all axes
//   before 0.9.4       variables did not have the initializer that their operator requires
//   before 0.9         auxiliary states (and any other variable left out) were no inputs: they are added by name;
//                      a node's own attributes were separate from its operator's parameters, and might be called
//                      anything
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/graph/node.h"
#include "symbind/graph/op.h"

namespace symbind {

// The record of one node in a file.
struct NodeRecord {
  std::string op, name;
  Attributes attributes;  // parameters of the operator, and the node's own
  Attributes own;         // the node's own, where the file separates them
  std::vector<std::vector<int64_t>> inputs;
};

class OldJson {
 public:
  // The version that wrote the file, 1.9.1 being 10901. Files before 0.9 do not say.
  explicit OldJson(int64_t version) : version_(version) {}

  // Call before parameters are parsed. `op` is null for a variable.
  void fix_attributes(NodeRecord& record, const OpDef* op);
  // Call when the node has its parameters and the inputs that the file names.
  void complete(Node& node, std::string_view source) const;

 private:
  int64_t version_;
  // Attributes of the record last fixed that belong to variables among its inputs.
  struct ForInput {
    std::string written, input, key, value;
  };
  std::vector<ForInput> for_inputs_;
};

}  // namespace symbind
