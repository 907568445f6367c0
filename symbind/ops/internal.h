// The families of operators that only the library itself inserts or invokes, as ops/all.h lists the others.
#pragma once

#include "symbind/ops/batch_norm_pair.h"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/ops/convert_arrays.h"
#include "symbind/ops/loss_scale.h"
#include "symbind/ops/metric_sums.h"
#include "symbind/ops/pointwise.h"
#include "symbind/ops/pool_indices.h"
#include "symbind/ops/relu_signs.h"
#include "symbind/ops/system.h"
