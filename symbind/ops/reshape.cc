#include "symbind/ops/reshape.h"

#include <algorithm>

#include "symbind/core/ndarray.h"
#include "symbind/graph/define.h"

namespace symbind {
namespace {

// One unknown dimension follows from the number of elements.
void fill_one_unknown(Inferred<Shape> shape, int64_t elements) {
  if (!shape.rank_known() || shape.known()) return;
  int unknown = -1;
  int64_t others = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != unknown_dim) {
      if (__builtin_mul_overflow(others, shape[axis], &others)) return;
    } else if (unknown >= 0) {
      return;
    } else {
      unknown = axis;
    }
  }
  if (others > 0 && elements % others == 0) shape.meet_dim(unknown, elements / others);
}

// ---- Flatten --------------------------------------------------------------------------------------------------------

OpDef define(Op<Flatten> op) {
  return op.doc("Reshapes data to two axes: the first is kept, the others are merged into the second.")
      .aliases({"flatten"})
      .view()
      .infer_shape([](const auto&, Shapes& s) {
        const auto data = s["data"];
        auto output = s.output();
        output.meet(Shape::of_rank(2));
        if (!data.rank_known()) return;
        require(data.rank() > 0, s.where(), " data must have an axis: ", data.get());
        s["data"].meet_dim(0, output[0]);
        output.meet_dim(0, data[0]);
        const Shape row = data.get().slice(1, data.rank());
        if (row.known()) output.meet_dim(1, row.size());
      })
      .gradient([](const auto&, Grad& g) { g.set("data", reshape_like(g.out_grad(), g.input("data"))); });
}

// ---- Reshape --------------------------------------------------------------------------------------------------------

// The older form: one 0 is inferred, and keep_highest keeps the first axis whatever the first number is.
Shape resolve_target_shape(const Reshape& p, const Shape& data, const std::string& where) {
  Tuple codes = p.target_shape;
  const size_t first = p.keep_highest ? 1 : 0;
  require(std::count(codes.begin() + static_cast<std::ptrdiff_t>(first), codes.end(), 0) <= 1, where,
          " target_shape may leave one dimension to infer: target_shape ", print(p.target_shape));
  for (int64_t& code : codes) {
    require(code >= 0, where, " target_shape must hold sizes: target_shape ", print(p.target_shape));
    if (code == 0) code = -1;
  }
  if (p.keep_highest) codes[0] = data[0];
  return resolve_reshape(data, codes, false, where);
}

// The known part of the result when some dimensions of data are unknown. Codes that move axes are not resolved yet.
Shape partial_reshape(const Tuple& codes, const Shape& data) {
  Shape shape = Shape::scalar();
  for (size_t i = 0; i < codes.size(); ++i) {
    const int axis = static_cast<int>(i);
    if (codes[i] < -1) return {};
    if (codes[i] == 0)
      shape.push_back(axis < data.rank() ? data[axis] : unknown_dim);
    else
      shape.push_back(codes[i] == -1 ? unknown_dim : codes[i]);
  }
  return shape;
}

OpDef define(Op<Reshape> op) {
  return op
      .doc(
          "The same elements, in the same order, in another shape. Besides extents, shape may hold codes: 0 copies the "
          "extent of the input's axis, -1 (at most once) is inferred from the number of elements, -2 copies all "
          "remaining axes, -3 merges the next two axes, and -4 splits the next axis into the two extents that follow, "
          "of which one may be -1.")
      .aliases({"reshape"})
      .param(&Reshape::shape, "shape", "the new shape: extents and the codes 0, -1, -2, -3 and -4")
      .param(&Reshape::reverse, "reverse", "match shape with the axes of data from the last one to the first")
      .param(&Reshape::target_shape, "target_shape",
             "the new shape as old files have it, used if shape is not given: one extent may be 0, which is inferred")
      .param(&Reshape::keep_highest, "keep_highest",
             "with target_shape: preserve the extent of the first axis and ignore that of target_shape")
      .check([](Reshape& p) { require(!p.shape.empty() || !p.target_shape.empty(), "shape must be given: shape ()"); })
      .view()
      .infer_shape([](const Reshape& p, Shapes& s) {
        auto data = s["data"], output = s.output();
        if (output.known()) fill_one_unknown(data, output.get().size());
        if (data.known()) {
          const Shape shape = p.shape.empty() ? resolve_target_shape(p, data, s.where())
                                              : resolve_reshape(data, p.shape, p.reverse, s.where());
          require(shape.size() == data.get().size(), s.where(), " the number of elements must stay: data ", data.get(),
                  ", output ", shape);
          output.meet(shape);
        } else if (data.rank_known() && !p.shape.empty() && !p.reverse) {
          output.meet(partial_reshape(p.shape, data));
        }
      })
      .gradient([](const auto&, Grad& g) { g.set("data", reshape_like(g.out_grad(), g.input("data"))); });
}

// ---- reshape_like ---------------------------------------------------------------------------------------------------

struct AxisRange {
  int begin, end;
};
AxisRange resolve_range(const std::optional<int64_t>& begin, const std::optional<int64_t>& end, const Shape& shape,
                        const char* argument, const std::string& where) {
  const auto from_end = [&](int64_t index) { return index < 0 ? index + shape.rank() : index; };
  const int64_t first = from_end(begin.value_or(0)), last = end ? from_end(*end) : shape.rank();
  require(first >= 0 && first <= last && last <= shape.rank(), where, " ", argument, "_begin and ", argument,
          "_end must name a range of axes: ", first, " and ", last, ", ", argument, " ", shape);
  return {static_cast<int>(first), static_cast<int>(last)};
}

