// Casts of mixed precision: arrays of float32 and of 16 bits change to another of these types, all others pass through,
// float64 among them.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct AmpCast {
  Required<DType> dtype = {};
};
inline constexpr Builder<AmpCast> amp_cast;

// All such inputs in the widest of their types, or in the narrowest.
struct AmpMulticast {
  Required<int64_t> num_outputs = {};
  bool cast_narrow = false;
};
inline constexpr Builder<AmpMulticast> amp_multicast;

// The identity in forward; in backward the gradient is multiplied by the one number of scale, which gets no gradient:
// (data, scale) → data. Of the library itself, for losses that are scaled.
struct ScaleGradient {};
inline constexpr Builder<ScaleGradient> scale_gradient;

}  // namespace symbind
