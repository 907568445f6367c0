#include "symbind/ops/slice.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

// One axis of a slice, as Python reads it: numbers beyond either end mean that end.
void resolve_axis(SliceRange& range, int axis, int64_t length, const std::optional<int64_t>& begin,
                  const std::optional<int64_t>& end, int64_t given_step, std::string_view who) {
  require(given_step != 0, who, " step must not be 0");
  const int64_t step = std::clamp(given_step, -length - 1, length + 1);  // longer steps leave the axis all the same
  const int64_t before = step > 0 ? 0 : -1, behind = step > 0 ? length : length - 1;
  const auto clamped = [&](int64_t index) { return std::clamp(index < 0 ? index + length : index, before, behind); };
  const int64_t first = begin ? clamped(*begin) : step > 0 ? before : behind;
  const int64_t last = end ? clamped(*end) : step > 0 ? behind : before;
  range.start[static_cast<size_t>(axis)] = first;
  range.step[static_cast<size_t>(axis)] = step;
  range.shape[axis] =
      std::max<int64_t>(0, step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step);
}

}  // namespace

SliceRange resolve_slice(const Shape& from, const OptionalTuple& begin, const OptionalTuple& end,
                         const OptionalTuple& step, std::string_view who) {
  require(begin.size() == end.size() && (step.empty() || step.size() == begin.size()), who,
          " begin, end and step must be equally long: begin ", print(begin), ", end ", print(end), ", step ",
          print(step));
  require(begin.size() <= static_cast<size_t>(from.rank()), who, " there are more slices than axes: begin ",
          print(begin), ", data ", from);
  SliceRange range;
  range.shape = from;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    range.start[i] = 0;
    range.step[i] = 1;
    if (i >= begin.size()) continue;
    const int64_t by = i < step.size() && step[i] ? *step[i] : 1;
    const bool whole = !begin[i] && !end[i] && by == 1;
    if (from[axis] == unknown_dim || whole) continue;
    resolve_axis(range, axis, from[axis], begin[i], end[i], by, who);
  }
  return range;
}

namespace {

// The shape of a slice that is taken out of an array or put into it: MXNet has no arrays without elements.
template <class P>
Shape part_of(const P& p, const Shape& whole, const std::string& where) {
  const Shape part = resolve_slice(whole, p.begin, p.end, p.step, where).shape;
  for (int axis = 0; axis < whole.rank(); ++axis)
    require(part[axis] != 0 || whole[axis] == 0, where, " the slice must hold something along axis ", axis, ": begin ",
            print(p.begin), ", end ", print(p.end), ", step ", print(p.step), ", data ", whole);
  return part;
}

template <class P, class Base>
void add_fields(Op<P>& op) {
  op.param(&Base::begin, "begin", "the first index along each leading axis; None: the first there is")
      .param(&Base::end, "end", "the index behind the last along each leading axis; None: to the end")
      .param(&Base::step, "step", "the distance between indices along each leading axis; (): 1");
}

OpDef define(Op<Slice> op) {
  add_fields<Slice, Slice>(op);
  return op.doc("A regular part of an array: data[begin:end:step] along the leading axes.")
      .aliases({"crop"})
      .infer_shape([](const Slice& p, Shapes& s) {
        const auto data = s["data"];
        if (data.rank_known()) s.output().meet(part_of(p, data, s.where()));
      })
      .gradient([](const Slice& p, Grad& g) { g.set("data", slice_grad(g.out_grad(), g.input("data"), {p})); });
}

OpDef define(Op<SliceGrad> op) {
  add_fields<SliceGrad, Slice>(op);
  return op.inputs({"out_grad", "data"})
      .shape_only({"data"})
      .infer_shape([](const auto&, Shapes& s) { s.output().meet(s["data"]); })
      .gradient([](const SliceGrad& p, Grad& g) {
        g.set("out_grad", slice(g.out_grad(), {.begin = p.begin, .end = p.end, .step = p.step}));
      });
}

OpDef define(Op<SliceAssign> op) {
  add_fields<SliceAssign, SliceAssign>(op);
  return op.doc("lhs with rhs in the place of lhs[begin:end:step].")
      .aliases({"_crop_assign"})
      .inputs({"lhs", "rhs"})
      .infer_shape([](const SliceAssign& p, Shapes& s) {
        auto lhs = s["lhs"];
        lhs.meet(s.output());
        if (lhs.rank_known()) s["rhs"].meet(part_of(p, lhs, s.where()));
      })
      .gradient([](const SliceAssign& p, Grad& g) {
        if (g.wants("lhs"))
          g.set("lhs", slice_assign_scalar(g.out_grad(), {.begin = p.begin, .end = p.end, .step = p.step}));
        if (g.wants("rhs")) g.set("rhs", slice(g.out_grad(), {.begin = p.begin, .end = p.end, .step = p.step}));
      });
}

OpDef define(Op<SliceAssignScalar> op) {
  op.param(&SliceAssignScalar::scalar, "scalar", "the number to put in");
  add_fields<SliceAssignScalar, SliceAssignScalar>(op);
  return op.doc("data with a number in the place of data[begin:end:step].")
      .aliases({"_crop_assign_scalar"})
      .infer_shape([](const SliceAssignScalar& p, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output());
        if (data.rank_known()) resolve_slice(data, p.begin, p.end, p.step, s.where());
      })
      .gradient([](const SliceAssignScalar& p, Grad& g) {
        g.set("data", slice_assign_scalar(g.out_grad(), {.begin = p.begin, .end = p.end, .step = p.step}));
      });
}

}  // namespace

void register_slice(OpRegistry& registry) {
  add<Slice>(registry, "slice", define);
  add<SliceGrad>(registry, "_backward_slice", define);
  add<SliceAssign>(registry, "_slice_assign", define);
  add<SliceAssignScalar>(registry, "_slice_assign_scalar", define);
}

}  // namespace symbind