OpDef define(Op<ReshapeLike> op) {
  return op
      .doc(
          "The elements of lhs in the shape of rhs; with begin and end, lhs with one range of axes replaced by a range "
          "of axes of rhs that has as many elements.")
      .param(&ReshapeLike::lhs_begin, "lhs_begin",
             "first axis of lhs to replace; negative ones count from the end; None: 0")
      .param(&ReshapeLike::lhs_end, "lhs_end",
             "axis after the last axis of lhs to replace; negative ones count from the end; None: all to the end")
      .param(&ReshapeLike::rhs_begin, "rhs_begin",
             "first axis of rhs whose extent is used; negative ones count from the end; None: 0")
      .param(&ReshapeLike::rhs_end, "rhs_end",
             "axis after the last axis of rhs whose extent is used; negative ones count from the end; None: all to the "
             "end")
      .inputs({"lhs", "rhs"})
      .shape_only({"rhs"})
      .view()
      .infer_shape([](const ReshapeLike& p, Shapes& s) {
        const auto lhs = s["lhs"], rhs = s["rhs"];
        const bool whole = !p.lhs_begin && !p.lhs_end && !p.rhs_begin && !p.rhs_end;
        if (whole) s.output().meet(rhs);
        if (lhs.known() && rhs.known()) {
          const AxisRange from = resolve_range(p.lhs_begin, p.lhs_end, lhs, "lhs", s.where());
          const AxisRange to = resolve_range(p.rhs_begin, p.rhs_end, rhs, "rhs", s.where());
          require(lhs.get().size(from.begin, from.end) == rhs.get().size(to.begin, to.end), s.where(),
                  " the axes must hold the same number of elements: lhs ", lhs.get(), ", rhs ", rhs.get());
          Shape shape = lhs.get().slice(0, from.begin);
          for (int axis = to.begin; axis < to.end; ++axis) shape.push_back(rhs[axis]);
          for (int axis = from.end; axis < lhs.rank(); ++axis) shape.push_back(lhs[axis]);
          s.output().meet(shape);
        } else if (whole && rhs.known()) {
          fill_one_unknown(s["lhs"], rhs.get().size());
        }
      })
      .infer_type([](const auto&, Types& t) { t.output().meet(t["lhs"]), t["lhs"].meet(t.output()); })
      .gradient([](const auto&, Grad& g) { g.set("lhs", reshape_like(g.out_grad(), g.input("lhs"))); });
}

// ---- expand_dims, squeeze -------------------------------------------------------------------------------------------

OpDef define(Op<ExpandDims> op) {
  return op.doc("Inserts an axis of extent 1. The elements and their order stay the same.")
      .param(&ExpandDims::axis, "axis",
             "index of the new axis in the result; negative ones count from the end of the result")
      .view()
      .infer_shape([](const ExpandDims& p, Shapes& s) {
        auto data = s["data"], output = s.output();
        if (data.rank_known()) {
          require(data.rank() < Shape::max_rank, s.where(), " data has too many axes: ", data.get());
          const int axis = Shape::of_rank(data.rank() + 1).axis(p.axis, s.where());
          Shape shape = data.get().slice(0, axis);
          shape.push_back(1);
          for (int i = axis; i < data.rank(); ++i) shape.push_back(data[i]);
          output.meet(shape);
        }
        if (output.rank_known() && output.rank() > 1) {
          const int axis = output.get().axis(p.axis, s.where());
          Shape shape = output.get().slice(0, axis);
          for (int i = axis + 1; i < output.rank(); ++i) shape.push_back(output[i]);
          data.meet(shape);
        }
      })
      .gradient([](const ExpandDims&, Grad& g) { g.set("data", reshape_like(g.out_grad(), g.input("data"))); });
}

OpDef define(Op<Squeeze> op) {
  return op.doc("Removes axes of extent 1. The elements and their order stay the same.")
      .param(&Squeeze::axis, "axis",
             "axis or axes to remove, each of extent 1; negative ones count from the end; None: all of extent 1")
      .view()
      .infer_shape([](const Squeeze& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known() || (!p.axis && !data.known())) return;
        std::vector<bool> left_out(static_cast<size_t>(data.rank()), false);
        for (int i = 0; i < data.rank(); ++i) left_out[static_cast<size_t>(i)] = !p.axis && data[i] == 1;
        for (const int64_t given : p.axis.value_or(Tuple{})) {
          const int axis = data.get().axis(given, s.where());
          require(data[axis] == 1 || data[axis] == unknown_dim, s.where(), " axis ", axis,
                  " has more than one element: data ", data.get());
          left_out[static_cast<size_t>(axis)] = true;
        }
        Shape shape = Shape::scalar();
        for (int i = 0; i < data.rank(); ++i)
          if (!left_out[static_cast<size_t>(i)]) shape.push_back(data[i]);
        s.output().meet(shape.rank() == 0 ? Shape{1} : shape);
      })
      .gradient([](const Squeeze&, Grad& g) { g.set("data", reshape_like(g.out_grad(), g.input("data"))); });
}

}  // namespace

void register_reshape(OpRegistry& registry) {
  add<Flatten>(registry, "Flatten", define);
  add<Reshape>(registry, "Reshape", define);
  add<ReshapeLike>(registry, "reshape_like", define);
  add<ExpandDims>(registry, "expand_dims", define);
  add<Squeeze>(registry, "squeeze", define);
}

}  // namespace symbind
