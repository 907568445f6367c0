// Sets arrays to 0 in place, all in one operator.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct ResetArrays {
  Required<int64_t> num_arrays = {};
};
inline constexpr Builder<ResetArrays> reset_arrays;

}  // namespace symbind
