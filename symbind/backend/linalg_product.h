// Linear algebra operators as matrix products, for the kernels of every device.
#pragma once

#include <type_traits>

#include "symbind/ops/linalg_product.h"
#include "symbind/passes/target.h"

namespace symbind {

// out = alpha · op(a) · op(b) + beta · c
struct MatrixProduct {
  MatricesOf a, b, out;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;

  int64_t inner() const { return transpose_a ? a.rows : a.columns; }
};

// Of a node of LinalgGemm or LinalgGemm2.
template <class P>
MatrixProduct gemm_product(const NodeView& node) {
  const auto& p = node.as<P>();
  MatrixProduct product{.a = matrices_of(node.inputs[0].shape, p.axis),
                        .b = matrices_of(node.inputs[1].shape, p.axis),
                        .out = matrices_of(node.outputs[0].shape, p.axis),
                        .transpose_a = p.transpose_a,
                        .transpose_b = p.transpose_b,
                        .alpha = p.alpha};
  if constexpr (std::is_same_v<P, LinalgGemm>) product.beta = p.beta;
  return product;
}

// Of a node of LinalgSyrk: both operands are its input.
inline MatrixProduct syrk_product(const NodeView& node) {
  const auto& p = node.as<LinalgSyrk>();
  const MatricesOf a = matrices_of(node.inputs[0].shape);
  return {.a = a,
          .b = a,
          .out = matrices_of(node.outputs[0].shape),
          .transpose_a = p.transpose,
          .transpose_b = !p.transpose,
          .alpha = p.alpha};
}

}  // namespace symbind
