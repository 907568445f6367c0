// What operators move, when moving elements is all they do: axes turned, run through backwards, repeated, a part taken
// out. Each backend has kernels for such movements, whatever operator they come from.
#pragma once

#include <cstdint>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind {

// A dense array and places in another one: element (i, j, …) belongs to element start + i·steps[0] + j·steps[1] + … of
// the other. There may be more axes than a Shape has.
struct Movement {
  std::vector<int64_t> extents, steps;
  int64_t start = 0;
};

// The same with few axes: those of extent 1 are dropped, and neighbours along which the other array goes on evenly are
// one. At least one is left.
Movement merged(const Movement& movement);

struct MovingOperator {
  const OpDef* op;
  Movement (*movement)(const NodeView& node);
};

// Output 0 is dense, and its elements are those of input 0 in the places of the movement.
std::vector<MovingOperator> taking_operators();
// Input 0 is dense; output 0 is zero but for these places, which hold its elements. No place is named twice.
std::vector<MovingOperator> putting_operators();

// diag and its gradient: a vector is put onto a diagonal of zeros, or diagonals are taken, depending on the shapes.
struct DiagonalMovement {
  Movement movement;
  bool puts;
};
DiagonalMovement diag_movement(const NodeView& node);
DiagonalMovement diag_grad_movement(const NodeView& node);

// The places that SliceAssign and SliceAssignScalar change in output 0.
template <class P>
Movement assigned_part(const NodeView& node);

}  // namespace symbind
