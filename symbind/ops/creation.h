// Arrays from nothing. The array functions zeros() and ones() stand in core/ndarray.h; these are the operators.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

struct Zeros {
  Tuple shape = {};  // 0: to be inferred
  std::string ctx = "";
  DType dtype = DType::float32;
};
struct Ones {
  Tuple shape = {};
  std::string ctx = "";
  DType dtype = DType::float32;
};

inline constexpr Builder<Zeros> make_zeros;
inline constexpr Builder<Ones> make_ones;

void register_creation(OpRegistry& registry);

}  // namespace symbind
