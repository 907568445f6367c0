// Operators that only move elements: axes transposed, reversed or repeated, slices.
// Each backend has kernels for such movements, whatever operator they come from.
#pragma once

#include <cstdint>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind {

// A dense array and elements of another one: element (i, j, …) of the dense array belongs to element
// start + i·steps[0] + j·steps[1] + … of the other. There may be more axes than a Shape has.
struct Movement {
  std::vector<int64_t> extents, steps;
  int64_t start = 0;
};

// The same with fewer axes: those of extent 1 are dropped, and neighbours with matching steps in the other array are
// merged. At least one axis is left.
Movement merged(const Movement& movement);

struct MovingOperator {
  const OpDef* op;
  Movement (*movement)(const NodeView& node);
};

// Output 0 is dense, and its elements are those of input 0 selected by the movement.
std::vector<MovingOperator> taking_operators();
// Input 0 is dense; output 0 is zero except for the elements selected by the movement, each of them once.
std::vector<MovingOperator> putting_operators();

// diag and its gradient: a vector is placed on a diagonal of zeros, or diagonals are extracted, depending on the
// shapes.
struct DiagonalMovement {
  Movement movement;
  bool puts;
};
DiagonalMovement diag_movement(const NodeView& node);
DiagonalMovement diag_grad_movement(const NodeView& node);

// The elements that SliceAssign and SliceAssignScalar change in output 0.
template <class P>
Movement assigned_part(const NodeView& node);

}  // namespace symbind
