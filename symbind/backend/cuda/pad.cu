// Each element of the result is a copy of an element of the data, or the constant; each element's gradient is the sum
// over all copies of it (backend/pad.h).
#include "symbind/ops/pad.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/generate.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/pad.h"
#include "symbind/backend/units.h"
#include "symbind/backend/wide.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Neighbouring axes without a border are one axis.
struct Axes {
  int rank = 0;
  PadAxis axis[Shape::max_rank] = {};
  Divisor length[Shape::max_rank], extent[Shape::max_rank];  // those of the axes

  explicit Axes(const std::vector<PadAxis>& axes) {
    for (const PadAxis& each : axes) {
      PadAxis merged = each;
      if (rank > 0 && has_no_border(each) && has_no_border(axis[rank - 1])) {
        merged.extent *= axis[--rank].extent;
        merged.length = merged.extent;
      }
      length[rank] = merged.length;
      extent[rank] = merged.extent;
      axis[rank++] = merged;
    }
  }
  constexpr const PadAxis& last() const { return axis[rank - 1]; }

 private:
  static bool has_no_border(const PadAxis& axis) { return axis.before == 0 && axis.length == axis.extent; }
};

// The result by rows along the last axis. A row is the index of the first element that the data's row has; -1: all of
// the row is the constant.
template <class Unit>
struct Padded {
  const Unit* data;
  Axes axes;
  Unit constant;
  __device__ int64_t row(int64_t number) const {
    int64_t start = 0;
    for (int axis = axes.rank - 2; axis >= 0; --axis) {
      const PadAxis& along = axes.axis[axis];
      const Divided at = axes.length[axis].divide(number);
      const int64_t index = along.shown_at(at.rest);
      if (index < 0) return -1;
      start += index * along.step;
      number = at.quotient;
    }
    return start;
  }
  __device__ Unit element(int64_t row, int64_t position) const {
    const int64_t index = axes.last().shown_at(position);
    return row < 0 || index < 0 ? constant : data[row + index];
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
          queue_generate_rows(stream_of(args), args.out<Unit>(), count, axes.last().length,
                              Padded<Unit>{args.in<Unit>(0), axes, static_cast<Unit>(constant)});
        });
      });
}

// The gradient by rows along the last axis. The terms of an element's sum are numbered, those along the last axis next
// to each other. Most rows are shown once, and most of their elements.
template <class T>
struct SumOfShown {
  using C = functions::Wide<T>;
  struct Row {
    int64_t number, start;  // start: in the out_grad, of the first row that shows this one
    int64_t shown;          // rows that show it
  };
  const T* dy;
  Axes axes;

  __device__ Row row(int64_t number) const {
    Row row{number, 0, 1};
    for (int axis = axes.rank - 2; axis >= 0; --axis) {
      const PadAxis& along = axes.axis[axis];
      const Divided at = axes.extent[axis].divide(number);
      row.start += along.position(at.rest, 0) * along.step;
      row.shown *= along.position_count(at.rest);
      number = at.quotient;
    }
    return row;
  }
  __device__ T element(const Row& row, int64_t index) const {
    const PadAxis& last = axes.last();
    const int64_t count = last.position_count(index);
    C sum = 0;
    for (int64_t which = 0; which < row.shown; ++which) {
      const int64_t start = which == 0 ? row.start : start_of(row.number, which);
      for (int64_t n = 0; n < count; ++n)
        sum = functions::add(sum, static_cast<C>(load(dy[start + last.position(index, n)])));
    }
    return convert_element<T>(sum);
  }

 private:
  // The start of the row of the out_grad that is the `which`-th to show a row.
  __device__ int64_t start_of(int64_t number, int64_t which) const {
    int64_t start = 0;
    for (int axis = axes.rank - 2; axis >= 0; --axis) {
      const PadAxis& along = axes.axis[axis];
      const Divided at = axes.extent[axis].divide(number), turn = divided(which, along.position_count(at.rest));
      start += along.position(at.rest, turn.rest) * along.step;
      number = at.quotient;
      which = turn.quotient;
    }
    return start;
  }
};

std::unique_ptr<Kernel> build_pad_grad(const NodeView& node) {
  const Shape& padded = node.inputs[0].shape;
  const Tensor& out = node.outputs[0];
  return visit_dtype(out.dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [axes = Axes(pad_axes(node.as<PadGrad>(), out.shape, padded, padded)),
                            count = out.shape.size()](const Args& args) {
      queue_generate_rows(stream_of(args), args.out<T>(), count, axes.last().extent,
                          SumOfShown<T>{args.in<T>(0), axes});
    });
  });
}

}  // namespace

void add_pad(ImplementationTable& table) {
  table.add<Pad>({"cuda", refuse_layouts, build_pad});
  table.add<PadGrad>({"cuda", refuse_layouts, build_pad_grad});
}

}  // namespace symbind::cuda_backend
