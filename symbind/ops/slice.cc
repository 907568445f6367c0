#include "symbind/ops/slice.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

// One axis of a slice, as Python reads it: numbers beyond either end mean that end.
void resolve_axis(SliceRange& range, int axis, int64_t length, const std::optional<int64_t>& begin,
                  const std::optional<int64_t>& end, int64_t given_step, std::string_view who) {
  require(given_step != 0, who, " step must not be 0");
  const int64_t step = std::clamp(given_step, -length - 1, length + 1);  // longer steps select the same elements
  const int64_t before = step > 0 ? 0 : -1, past_end = step > 0 ? length : length - 1;
  const auto clamped = [&](int64_t index) { return std::clamp(index < 0 ? index + length : index, before, past_end); };
  const int64_t first = begin ? clamped(*begin) : step > 0 ? before : past_end;
  const int64_t last = end ? clamped(*end) : step > 0 ? past_end : before;
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
    require(part[axis] != 0 || whole[axis] == 0, where, " the slice must have at least one element along axis ", axis,
            ": begin ", print(p.begin), ", end ", print(p.end), ", step ", print(p.step), ", data ", whole);
  return part;
}

// The offset of the slice in the array, in elements; empty unless it is one contiguous piece: a range of one axis, in
// steps of 1, with extents of 1 before it and whole axes after it.
std::vector<int64_t> one_piece(const SliceRange& range, const Shape& data) {
  const auto is_all = [&](int axis) {
    return range.shape[axis] == data[axis] && (range.step[static_cast<size_t>(axis)] == 1 || data[axis] == 1);
  };
  int cut = 0;
  while (cut < data.rank() && is_all(cut)) ++cut;
  if (cut == data.rank()) return {0};
  const auto at = static_cast<size_t>(cut);
  if (data.size(0, cut) != 1 || (range.step[at] != 1 && range.shape[cut] != 1)) return {};
  for (int axis = cut + 1; axis < data.rank(); ++axis)
    if (!is_all(axis)) return {};
  return {range.start[at] * data.size(cut + 1, data.rank())};
}

template <class P, class Base>
void add_fields(Op<P>& op) {
  op.param(&Base::begin, "begin",
           "first index along each of the leading axes; negative ones count from the end; None: the first element in "
           "the direction of step")
      .param(&Base::end, "end",
             "index after the last along each of the leading axes; negative ones count from the end; None: through the "
             "last element in the direction of step")
      .param(&Base::step, "step",
             "distance between indices along each of the leading axes, negative to go backwards; () or None: 1");
}

OpDef define(Op<Slice> op) {
  add_fields<Slice, Slice>(op);
  return op.doc("The slice data[begin:end:step] along the leading axes, as in Python; the other axes are kept whole.")
      .memory_bound()
      .aliases({"crop"})
      .infer_shape([](const Slice& p, Shapes& s) {
        const auto data = s["data"];
        if (data.rank_known()) s.output().meet(part_of(p, data, s.where()));
      })
      .pieces_of_input([](const Slice& p, auto inputs, auto) {
        return one_piece(resolve_slice(inputs[0], p.begin, p.end, p.step, "[slice]"), inputs[0]);
      })
      .gradient([](const Slice& p, Grad& g) { g.set("data", slice_grad(g.out_grad(), g.input("data"), {p})); });
}

OpDef define(Op<SliceGrad> op) {
  add_fields<SliceGrad, Slice>(op);
  return op.inputs({"out_grad", "data"})
      .shape_only({"data"})
      .infer_shape([](const auto&, Shapes& s) { s.output().meet(s["data"]); })
      .shapes_of<Slice>()
      .gradient([](const SliceGrad& p, Grad& g) {
        g.set("out_grad", slice(g.out_grad(), {.begin = p.begin, .end = p.end, .step = p.step}));
      });
}

