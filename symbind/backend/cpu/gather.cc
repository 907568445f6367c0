// take copies slices of bytes; the gradients add slices at the indices they were taken from. Each thread has its own
// columns, so that no two write to the same element and every sum is in the order of the indices.
#include "symbind/ops/gather.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/units.h"
#include "symbind/backend/wide.h"
#include "symbind/core/axis_view.h"
#include "symbind/core/error_kinds.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

enum class Outside { clip, wrap, raise };
Outside outside_of(const std::string& mode) {
  return mode == "clip" ? Outside::clip : mode == "wrap" ? Outside::wrap : Outside::raise;
}

// The numbers of an array as indices along an axis.
class SliceIndices {
 public:
  SliceIndices(const Tensor& numbers, int64_t length, Outside outside, std::string where)
      : count_(numbers.shape.size()),
        dtype_(numbers.dtype),
        length_(length),
        outside_(outside),
        where_(std::move(where)) {}

  size_t bytes() const { return static_cast<size_t>(count_) * sizeof(int64_t); }
  int64_t count() const { return count_; }

  void read(const void* numbers, int64_t* indices) const {
    if (count_ == 0) return;
    require(length_ > 0, where_, " there is nothing to take from along an axis without elements");
    visit_dtype(dtype_, [&]<class T>(std::type_identity<T>) {
      std::transform(static_cast<const T*>(numbers), static_cast<const T*>(numbers) + count_, indices,
                     [](T number) { return index_of(number); });
    });
    for (int64_t i = 0; i < count_; ++i) {
      int64_t& index = indices[i];
      if (outside_ == Outside::raise)
        require(index >= 0 && index < length_, where_, " index ", index, " is outside of an axis of length ", length_);
      else if (outside_ == Outside::clip)
        index = std::clamp<int64_t>(index, 0, length_ - 1);
      else
        index = (index % length_ + length_) % length_;
    }
  }

 private:
  int64_t count_;
  DType dtype_;
  int64_t length_;
  Outside outside_;
  std::string where_;
};

// ---- take -----------------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_take_along(const NodeView& node, const Tensor& from, size_t from_input,
                                         size_t numbers_input, int axis, Outside outside) {
  const AxisView around = view_along(from.shape, axis);
  const SliceIndices indices(node.inputs[numbers_input], around.length, outside, node.where());
  const int64_t slice = around.inner * static_cast<int64_t>(size_of(from.dtype));
  return make_kernel(
      [=](const Args& args) {
        auto* const at = static_cast<int64_t*>(args.scratch);
        indices.read(args.inputs[numbers_input], at);
        const auto* const whole = args.in<std::byte>(from_input);
        auto* const out = args.out<std::byte>();
        const int64_t count = indices.count();
        parallel_for(around.outer * count, std::max<int64_t>(1, element_grain * 4 / std::max<int64_t>(1, slice)),
                     [=](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i)
                         std::memcpy(out + i * slice, whole + (i / count * around.length + at[i % count]) * slice,
                                     static_cast<size_t>(slice));
                     });
      },
      {.scratch_bytes = indices.bytes()});
}

// Sums in a wide type; narrow results are rounded once at the end. Scratch: the sums, if they are wider, then indices.
template <class T>
struct Sums {
  using C = functions::Wide<T>;
  static constexpr bool apart = !std::is_same_v<C, T>;
  int64_t count;
  size_t bytes() const { return apart ? (static_cast<size_t>(count) * sizeof(C) + 63) / 64 * 64 : 0; }
  C* start(const Args& args) const {
    C* sums = nullptr;
    if constexpr (apart)
      sums = static_cast<C*>(args.scratch);
    else
      sums = args.out<C>();
    parallel_for(count, element_grain, [=](int64_t begin, int64_t end) { std::fill(sums + begin, sums + end, C(0)); });
    return sums;
  }
  void finish(const Args& args) const {
    if constexpr (apart) convert_array(args.outputs[0], dtype_of<T>(), args.scratch, dtype_of<C>(), count);
  }
  int64_t* indices(const Args& args) const {
    return reinterpret_cast<int64_t*>(static_cast<std::byte*>(args.scratch) + bytes());
  }
};

