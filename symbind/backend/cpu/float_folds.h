// Products and norms of rows of floats, which are computed in double.
#pragma once

#include <cstdint>

#include "symbind/backend/cpu/reduce_folds.h"

namespace symbind::cpu_backend {

// The fold of `length` floats, in the order of fold_row() in reduce_folds.cc: the results have the same bits.
using FloatFold = double (*)(const float* row, int64_t length);

// For processors with AVX2, as is this function itself. Null: the fold is not computed in double, or this is not
// compiled for such processors.
FloatFold avx2_float_fold(Fold fold);

}  // namespace symbind::cpu_backend
