// A penalty on units that are active too often, for sparse autoencoders.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct IdentityAttachKLSparseReg {
  double sparseness_target = 0.1;
  double penalty = 0.001;
  double momentum = 0.9;
};
inline constexpr Builder<IdentityAttachKLSparseReg> identity_attach_kl_sparse_reg;

// (out_grad, average) → data_grad
struct IdentityAttachKLSparseRegGrad : IdentityAttachKLSparseReg {};
inline constexpr Builder<IdentityAttachKLSparseRegGrad> identity_attach_kl_sparse_reg_grad;

}  // namespace symbind
