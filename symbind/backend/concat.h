// The memory layout of concatenation along an axis, and the operators that concatenate or split.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind {

// The concatenated array as rows: the axes before the concatenation axis count rows, and a row holds `bytes` of each
// part.
struct Joints {
  int64_t rows = 0;
  std::vector<int64_t> bytes;
  int64_t row_bytes = 0;
};

struct JointArrays {
  const Tensor& whole;
  std::span<const Tensor> parts;
  int axis;

  Joints joints() const;
};

struct JoiningOperator {
  const OpDef* op;
  JointArrays (*arrays)(const NodeView& node);
  bool any_layout = false;  // may all arrays be in another layout than the plain one?
};
// Output 0 is the concatenation of the first inputs.
std::vector<JoiningOperator> joining_operators();
// The outputs, of which some may be missing, are the parts of input 0.
std::vector<JoiningOperator> splitting_operators();

// Along channels the parts may be in any layout they share, if that has whole blocks of each part. `asked`: the
// inputs that are read.
std::optional<PreferredLayouts> prefer_along_channels(const NodeView& node, const JointArrays& arrays,
                                                      std::span<const Tensor> asked);

}  // namespace symbind
