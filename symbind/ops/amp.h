// Casts of mixed precision: float32 and 16-bit floating arrays are cast to another of these types; all others, float64
// included, pass through unchanged.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct AmpCast {
  Required<DType> dtype = {};
};
inline constexpr Builder<AmpCast> amp_cast;

// Casts all such inputs to the widest of their types, or to the narrowest.
struct AmpMulticast {
  Required<int64_t> num_outputs = {};
  bool cast_narrow = false;
};
inline constexpr Builder<AmpMulticast> amp_multicast;

// The identity in forward; in backward the gradient is multiplied by the one number of scale, which gets no gradient:
// (data, scale) → data. Internal: for loss scaling.
struct ScaleGradient {};
inline constexpr Builder<ScaleGradient> scale_gradient;

}  // namespace symbind
