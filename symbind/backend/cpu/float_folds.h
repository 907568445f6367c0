// Products and norms of rows of floats, which are computed in double.
#pragma once

#include <cstdint>

#include "symbind/backend/cpu/reduce_folds.h"

namespace symbind::cpu_backend {

// The fold of `length` floats, in the order of fold_row() in reduce_folds.cc: the results have the same bits.
using FloatFold = double (*)(const float* row, int64_t length);

// Null: the fold is not computed in double, or the processor has no vectors for it.
FloatFold float_fold(Fold fold);

}  // namespace symbind::cpu_backend
