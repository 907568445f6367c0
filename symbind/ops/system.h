// Operators that only passes insert into a graph; users do not call them.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

// The same array on another context.
struct CrossDeviceCopy {
  Required<std::string> from = {};  // contexts as text: "cpu(0)"
  Required<std::string> to = {};
};
inline constexpr Builder<CrossDeviceCopy> cross_device_copy;

// The same array in another layout: the tensors say which.
struct Reorder {};
inline constexpr Builder<Reorder> reorder;

// The same array in another layout that has the elements in the same order.
struct Relabel {};
inline constexpr Builder<Relabel> relabel;

}  // namespace symbind
