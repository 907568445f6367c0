// Mean and variance over axes.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Moments {
  TupleOrNone axes = {};
  bool keepdims = false;
};
inline constexpr Builder<Moments> moments;

}  // namespace symbind