// sums[at[i], columns] += parts[i, columns] for every i, in order.
template <class T, class C>
void add_slices(C* sums, const T* parts, const int64_t* at, int64_t count, int64_t inner, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < count; ++i) {
    C* const to = sums + at[i] * inner;
    const T* const from = parts + i * inner;
    for (int64_t k = begin; k < end; ++k) to[k] = functions::add(to[k], static_cast<C>(from[k]));
  }
}

std::unique_ptr<Kernel> build_take_grad(const NodeView& node) {
  const auto& p = node.as<TakeGrad>();
  const Shape& shape = node.outputs[0].shape;
  const AxisView around = view_along(shape, shape.axis(p.axis, node.where()));
  const SliceIndices indices(node.inputs[1], around.length, outside_of(p.mode), node.where());
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Sums<T> sums{shape.size()};
    return make_kernel(
        [=](const Args& args) {
          int64_t* const at = sums.indices(args);
          indices.read(args.inputs[1], at);
          auto* const out = sums.start(args);
          const T* const dy = args.in<T>(0);
          constexpr int64_t width = 16;  // columns of a task
          const int64_t count = indices.count(), columns = (around.inner + width - 1) / width;
          parallel_for(around.outer * columns,
                       std::max<int64_t>(1, element_grain / width / std::max<int64_t>(1, count)),
                       [=](int64_t begin, int64_t end) {
                         // Neighbouring tasks are merged into longer runs of columns.
                         for (int64_t task = begin; task < end;) {
                           const int64_t outer = task / columns;
                           const int64_t last = std::min(end, (outer + 1) * columns);
                           add_slices(out + outer * around.length * around.inner, dy + outer * count * around.inner, at,
                                      count, around.inner, (task - outer * columns) * width,
                                      std::min(around.inner, (last - outer * columns) * width));
                           task = last;
                         }
                       });
          sums.finish(args);
        },
        {.scratch_bytes = sums.bytes() + indices.bytes()});
  });
}

// ---- one_hot, pick --------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_one_hot(const NodeView& node) {
  const auto p = node.as<OneHot>();
  const int64_t count = node.inputs[0].shape.size();
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel(
        [=, from = node.inputs[0].dtype, on = convert<T>(p.on_value), off = convert<T>(p.off_value)](const Args& args) {
          auto* const at = static_cast<int64_t*>(args.scratch);
          convert_array(at, DType::int64, args.inputs[0], from, count);
          T* const out = args.out<T>();
          parallel_for(count, std::max<int64_t>(1, element_grain / std::max<int64_t>(1, p.depth)),
                       [=](int64_t begin, int64_t end) {
                         std::fill(out + begin * p.depth, out + end * p.depth, off);
                         for (int64_t i = begin; i < end; ++i)
                           if (at[i] >= 0 && at[i] < p.depth) out[i * p.depth + at[i]] = on;
                       });
        },
        {.scratch_bytes = static_cast<size_t>(count) * sizeof(int64_t)});
  });
}

// Calls move(index in the whole, index in the part) for every element that is picked.
template <class Move>
void for_picked(const AxisView& around, const int64_t* at, const Move& move) {
  parallel_for(around.row_count(), element_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      move((i / around.inner * around.length + at[i]) * around.inner + i % around.inner, i);
  });
}

std::unique_ptr<Kernel> build_pick_from(const NodeView& node, int axis, Outside outside) {
  const AxisView around = view_along(node.inputs[0].shape, axis);
  const SliceIndices indices(node.inputs[1], around.length, outside, node.where());
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel(
        [=](const Args& args) {
          auto* const at = static_cast<int64_t*>(args.scratch);
          indices.read(args.inputs[1], at);
          const T* const data = args.in<T>(0);
          T* const out = args.out<T>();
          for_picked(around, at, [=](int64_t from, int64_t to) { out[to] = data[from]; });
        },
        {.scratch_bytes = indices.bytes()});
  });
}

