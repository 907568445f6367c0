#include "symbind/exec/indexing.h"

#include <utility>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/slice.h"

namespace symbind {
namespace {

// The three tuples that the slice operators share.
template <class P>
P filled(const std::vector<AxisRange>& ranges) {
  OptionalTuple begin, end, step;
  bool stepped = false;
  for (const AxisRange& range : ranges) {
    begin.push_back(range.begin);
    end.push_back(range.end);
    step.push_back(range.step);
    stepped |= range.step.has_value();
  }
  P params;
  params.begin = std::move(begin);
  params.end = std::move(end);
  if (stepped) params.step = std::move(step);
  return params;
}

}  // namespace

NDArray subarray(const NDArray& array, const std::vector<AxisRange>& ranges) {
  return invoke(slice, {array}, filled<Slice>(ranges))[0];
}

void assign(NDArray& array, const std::vector<AxisRange>& ranges, const NDArray& value) {
  const SliceAssign params = filled<SliceAssign>(ranges);
  const Shape part = resolve_slice(array.shape(), params.begin, params.end, params.step, "[assign]").shape;
  NDArray values = value.as_in_context(array.context());
  if (values.dtype() != array.dtype()) values = values.astype(array.dtype());
  if (values.shape() != part) values = zeros(part, array.context(), array.dtype()) + values;
  invoke(slice_assign, {array, values}, params, {.out = {array}});
}

void assign(NDArray& array, const std::vector<AxisRange>& ranges, double value) {
  SliceAssignScalar params = filled<SliceAssignScalar>(ranges);
  params.scalar = value;
  invoke(slice_assign_scalar, {array}, params, {.out = {array}});
}

}  // namespace symbind
