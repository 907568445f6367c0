#include "symbind/ops/diag.h"

#include <algorithm>
#include <cstdlib>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"

namespace symbind {

namespace {

// How many elements the diagonal across two extents has.
int64_t diagonal_length(int64_t k, int64_t down, int64_t across, std::string_view who) {
  const int64_t length = k >= 0 ? std::min(down, across - k) : std::min(down + k, across);
  require(length >= 0, who, " there is no diagonal ", k, " across ", down, " and ", across, " elements");
  return length;
}

constexpr int64_t furthest = int64_t{1} << 31;

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&Diag::k, "k",
             "index of the diagonal: 0 is the main diagonal, k > 0 the k-th above it, k < 0 the k-th below it",
             between(-static_cast<double>(furthest), static_cast<double>(furthest)))
      .param(&Diag::axis1, "axis1", "axis of the rows; negative ones count from the end")
      .param(&Diag::axis2, "axis2", "axis of the columns; negative ones count from the end");
}

OpDef define(Op<Diag> op) {
  return with_fields(op)
      .doc(
          "Extracts a diagonal over axis1 and axis2, which becomes the last axis of the result. An array with one axis "
          "gives the square matrix that has it as diagonal k and zeros elsewhere.")
      .infer_shape([](const Diag& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.known()) return;
        if (data.rank() == 1) {
          const int64_t extent = extent_sum(data[0], std::abs(p.k), s.where());
          extent_product(extent, extent, s.where());
          s.output().meet({extent, extent});
          return;
        }
        Shape shape = Shape::scalar();
        for (const int64_t extent : diagonals_of(p, data, s.where()).extents) shape.push_back(extent);
        s.output().meet(shape);
      })
      .gradient([](const Diag& p, Grad& g) { g.set("data", diag_grad(g.out_grad(), g.input("data"), {p})); });
}

OpDef define(Op<DiagGrad> op) {
  return with_fields(op)
      .inputs({"out_grad", "data"})
      .shape_only({"data"})
      .infer_shape([](const DiagGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<Diag>();
}

}  // namespace

Diagonals diagonals_of(const Diag& params, const Shape& whole, std::string_view who) {
  require(whole.rank() >= 2, who, " data must have an axis: data ", whole);
  const int down = whole.axis(params.axis1, who), across = whole.axis(params.axis2, who);
  require(down != across, who, " axis1 and axis2 must be different: ", params.axis1, " and ", params.axis2, ", data ",
          whole);
  const auto strides = whole.strides();
  const int64_t row = strides[static_cast<size_t>(down)], column = strides[static_cast<size_t>(across)];
  Diagonals made;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    if (axis == down || axis == across) continue;
    made.extents.push_back(whole[axis]);
    made.steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  made.extents.push_back(diagonal_length(params.k, whole[down], whole[across], who));
  made.steps.push_back(row + column);
  made.start = params.k >= 0 ? params.k * column : -params.k * row;
  return made;
}

void register_diag(OpRegistry& registry) {
  add<Diag>(registry, "diag", define);
  add_internal<DiagGrad>(registry, "_backward_diag", define);
}

}  // namespace symbind
