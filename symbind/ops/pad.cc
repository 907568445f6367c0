#include "symbind/ops/pad.h"

#include <algorithm>

#include "symbind/graph/define.h"

namespace symbind {

std::vector<int64_t> padded_indices(const Pad& params, int axis, int64_t extent) {
  const auto before = params.pad_width[static_cast<size_t>(2 * axis)];
  const auto behind = params.pad_width[static_cast<size_t>(2 * axis + 1)];
  std::vector<int64_t> indices;
  for (int64_t i = -before; i < extent + behind; ++i) {
    const bool inside = i >= 0 && i < extent;
    if (inside)
      indices.push_back(i);
    else if (params.mode == "constant")
      indices.push_back(-1);
    else if (params.mode == "edge")
      indices.push_back(i < 0 ? 0 : extent - 1);
    else
      indices.push_back(i < 0 ? -i : 2 * (extent - 1) - i);
  }
  return indices;
}

namespace {

template <class P>
Op<P>& pad_fields(Op<P>& op) {
  return op
      .param(&Pad::mode, "mode", "a constant, the nearest element, or the array mirrored at its edge",
             one_of({"constant", "edge", "reflect"}))
      .param(&Pad::pad_width, "pad_width", "how much before and behind, axis by axis", each_at_least(0))
      .param(&Pad::constant_value, "constant_value", "the constant");
}

// The shape with its borders, or with them taken off again.
Shape with_borders(const Pad& p, const Shape& data, int sign, const std::string& where) {
  require(p.pad_width.size() == 2 * static_cast<size_t>(data.rank()), where,
          " pad_width must have two numbers for each axis: pad_width ", print(p.pad_width), ", data ", data);
  Shape shape = data;
  for (int axis = 0; axis < data.rank(); ++axis) {
    const auto i = 2 * static_cast<size_t>(axis);
    if (data[axis] != unknown_dim) shape[axis] += sign * (p.pad_width[i] + p.pad_width[i + 1]);
  }
  return shape;
}

OpDef define(Op<Pad> op) {
  return pad_fields(op)
      .doc("An array with borders around it.")
      .aliases({"pad"})
      .infer_shape([](const Pad& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        s.output().meet(with_borders(p, data, 1, s.where()));
        for (int axis = 0; axis < data.rank(); ++axis) {
          const auto i = 2 * static_cast<size_t>(axis);
          const int64_t most = std::max(p.pad_width[i], p.pad_width[i + 1]);
          if (data[axis] == unknown_dim || most == 0 || p.mode == "constant") continue;
          require(p.mode == "edge" ? data[axis] > 0 : most < data[axis], s.where(), " axis ", axis,
                  " is too short for a border of ", most, ": data ", data.get());
        }
      })
      .gradient([](const Pad& p, Grad& g) { g.set("data", pad_grad(g.out_grad(), {p})); });
}

OpDef define(Op<PadGrad> op) {
  return pad_fields(op).inputs({"out_grad"}).infer_shape([](const PadGrad& p, Shapes& s) {
    if (s["out_grad"].rank_known()) s.output().meet(with_borders(p, s["out_grad"], -1, s.where()));
  });
}

}  // namespace

void register_pad(OpRegistry& registry) {
  add<Pad>(registry, "Pad", define);
  add<PadGrad>(registry, "_backward_Pad", define);
}

}  // namespace symbind
