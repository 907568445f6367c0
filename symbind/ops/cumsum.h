// Cumulative sums.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct CumSum {
  std::optional<int64_t> axis = std::nullopt;  // none: along the flattened array
  std::optional<DType> dtype = std::nullopt;   // none: that of data
};
inline constexpr Builder<CumSum> cumsum;

// (out_grad, a for its shape and type) → the gradient of a
struct CumSumGrad : CumSum {};
inline constexpr Builder<CumSumGrad> cumsum_grad;

}  // namespace symbind
