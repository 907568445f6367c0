// Each element of the result is a copy of an element of the data, or the constant; each element's gradient is the sum
// over all copies of it (backend/pad.h).
#include "symbind/ops/pad.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/generate.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/wide_array.cuh"
#include "symbind/backend/functions.h"
#include "symbind/backend/pad.h"
#include "symbind/backend/units.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

struct Axes {
  int rank = 0;
  PadAxis axis[Shape::max_rank] = {};
  Divisor length[Shape::max_rank], extent[Shape::max_rank];  // those of the axes

  explicit Axes(const std::vector<PadAxis>& axes) {
    for (const PadAxis& each : axes) {
      length[rank] = each.length;
      extent[rank] = each.extent;
      axis[rank++] = each;
    }
  }
};

template <class Unit>
struct Padded {
  const Unit* data;
  Axes axes;
  Unit constant;
  __device__ Unit operator()(int64_t i) const {
    int64_t from = 0;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      const PadAxis& along = axes.axis[axis];
      const Divided at = axes.length[axis].divide(i);
      const int64_t index = along.shown_at(at.rest);
      if (index < 0) return constant;
      from += index * along.step;
      i = at.quotient;
    }
    return data[from];
  }
};

std::unique_ptr<Kernel> build_pad(const NodeView& node) {
  const auto& p = node.as<Pad>();
  const Shape& data = node.inputs[0].shape;
  const Tensor& out = node.outputs[0];
  return make_step(
      node, [axes = Axes(pad_axes(p, data, out.shape, data)), count = out.shape.size(), element = size_of(out.dtype),
             constant = bits_of(p.constant_value, out.dtype)](const Args& args) {
        visit_unit(element, [&]<class Unit>(Unit) {
          queue_generate(stream_of(args), args.out<Unit>(), count,
                         Padded<Unit>{args.in<Unit>(0), axes, static_cast<Unit>(constant)});
        });
      });
}

// The terms of an element's sum are numbered, those along the last axis next to each other. Most elements have one.
template <class C>
__global__ void sum_shown(WideArray<C> dy, WideArray<C> dx, Axes axes, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    int64_t index[Shape::max_rank], rest = i, terms = 1, first = 0;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      const PadAxis& along = axes.axis[axis];
      const Divided at = axes.extent[axis].divide(rest);
      index[axis] = at.rest;
      rest = at.quotient;
      terms *= along.position_count(at.rest);
      first += along.position(at.rest, 0) * along.step;
    }
    if (terms == 1) {
      dx.set(i, functions::add(C(0), dy[first]));
      continue;
    }
    C sum = 0;
    for (int64_t term = 0; term < terms; ++term) {
      int64_t from = 0;
      rest = term;
      for (int axis = axes.rank - 1; axis >= 0; --axis) {
        const PadAxis& along = axes.axis[axis];
        const Divided at = divided(rest, along.position_count(index[axis]));
        from += along.position(index[axis], at.rest) * along.step;
        rest = at.quotient;
      }
      sum = functions::add(sum, dy[from]);
    }
    dx.set(i, sum);
  }
}

std::unique_ptr<Kernel> build_pad_grad(const NodeView& node) {
  const Shape& padded = node.inputs[0].shape;
  const Tensor& out = node.outputs[0];
  return functions::visit_wide(out.dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [axes = Axes(pad_axes(node.as<PadGrad>(), out.shape, padded, padded)),
                            count = out.shape.size(), dtype = out.dtype](const Args& args) {
      if (count > 0)
        sum_shown<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
            WideArray<C>(args.inputs[0], dtype), WideArray<C>(args.outputs[0], dtype), axes, count);
    });
  });
}

}  // namespace

void add_pad(ImplementationTable& table) {
  table.add<Pad>({"cuda", refuse_layouts, build_pad});
  table.add<PadGrad>({"cuda", refuse_layouts, build_pad_grad});
}

}  // namespace symbind::cuda_backend
