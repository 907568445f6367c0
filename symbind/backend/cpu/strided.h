// A function over arrays some of which are broadcast. Axes along which every array goes on evenly are merged first, so
// that few remain; then rows of the last axis are run one by one, and along a row an operand either advances or stays.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/core/shape.h"

namespace symbind::cpu_backend {

template <size_t arity>
struct BroadcastPlan {
  std::vector<int64_t> extents;                       // merged axes; at least one
  std::vector<std::array<int64_t, arity>> steps;      // of each operand along each of them; 0: stays
  int64_t rows = 1;
};

// Aligned at the last axis, as NumPy does it.
template <size_t arity>
BroadcastPlan<arity> plan_broadcast(const Shape& out, const std::array<Shape, arity>& operands) {
  BroadcastPlan<arity> plan;
  std::array<int64_t, arity> size;
  size.fill(1);
  for (int axis = out.rank() - 1; axis >= 0; --axis) {
    std::array<int64_t, arity> step{};
    for (size_t k = 0; k < arity; ++k) {
      const int own = axis - (out.rank() - operands[k].rank());
      const int64_t extent = own < 0 ? 1 : operands[k][own];
      step[k] = extent == 1 ? 0 : size[k];
      size[k] *= extent;
    }
    if (out[axis] == 1) continue;
    bool merges = !plan.extents.empty();
    for (size_t k = 0; k < arity && merges; ++k) merges = step[k] == plan.steps.back()[k] * plan.extents.back();
    if (merges) {
      plan.extents.back() *= out[axis];
    } else {
      plan.extents.push_back(out[axis]);
      plan.steps.push_back(step);
    }
  }
  if (plan.extents.empty()) {
    plan.extents.push_back(1);
    plan.steps.emplace_back().fill(1);
  }
  // The first axis listed is the innermost.
  for (size_t i = 1; i < plan.extents.size(); ++i) plan.rows *= plan.extents[i];
  return plan;
}

// Calls visit(std::bool_constant…) with whether each operand advances along a row; at least one does.
template <size_t arity, class Visit, bool... known>
void visit_advancing(const std::array<int64_t, arity>& steps, Visit&& visit, std::bool_constant<known>... so_far) {
  if constexpr (sizeof...(known) == arity) {
    if constexpr (arity == 1 || (known || ...)) visit(so_far...);
  } else {
    if (steps[sizeof...(known)] != 0) visit_advancing(steps, visit, so_far..., std::true_type{});
    else visit_advancing(steps, visit, so_far..., std::false_type{});
  }
}

template <bool advances, class C>
C element_of_row(const C* row, int64_t i) {
  if constexpr (advances) return row[i];
  else return *row;
}

template <bool... advances, class Function, class C, size_t arity, size_t... k>
void row_loop(const Function& function, C* out, Operands<C, arity> row, int64_t begin, int64_t end,
              std::index_sequence<k...>) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) out[i] = function(element_of_row<advances>(row[k], i)...);
}

struct Range {
  int64_t begin, end;
};

// Some columns of some rows, which are counted in the order of the result.
template <bool... advances, class Function, class C, size_t arity>
void run_rows(const Function& function, C* out, Operands<C, arity> row, const BroadcastPlan<arity>& plan, Range rows,
              Range columns) {
  std::array<int64_t, Shape::max_rank + 1> index{};
  int64_t rest = rows.begin;
  for (size_t axis = 1; axis < plan.extents.size(); ++axis) {
    index[axis] = rest % plan.extents[axis];
    rest /= plan.extents[axis];
    for (size_t k = 0; k < arity; ++k) row[k] += index[axis] * plan.steps[axis][k];
  }
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    row_loop<advances...>(function, out + r * plan.extents[0], row, columns.begin, columns.end,
                          std::make_index_sequence<arity>{});
    for (size_t axis = 1; axis < plan.extents.size(); ++axis) {
      for (size_t k = 0; k < arity; ++k) row[k] += plan.steps[axis][k];
      if (++index[axis] < plan.extents[axis]) break;
      for (size_t k = 0; k < arity; ++k) row[k] -= plan.steps[axis][k] * plan.extents[axis];
      index[axis] = 0;
    }
  }
}

// out = function(operands…), each operand broadcast as the plan says. Threads share the rows, or the one row there is.
template <class Function, class C, size_t arity>
void broadcast_map(const Function& function, C* out, const Operands<C, arity>& in, const BroadcastPlan<arity>& plan) {
  const int64_t length = plan.extents[0];
  const bool one_row = plan.rows == 1;
  visit_advancing(plan.steps[0], [&]<bool... advances>(std::bool_constant<advances>...) {
    const auto run = [&](int64_t begin, int64_t end) {
      const Range some{begin, end};
      run_rows<advances...>(function, out, in, plan, one_row ? Range{0, 1} : some, one_row ? some : Range{0, length});
    };
    for_elements<widest_for<C>>(one_row ? length : plan.rows, run,
                                one_row ? element_grain : std::max<int64_t>(1, element_grain / length));
  });
}

// A kernel for output 0 from the first `arity` inputs, seen in the given shapes. Narrow types are widened in scratch.
template <size_t arity, class MakeFunction>
std::unique_ptr<Kernel> broadcast_kernel(const NodeView& node, const std::array<Shape, arity>& shapes,
                                         MakeFunction make_function) {
  const Tensor& output = node.outputs[0];
  const int64_t count = output.shape.size();
  std::array<int64_t, arity> sizes;
  KernelTraits traits;
  for (size_t k = 0; k < arity; ++k) {
    sizes[k] = shapes[k].size();
    if (sizes[k] == count) traits.in_place.emplace_back(static_cast<int>(k), 0);
  }
  return pointwise::visit_wide(output.dtype, [&](auto wide_type) -> std::unique_ptr<Kernel> {
    using C = typename decltype(wide_type)::type;
    const auto function = make_function(wide_type);
    const auto plan = plan_broadcast<arity>(output.shape, shapes);
    if (output.dtype == dtype_of<C>()) {
      return make_kernel(
          [function, plan, count](const Args& args) {
            if (count == 0) return;
            Operands<C, arity> in;
            for (size_t k = 0; k < arity; ++k) in[k] = args.in<C>(k);
            broadcast_map(function, args.out<C>(), in, plan);
          },
          traits);
    }
    int64_t elements = count;
    for (int64_t size : sizes) elements += size;
    traits.scratch_bytes = static_cast<size_t>(elements) * sizeof(C);
    return make_kernel(
        [function, plan, count, sizes, type = output.dtype](const Args& args) {
          if (count == 0) return;
          C* const out = static_cast<C*>(args.scratch);
          C* next = out + count;
          Operands<C, arity> in;
          for (size_t k = 0; k < arity; ++k) {
            convert_array(next, dtype_of<C>(), args.inputs[k], type, sizes[k]);
            in[k] = next;
            next += sizes[k];
          }
          broadcast_map(function, out, in, plan);
          convert_array(args.outputs[0], type, out, dtype_of<C>(), count);
        },
        traits);
  });
}

}  // namespace symbind::cpu_backend
