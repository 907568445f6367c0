// Inference of operators on matrices in the last two axes of arrays.
#pragma once

#include "symbind/graph/op.h"

namespace symbind {

// All inputs and outputs have one type: float32 or float64.
void same_real_type(Types& types);

// An array of matrices: it has at least two axes. False while the rank is not known.
bool has_matrices(const Shapes& shapes, Inferred<Shape> array, std::string_view name);
// The same, and both extents of a matrix are equal.
bool has_square_matrices(const Shapes& shapes, Inferred<Shape> array, std::string_view name);

// The shape of one number per matrix of an array: (1) for a single matrix.
Shape one_per_matrix(const Shape& matrices);

}  // namespace symbind
