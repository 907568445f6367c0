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

Symbol make_zeros(const Zeros& params, const std::string& name = "");
Symbol make_ones(const Ones& params, const std::string& name = "");

void register_creation(OpRegistry& registry);

}  // namespace symbind
