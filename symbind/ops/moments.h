// Mean and variance over axes.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Moments {
  std::optional<Tuple> axes = std::nullopt;
  bool keepdims = false;
};
inline constexpr Builder<Moments> moments;

}  // namespace symbind
