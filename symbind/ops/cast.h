// Conversion of arrays to another type.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Cast {
  Required<DType> dtype = {};
};
inline constexpr Builder<Cast> cast;

// The gradient of Cast: (out_grad, data) → out_grad in the type of data, of which only the type is read.
struct CastLike {};
inline constexpr Builder<CastLike> cast_like;

}  // namespace symbind
