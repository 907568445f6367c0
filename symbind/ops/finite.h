// Tests of whole arrays, with the result 1 or 0.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct AllFinite {
  bool init_output = true;
};
inline constexpr Builder<AllFinite> all_finite;

struct MultiAllFinite {
  Required<int64_t> num_arrays = {};
  bool init_output = true;
};
inline constexpr Builder<MultiAllFinite> multi_all_finite;

struct AllClose {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;
};
inline constexpr Builder<AllClose> allclose;

}  // namespace symbind