std::unique_ptr<Kernel> build_pick(const NodeView& node) {
  const auto& p = node.as<Pick>();
  return build_pick_from(node, node.inputs[0].shape.axis(*p.axis, node.where()), outside_of(p.mode));
}

std::unique_ptr<Kernel> build_pick_grad(const NodeView& node) {
  const auto& p = node.as<PickGrad>();
  const Shape& shape = node.outputs[0].shape;
  const AxisView around = view_along(shape, shape.axis(*p.axis, node.where()));
  const SliceIndices indices(node.inputs[1], around.length, outside_of(p.mode), node.where());
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel(
        [=, count = shape.size()](const Args& args) {
          auto* const at = static_cast<int64_t*>(args.scratch);
          indices.read(args.inputs[1], at);
          const T* const dy = args.in<T>(0);
          T* const dx = args.out<T>();
          std::fill_n(dx, count, T(0));
          for_picked(around, at, [=](int64_t to, int64_t from) { dx[to] = dy[from]; });
        },
        {.scratch_bytes = indices.bytes()});
  });
}

std::unique_ptr<Kernel> build_fill_element(const NodeView& node) {
  const AxisView around = view_along(node.inputs[0].shape, 1);
  const SliceIndices indices(node.inputs[2], around.length, Outside::clip, node.where());
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel(
        [=, count = node.outputs[0].shape.size()](const Args& args) {
          auto* const at = static_cast<int64_t*>(args.scratch);
          indices.read(args.inputs[2], at);
          T* const out = args.out<T>();
          if (args.inputs[0] != args.outputs[0]) std::copy_n(args.in<T>(0), count, out);
          for_picked(around, at, [=, values = args.in<T>(1)](int64_t to, int64_t from) { out[to] = values[from]; });
        },
        {.in_place = {{0, 0}}, .scratch_bytes = indices.bytes()});
  });
}

// ---- where ----------------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_where(const NodeView& node) {
  const int64_t count = node.outputs[0].shape.size(), conditions = node.inputs[0].shape.size();
  const int64_t slice = conditions > 0 ? count / conditions : 1;
  return visit_dtype(node.inputs[0].dtype, [&](auto condition_type) {
    using Condition = typename decltype(condition_type)::type;
    // Elements are copied regardless of their type.
    const auto build = [&]<class Unit>(Unit) {
      return make_kernel(
          [=](const Args& args) {
            const auto* const condition = args.in<Condition>(0);
            const Unit *x = args.in<Unit>(1), *y = args.in<Unit>(2);
            Unit* const out = args.out<Unit>();
            parallel_for(count, element_grain, [=](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i)
                out[i] = condition[slice == 1 ? i : i / slice] != Condition(0) ? x[i] : y[i];
            });
          },
          {.in_place = {{1, 0}, {2, 0}}});
    };
    return visit_unit(size_of(node.outputs[0].dtype), build);
  });
}

// ---- gather_nd, scatter_nd ------------------------------------------------------------------------------------------

// The columns of indices (depth, count) as numbers of the slices of an array.
class SliceIndicesNd {
 public:
  SliceIndicesNd(const Tensor& indices, const Shape& whole, std::string where)
      : depth_(indices.shape[0]),
        count_(indices.shape.size(1, indices.shape.rank())),
        inner_(whole.size(static_cast<int>(depth_), whole.rank())),
        dtype_(indices.dtype),
        where_(std::move(where)) {
    for (int axis = 0; axis < depth_; ++axis) extents_.push_back(whole[axis]);
  }
  size_t bytes() const { return static_cast<size_t>((depth_ + 1) * count_) * sizeof(int64_t); }
  int64_t count() const { return count_; }
  int64_t inner() const { return inner_; }

  // `slices` holds the slices, followed by scratch for the converted indices.
  void read(const void* indices, int64_t* slices) const {
    int64_t* const numbers = slices + count_;
    convert_array(numbers, DType::int64, indices, dtype_, depth_ * count_);
    for (int64_t i = 0; i < count_; ++i) {
      slices[i] = 0;
      for (int64_t axis = 0; axis < depth_; ++axis) {
        const int64_t extent = extents_[static_cast<size_t>(axis)];
        const int64_t given = numbers[axis * count_ + i], number = given < 0 ? given + extent : given;
        require_as<IndexError>(number >= 0 && number < extent, where_, " index ", given, " is outside of axis ", axis,
                               " of length ", extent);
        slices[i] = slices[i] * extent + number;
      }
    }
  }