OpDef define(Op<SliceAssign> op) {
  add_fields<SliceAssign, SliceAssign>(op);
  return op.doc("A copy of lhs in which lhs[begin:end:step] is replaced by rhs, an array of that slice's shape.")
      .aliases({"_crop_assign"})
      .precision(Precision::widest)
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
  op.param(&SliceAssignScalar::scalar, "scalar", "value to assign");
  add_fields<SliceAssignScalar, SliceAssignScalar>(op);
  return op.doc("A copy of data in which every element of data[begin:end:step] is replaced by scalar.")
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

// ---- slice_axis -----------------------------------------------------------------------------------------------------

template <class P>
Op<P>& axis_fields(Op<P>& op) {
  return op.param(&SliceAxis::axis, "axis", "axis to slice; negative ones count from the end")
      .param(&SliceAxis::begin, "begin", "first index; negative ones count from the end")
      .param(&SliceAxis::end, "end", "index after the last; negative ones count from the end; None: through the end");
}

OpDef define(Op<SliceAxis> op) {
  return axis_fields(op)
      .doc("The slice of an array from begin to end along one axis.")
      .memory_bound()
      .infer_shape([](const SliceAxis& p, Shapes& s) {
        const auto data = s["data"];
        if (data.rank_known()) s.output().meet(range_of(p, data, s.where()).shape);
      })
      .pieces_of_input([](const SliceAxis& p, auto inputs, auto) {
        return one_piece(range_of(p, inputs[0], "[slice_axis]"), inputs[0]);
      })
      .gradient(
          [](const SliceAxis& p, Grad& g) { g.set("data", slice_axis_grad(g.out_grad(), g.input("data"), {p})); });
}

OpDef define(Op<SliceAxisGrad> op) {
  return axis_fields(op)
      .inputs({"out_grad", "data"})
      .shape_only({"data"})
      .infer_shape([](const auto&, Shapes& s) { s.output().meet(s["data"]); })
      .shapes_of<SliceAxis>();
}

// ---- slice_like -----------------------------------------------------------------------------------------------------

OpDef define(Op<SliceLike> op) {
  return op.doc("The leading part of data that has the extents of shape_like along the given axes.")
      .param(&SliceLike::axes, "axes", "axes to slice; negative ones count from the end; (): all axes")
      .inputs({"data", "shape_like"})
      .shape_only({"shape_like"})
      .infer_shape([](const SliceLike& p, Shapes& s) {
        const auto data = s["data"], like = s["shape_like"];
        if (data.rank_known() && like.rank_known()) s.output().meet(range_of(p, data, like, s.where()).shape);
      })
      .infer_type([](const SliceLike&, Types& t) {
        t["data"].meet(t.output().get());
        t.output().meet(t["data"].get());
      })
      .gradient([](const SliceLike& p, Grad& g) {
        g.set("data", slice_like_grad(g.out_grad(), g.input("data"), g.input("shape_like"), {p}));
      });
}

OpDef define(Op<SliceLikeGrad> op) {
  return op.param(&SliceLike::axes, "axes", "the axes that were cut")
      .inputs({"out_grad", "data", "shape_like"})
      .shape_only({"data", "shape_like"})
      .infer_shape([](const auto&, Shapes& s) { s.output().meet(s["data"]); })
      .shapes_of<SliceLike>()
      .infer_type([](const auto&, Types& t) {
        t["out_grad"].meet(t["data"].get());
        t.output().meet(t["data"].get());
      });
}

// ---- Crop -----------------------------------------------------------------------------------------------------------

template <class P>
Op<P>& crop_fields(Op<P>& op) {
  return op
      .param(&Crop::num_args, "num_args",
             "number of inputs: 1, or 2 to take rows and columns from the shape of the second input", between(1, 2))
      .param(&Crop::offset, "offset", "first row and first column of the crop", each_at_least(0))
      .param(&Crop::h_w, "h_w", "rows and columns of the result; used with one input", each_at_least(0))
      .param(&Crop::center_crop, "center_crop", "crop the centre of the image and ignore offset")
      .check([](P& p) {
        require(p.offset.size() == 2 && p.h_w.size() == 2, "offset and h_w must have two numbers: offset ",
                print(p.offset), ", h_w ", print(p.h_w));
      });
}

OpDef define(Op<Crop> op) {
  return crop_fields(op)
      .doc("Crops images (n, channels, rows, columns) to h_w rows and columns, or to those of a second input.")
      .variadic(&Crop::num_args, "num_args")
      .inputs([](const Crop& p) {
        return p.num_args == 1 ? Names{"arg0"} : Names{"arg0", "arg1"};
      })
      .shape_only({"arg1"})
      .infer_shape([](const Crop& p, Shapes& s) {
        s.input(0).meet(Shape::of_rank(4));
        const Shape& data = s.input(0);
        if (p.num_args == 2) s.input(1).meet(Shape::of_rank(4));
        Shape shape = data;
        for (int axis = 2; axis < 4; ++axis)
          shape[axis] = p.num_args == 2 ? s.input(1)[axis] : p.h_w[static_cast<size_t>(axis - 2)];
        s.output().meet(shape);
        if (data.known() && shape.known()) range_of(p, data, shape, s.where());
      })
      .infer_type([](const Crop& p, Types& t) {
        t.input(0).meet(t.output());
        t.output().meet(t.input(0));
        if (p.num_args == 2) t.input(1).default_to(at_least_float32(t.output()));
      })
      .gradient([](const Crop& p, Grad& g) { g.set(0, crop_grad(g.out_grad(), g.input(0), {p})); });
}

OpDef define(Op<CropGrad> op) {
  return crop_fields(op)
      .inputs({"out_grad", "data"})
      .shape_only({"data"})
      .infer_shape([](const CropGrad& p, Shapes& s) {
        auto data = s["data"], out_grad = s["out_grad"];
        data.meet(Shape::of_rank(4));
        out_grad.meet({data[0], data[1], unknown_dim, unknown_dim});
        s.output().meet(data);
        if (data.known() && out_grad.known()) range_of(p, data, out_grad, s.where());
      });
}

}  // namespace

