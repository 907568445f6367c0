// Column-wise Kronecker products of matrices.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct KhatriRao {
  Required<int64_t> num_args = {};
};
inline constexpr Builder<KhatriRao> khatri_rao;

// (out_grad, the matrices) → the gradient of each
struct KhatriRaoGrad : KhatriRao {};
inline constexpr Builder<KhatriRaoGrad> khatri_rao_grad;

}  // namespace symbind
