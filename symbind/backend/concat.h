// How arrays are in the one that joins them along an axis, and which operators join or split so.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind {

// The joined array as rows: everything before the axis counts rows, and a row holds so many bytes of each part.
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
// Output 0 is the first inputs joined.
std::vector<JoiningOperator> joining_operators();
// The outputs, of which some may be missing, are the parts of input 0.
std::vector<JoiningOperator> splitting_operators();

// Along channels the parts may be in any layout they share, if that has whole blocks of each part. `asked` are the
// inputs that are read.
std::optional<LayoutWish> wish_along_channels(const NodeView& node, const JointArrays& arrays,
                                              std::span<const Tensor> asked);

}  // namespace symbind
