// Elements selected by indices or a condition. If one element of each row is written, each thread of the result checks
// whether its element is the one, so that the result is written once, in order.
#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/gather.h"
#include "symbind/backend/cuda/generate.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/units.h"
#include "symbind/core/axis_view.h"
#include "symbind/core/error.h"
#include "symbind/ops/gather.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// ---- One element of each row ----------------------------------------------------------------------------------------

// Rows along the middle axis of a view, and the index that each of them has.
struct RowIndex {
  AxisView rows;
  AnyArray indices;
  bool wraps;  // or clips

  __device__ int64_t of(int64_t row) const {
    const int64_t index = indices.index(row), length = rows.length;
    if (wraps) return (index % length + length) % length;
    return index < 0 ? 0 : index < length ? index : length - 1;
  }
};

template <class Unit>
struct Picked {
  const Unit* data;
  RowIndex index;
  __device__ Unit operator()(int64_t row) const {
    const AxisView& rows = index.rows;
    const Divided at = divided(row, rows.inner);
    return data[(at.quotient * rows.length + index.of(row)) * rows.inner + at.rest];
  }
};

// The values at the index of each row, elsewhere the elements of `data`; no data: zero.
template <class Unit>
struct Replaced {
  const Unit *values, *data;
  RowIndex index;
  __device__ Unit operator()(int64_t i) const {
    const AxisView& rows = index.rows;
    const Divided at = divided(i, rows.inner), along = divided(at.quotient, rows.length);
    const int64_t row = along.quotient * rows.inner + at.rest;
    if (index.of(row) == along.rest) return values[row];
    return data ? data[i] : Unit{};
  }
};

// The properties of a RowIndex known when a kernel is built.
class RowIndexInput {
 public:
  RowIndexInput(const NodeView& node, size_t input, const AxisView& rows, const std::string& mode)
      : input_(input), index_{rows, {nullptr, node.inputs[input].dtype}, mode == "wrap"} {
    if (rows.length == 0 && rows.row_count() > 0)
      refused_ = join(node.where(), " there is nothing to take from along an axis without elements");
  }
  RowIndex of(const Args& args) const {
    require(refused_.empty(), refused_);
    RowIndex index = index_;
    index.indices.data = args.inputs[input_];
    return index;
  }

 private:
  size_t input_;
  RowIndex index_;
  std::string refused_;
};

std::unique_ptr<Kernel> build_pick(const NodeView& node, int axis, const std::string& mode) {
  const AxisView rows = view_along(node.inputs[0].shape, axis);
  return make_step(node, [index = RowIndexInput(node, 1, rows, mode), count = rows.row_count(),
                          element = size_of(node.outputs[0].dtype)](const Args& args) {
    const RowIndex indices = index.of(args);
    visit_unit(element, [&]<class Unit>(Unit) {
      queue_generate(stream_of(args), args.out<Unit>(), count, Picked<Unit>{args.in<Unit>(0), indices});
    });
  });
}

std::unique_ptr<Kernel> build_pick_grad(const NodeView& node) {
  const auto& p = node.as<PickGrad>();
  const Tensor& whole = node.outputs[0];
  const AxisView rows = view_along(whole.shape, whole.shape.axis(*p.axis, node.where()));
  return make_step(
      node, [index = RowIndexInput(node, 1, rows, p.mode), rows, element = size_of(whole.dtype)](const Args& args) {
        const RowIndex indices = index.of(args);
        visit_unit(element, [&]<class Unit>(Unit) {
          queue_generate(stream_of(args), args.out<Unit>(), rows.size(),
                         Replaced<Unit>{args.in<Unit>(0), nullptr, indices});
        });
      });
}

std::unique_ptr<Kernel> build_fill_element(const NodeView& node) {
  const AxisView rows = view_along(node.inputs[0].shape, 1);
  return make_step(
      node,
      [index = RowIndexInput(node, 2, rows, "clip"), rows, element = size_of(node.outputs[0].dtype)](const Args& args) {
        const RowIndex indices = index.of(args);
        visit_unit(element, [&]<class Unit>(Unit) {
          queue_generate(stream_of(args), args.out<Unit>(), rows.size(),
                         Replaced<Unit>{args.in<Unit>(1), args.in<Unit>(0), indices});
        });
      },
      {.in_place = {{0, 0}}});
}

template <class Unit>
struct OneHotElement {
  AnyArray indices;
  int64_t depth;
  Unit on, off;
  __device__ Unit operator()(int64_t i) const {
    const Divided at = divided(i, depth);
    return indices.whole(at.quotient) == at.rest ? on : off;
  }
};

std::unique_ptr<Kernel> build_one_hot(const NodeView& node) {
  const auto& p = node.as<OneHot>();
  const Tensor& out = node.outputs[0];
  return make_step(node, [depth = int64_t{p.depth}, count = out.shape.size(), element = size_of(out.dtype),
                          of_index = node.inputs[0].dtype, on = bits_of(p.on_value, out.dtype),
                          off = bits_of(p.off_value, out.dtype)](const Args& args) {
    visit_unit(element, [&]<class Unit>(Unit) {
      queue_generate(
          stream_of(args), args.out<Unit>(), count,
          OneHotElement<Unit>{{args.inputs[0], of_index}, depth, static_cast<Unit>(on), static_cast<Unit>(off)});
    });
  });
}

// ---- where ----------------------------------------------------------------------------------------------------------

template <class Unit>
struct Chosen {
  AnyArray condition;
  int64_t slice;  // elements that share a condition
  const Unit *x, *y;
  __device__ Unit operator()(int64_t i) const {
    return condition.truth(slice == 1 ? i : divided(i, slice).quotient) ? x[i] : y[i];
  }
};

std::unique_ptr<Kernel> build_where(const NodeView& node) {
  const int64_t count = node.outputs[0].shape.size(), conditions = node.inputs[0].shape.size();
  return make_step(node,
                   [count, slice = conditions > 0 ? std::max<int64_t>(1, count / conditions) : 1,
                    of_condition = node.inputs[0].dtype, element = size_of(node.outputs[0].dtype)](const Args& args) {
                     visit_unit(element, [&]<class Unit>(Unit) {
                       queue_generate(
                           stream_of(args), args.out<Unit>(), count,
                           Chosen<Unit>{{args.inputs[0], of_condition}, slice, args.in<Unit>(1), args.in<Unit>(2)});
                     });
                   },
                   {.in_place = {{1, 0}, {2, 0}}});
}

}  // namespace

void add_gathered_elements(ImplementationTable& table) {
  table.add<Pick>({"cuda", refuse_layouts, [](const NodeView& node) {
                     const auto& p = node.as<Pick>();
                     return build_pick(node, node.inputs[0].shape.axis(*p.axis, node.where()), p.mode);
                   }});
  table.add<BatchTake>({"cuda", refuse_layouts, [](const NodeView& node) { return build_pick(node, 1, "clip"); }});
  table.add<PickGrad>({"cuda", refuse_layouts, build_pick_grad});
  table.add<FillElement>({"cuda", refuse_layouts, build_fill_element});
  table.add<OneHot>({"cuda", refuse_layouts, build_one_hot});
  table.add<Where>({"cuda", refuse_layouts, build_where});
}

}  // namespace symbind::cuda_backend
