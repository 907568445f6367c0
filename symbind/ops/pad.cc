#include "symbind/ops/pad.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"

namespace symbind {
namespace {

template <class P>
Op<P>& pad_fields(Op<P>& op) {
  return op
      .param(&Pad::mode, "mode",
             "what the border holds: 'constant': constant_value; 'edge': the nearest element; 'reflect': the array "
             "mirrored at its edge, without repeating the edge",
             one_of(pad_mode::all))
      .param(&Pad::pad_width, "pad_width",
             "width of the border: two numbers for each axis, before and after it; a negative one cuts off elements",
             each_at_least(-(int64_t{1} << 60)))
      .param(&Pad::constant_value, "constant_value", "value of the border with mode 'constant'");
}

// The shape with the padding added, or removed.
Shape with_borders(const Pad& p, const Shape& data, bool taken_off, const std::string& where) {
  require(data.rank() > 0, where, " there must be an axis to pad: ", data);
  require(p.pad_width.size() == 2 * static_cast<size_t>(data.rank()), where,
          " pad_width must have two numbers for each axis: pad_width ", print(p.pad_width), ", data ", data);
  Shape shape = data;
  for (int axis = 0; axis < data.rank(); ++axis) {
    const auto i = 2 * static_cast<size_t>(axis);
    const int64_t borders = checked_sum(p.pad_width[i], p.pad_width[i + 1], where);
    if (data[axis] == unknown_dim) continue;
    shape[axis] = taken_off ? data[axis] - borders : checked_sum(data[axis], borders, where);
    require(shape[axis] >= 0, where, " axis ", axis, taken_off ? " is shorter than its borders" : " is too short",
            ": pad_width ", print(p.pad_width), taken_off ? ", out_grad " : ", data ", data);
  }
  return shape;
}

// Edges are repeated or mirrored: there must be enough of them.
void check_edges(const Pad& p, const Shape& data, const std::string& where) {
  for (int axis = 0; axis < data.rank(); ++axis) {
    const auto i = 2 * static_cast<size_t>(axis);
    const int64_t most = std::max(p.pad_width[i], p.pad_width[i + 1]);
    if (data[axis] == unknown_dim || most <= 0 || p.mode == "constant") continue;
    require(p.mode == "edge" ? data[axis] > 0 : most < data[axis], where, " axis ", axis,
            " is too short for a border of ", most, ": data ", data);
  }
}

OpDef define(Op<Pad> op) {
  return pad_fields(op)
      .doc(
          "Pads an array with a border; each axis grows by its two numbers in pad_width. Negative numbers cut off "
          "elements, after padding.")
      .memory_bound()
      .aliases({"pad"})
      .infer_shape([](const Pad& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        s.output().meet(with_borders(p, data, false, s.where()));
        check_edges(p, data, s.where());
      })
      .gradient([](const Pad& p, Grad& g) { g.set("data", pad_grad(g.out_grad(), {p})); });
}

OpDef define(Op<PadGrad> op) {
  return pad_fields(op).inputs({"out_grad"}).infer_shape([](const PadGrad& p, Shapes& s) {
    if (!s["out_grad"].rank_known()) return;
    s.output().meet(with_borders(p, s["out_grad"], true, s.where()));
    check_edges(p, s.output(), s.where());
  });
}

}  // namespace

void register_pad(OpRegistry& registry) {
  add<Pad>(registry, "Pad", define);
  add_internal<PadGrad>(registry, "_backward_Pad", define);
}

}  // namespace symbind
