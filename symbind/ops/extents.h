// Sums and products of extents, for the inference of shapes. A result that does not fit into 64 bits is an error: an
// overflow would give an array too small for the data written to it. Unknown extents stay unknown.
#pragma once

#include <string_view>

#include "symbind/core/error.h"
#include "symbind/core/shape.h"

namespace symbind {

// Of any numbers: -1 is not an unknown extent.
inline int64_t checked_sum(int64_t a, int64_t b, std::string_view where) {
  int64_t sum = 0;
  require(!__builtin_add_overflow(a, b, &sum), where, " an axis would be too long: ", a, " and ", b, " elements");
  return sum;
}

inline int64_t extent_sum(int64_t a, int64_t b, std::string_view where) {
  return a == unknown_dim || b == unknown_dim ? unknown_dim : checked_sum(a, b, where);
}

inline int64_t extent_product(int64_t a, int64_t b, std::string_view where) {
  if (a == unknown_dim || b == unknown_dim) return unknown_dim;
  int64_t product = 0;
  require(!__builtin_mul_overflow(a, b, &product), where, " an axis would be too long: ", a, " times ", b, " elements");
  return product;
}

}  // namespace symbind
