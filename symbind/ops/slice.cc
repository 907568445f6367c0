#include "symbind/ops/slice.h"

#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

// One axis of a slice, as Python reads it, but never empty and never starting outside of the axis.
void resolve_axis(SliceRange& range, int axis, int64_t length, const std::optional<int64_t>& begin,
                  const std::optional<int64_t>& end, int64_t step, std::string_view who) {
  require(step != 0, who, " step must not be 0");
  const auto from_end = [&](int64_t index) { return index < 0 ? index + length : index; };
  const int64_t first = begin ? from_end(*begin) : step > 0 ? 0 : length - 1;
  int64_t last = end ? from_end(*end) : step > 0 ? length : -1;
  require(first >= 0 && first < length, who, " begin must lie within axis ", axis, ": begin ",
          begin ? *begin : first, ", length ", length);
  require(!end || last >= 0, who, " end must lie within axis ", axis, ": end ", end ? *end : last, ", length ", length);
  if (last > length) last = length;
  const int64_t count = step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
  require(count > 0, who, " the slice must hold something along axis ", axis, ": from ", first, " to ", last,
          " by ", step);
  range.start[static_cast<size_t>(axis)] = first;
  range.step[static_cast<size_t>(axis)] = step;
  range.shape[axis] = count;
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
        if (data.rank_known()) s.output().meet(resolve_slice(data, p.begin, p.end, p.step, s.where()).shape);
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
        if (lhs.rank_known()) s["rhs"].meet(resolve_slice(lhs, p.begin, p.end, p.step, s.where()).shape);
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
