// Do two arrays share memory?
#pragma once

#include "symbind/core/ndarray.h"

namespace symbind {

inline bool overlap(const NDArray& a, const NDArray& b) {
  if (a.storage_ptr() != b.storage_ptr()) return false;
  return a.byte_offset() < b.byte_offset() + b.bytes() && b.byte_offset() < a.byte_offset() + a.bytes();
}

}  // namespace symbind
