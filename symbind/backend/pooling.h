// What Pooling is on every device: its kinds, and the maximum of an empty window.
#pragma once

#include <limits>
#include <type_traits>

#include "symbind/core/dtype.h"
#include "symbind/ops/pool.h"

namespace symbind {

enum class PoolKind { max, avg, sum, lp };

inline PoolKind kind_of(const Pooling& params) {
  if (params.pool_type == "max") return PoolKind::max;
  if (params.pool_type == "avg") return PoolKind::avg;
  return params.pool_type == "sum" ? PoolKind::sum : PoolKind::lp;
}

// The maximum of no elements. A maximum is never less, and NaN is ignored.
template <class T>
constexpr compute_type<T> lowest() {
  if constexpr (std::is_same_v<T, float16>)
    return -65504.0f;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return -3.38953139e38f;
  else
    return std::numeric_limits<T>::lowest();
}

}  // namespace symbind