 private:
  int64_t depth_, count_, inner_;
  DType dtype_;
  std::string where_;
  std::vector<int64_t> extents_;
};

std::unique_ptr<Kernel> build_gather_nd(const NodeView& node) {
  const SliceIndicesNd indices(node.inputs[1], node.inputs[0].shape, node.where());
  const auto slice = static_cast<size_t>(indices.inner()) * size_of(node.outputs[0].dtype);
  return make_kernel(
      [=](const Args& args) {
        auto* const at = static_cast<int64_t*>(args.scratch);
        indices.read(args.inputs[1], at);
        const auto* const data = args.in<std::byte>(0);
        auto* const out = args.out<std::byte>();
        parallel_for(indices.count(), element_grain, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            std::memcpy(out + static_cast<size_t>(i) * slice, data + static_cast<size_t>(at[i]) * slice, slice);
        });
      },
      {.scratch_bytes = indices.bytes()});
}

std::unique_ptr<Kernel> build_scatter_nd(const NodeView& node) {
  const SliceIndicesNd indices(node.inputs[1], node.outputs[0].shape, node.where());
  const auto slice = static_cast<size_t>(indices.inner()) * size_of(node.outputs[0].dtype);
  return make_kernel(
      [=, bytes = node.outputs[0].bytes()](const Args& args) {
        auto* const at = static_cast<int64_t*>(args.scratch);
        indices.read(args.inputs[1], at);
        std::memset(args.outputs[0], 0, bytes);
        for (int64_t i = 0; i < indices.count(); ++i)  // in order: the last one wins
          std::memcpy(args.out<std::byte>() + static_cast<size_t>(at[i]) * slice,
                      args.in<std::byte>(0) + static_cast<size_t>(i) * slice, slice);
      },
      {.scratch_bytes = indices.bytes()});
}

std::unique_ptr<Kernel> build_gather_nd_grad(const NodeView& node) {
  const SliceIndicesNd indices(node.inputs[1], node.outputs[0].shape, node.where());
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Sums<T> sums{node.outputs[0].shape.size()};
    return make_kernel(
        [=](const Args& args) {
          int64_t* const at = sums.indices(args);
          indices.read(args.inputs[1], at);
          auto* const out = sums.start(args);
          parallel_for(indices.inner(), std::max<int64_t>(16, element_grain / std::max<int64_t>(1, indices.count())),
                       [=, dy = args.in<T>(0)](int64_t begin, int64_t end) {
                         add_slices(out, dy, at, indices.count(), indices.inner(), begin, end);
                       });
          sums.finish(args);
        },
        {.scratch_bytes = sums.bytes() + indices.bytes()});
  });
}

}  // namespace

void add_gather(ImplementationTable& table) {
  add_plain<Take>(table, [](const NodeView& node) {
    const auto& p = node.as<Take>();
    return build_take_along(node, node.inputs[0], 0, 1, node.inputs[0].shape.axis(p.axis, node.where()),
                            outside_of(p.mode));
  });
  add_plain<Embedding>(
      table, [](const NodeView& node) { return build_take_along(node, node.inputs[1], 1, 0, 0, Outside::clip); });
  add_plain<TakeGrad>(table, build_take_grad);
  add_plain<OneHot>(table, build_one_hot);
  add_plain<Pick>(table, build_pick);
  add_plain<PickGrad>(table, build_pick_grad);
  add_plain<BatchTake>(table, [](const NodeView& node) { return build_pick_from(node, 1, Outside::clip); });
  add_plain<FillElement>(table, build_fill_element);
  add_plain<Where>(table, build_where);
  add_plain<GatherNd>(table, build_gather_nd);
  add_plain<GatherNdGrad>(table, build_gather_nd_grad);
  add_plain<ScatterNd>(table, build_scatter_nd);
}

}  // namespace symbind::cpu_backend
