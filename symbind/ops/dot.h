// Products of matrices and of arrays of higher rank: the last axis of lhs is summed against the first of rhs, with
// transpose_a the first of lhs, with transpose_b the last of rhs.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Dot {
  bool transpose_a = false;
  bool transpose_b = false;
  std::optional<std::string> forward_stype = std::nullopt;
};
inline constexpr Builder<Dot> dot;

// Products of the matrices in the last two axes, one for each index of the others.
struct BatchDot {
  bool transpose_a = false;
  bool transpose_b = false;
  std::optional<std::string> forward_stype = std::nullopt;
};
inline constexpr Builder<BatchDot> batch_dot;

// The gradients: (out_grad, rhs, lhs) → lhs and (lhs, out_grad, rhs) → rhs; of the last input only the shape is read.
struct DotLhsGrad : Dot {};
inline constexpr Builder<DotLhsGrad> dot_lhs_grad;
struct DotRhsGrad : Dot {};
inline constexpr Builder<DotRhsGrad> dot_rhs_grad;

// Each of them is one product of matrices: output (rows, columns) = a · b, where a is (rows, inner), stored as (inner,
// rows) if transpose_a, and b is (inner, columns), stored as (columns, inner) if transpose_b. a and b are the numbers
// of the node's inputs.
struct MatrixProduct {
  size_t a = 0, b = 1;
  bool transpose_a = false, transpose_b = false;
  int64_t rows = 1, inner = 1, columns = 1;
};
MatrixProduct product_of_dot(const Dot& params, const Shape& lhs, const Shape& rhs);
MatrixProduct product_of_lhs_grad(const Dot& params, const Shape& lhs, const Shape& rhs);
MatrixProduct product_of_rhs_grad(const Dot& params, const Shape& lhs, const Shape& rhs);

}  // namespace symbind
