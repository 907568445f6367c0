// Operators that are composed of others, each defined by a network. On every device such an operator is one kernel that
// runs the network in its scratch memory (backend/composed.h), with all implementations of its operators.
#pragma once

#include <span>
#include <vector>

#include "symbind/graph/symbol.h"

namespace SYMBIND_API symbind {

// The inputs of one node, auxiliary states last. Their shapes and types are known.
struct ComposedInputs {
  std::vector<Symbol> symbols;
  std::vector<Shape> shapes;
  std::vector<DType> types;
  std::vector<Shape> output_shapes;
  std::vector<DType> output_types;

  const Symbol& operator[](size_t index) const { return symbols[index]; }
};

}  // namespace symbind