SliceRange range_of(const SliceAxis& params, const Shape& data, std::string_view who) {
  const int axis = data.axis(params.axis, who);
  SliceRange range;
  range.shape = data;
  range.step.fill(1);
  const int64_t length = data[axis];
  if (length == unknown_dim) return range;
  const auto counted = [&](int64_t index) { return index < 0 ? index + length : index; };
  const int64_t begin = counted(params.begin), end = counted(params.end.value_or(length));
  require(begin >= 0 && end <= length && begin < end, who, " begin and end must select at least one element of axis ",
          axis, ": begin ", params.begin, ", end ", print(params.end), ", data ", data);
  range.start[static_cast<size_t>(axis)] = begin;
  range.shape[axis] = end - begin;
  return range;
}

SliceRange range_of(const SliceLike& params, const Shape& data, const Shape& like, std::string_view who) {
  SliceRange range;
  range.shape = data;
  range.step.fill(1);
  const auto cut = [&](int axis, int64_t extent) {
    require(extent == unknown_dim || data[axis] == unknown_dim || extent <= data[axis], who, " axis ", axis,
            " must not be longer than that of data: data ", data, ", shape_like ", like);
    range.shape[axis] = extent;
  };
  if (params.axes.empty()) {
    require(data.rank() == like.rank(), who, " both must have as many axes: data ", data, ", shape_like ", like);
    for (int axis = 0; axis < data.rank(); ++axis) cut(axis, like[axis]);
  }
  for (const int64_t given : params.axes) cut(data.axis(given, who), like[like.axis(given, who)]);
  return range;
}

SliceRange range_of(const Crop& params, const Shape& data, const Shape& output, std::string_view who) {
  SliceRange range;
  range.shape = output;
  range.step.fill(1);
  for (int axis = 2; axis < 4; ++axis) {
    const int64_t spare = data[axis] - output[axis];
    const int64_t start = params.center_crop ? spare / 2 : params.offset[static_cast<size_t>(axis - 2)];
    require(spare >= 0 && start <= spare && output[axis] > 0, who, " the crop must be inside the image: offset ", start,
            " and extent ", output[axis], " along axis ", axis, ", data ", data);
    range.start[static_cast<size_t>(axis)] = start;
  }
  return range;
}

void register_slice(OpRegistry& registry) {
  add<Slice>(registry, "slice", define);
  add_internal<SliceGrad>(registry, "_backward_slice", define);
  add<SliceAxis>(registry, "slice_axis", define);
  add_internal<SliceAxisGrad>(registry, "_backward_slice_axis", define);
  add<SliceLike>(registry, "slice_like", define);
  add_internal<SliceLikeGrad>(registry, "_backward_slice_like", define);
  add<Crop>(registry, "Crop", define);
  add_internal<CropGrad>(registry, "_backward_Crop", define);
  add<SliceAssign>(registry, "_slice_assign", define);
  add<SliceAssignScalar>(registry, "_slice_assign_scalar", define);
}

}  // namespace symbind
