// Mean and variance over axes.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

struct Moments {
  std::optional<Tuple> axes = std::nullopt;
  bool keepdims = false;
};
inline constexpr Builder<Moments> moments;

}  // namespace symbind
