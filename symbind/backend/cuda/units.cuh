// The units in which kernels move bytes: those of backend/units.h, and 16 bytes, the most that a thread moves at a
// time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <vector_types.h>

#include "symbind/backend/units.h"

namespace symbind::cuda_backend {

inline constexpr size_t widest_unit = sizeof(uint4);

// Calls use() with a unit of this size: 1, 2, 4, 8 or 16 bytes.
template <class Use>
decltype(auto) visit_wide_unit(size_t bytes, Use&& use) {
  return bytes == widest_unit ? use(uint4{}) : visit_unit(bytes, use);
}

// The widest unit that divides every one of some numbers of bytes and addresses, combined by bitwise or.
inline size_t unit_dividing(uint64_t joined) {
  return joined == 0 ? widest_unit : std::min<uint64_t>(widest_unit, joined & -joined);
}

}  // namespace symbind::cuda_backend
