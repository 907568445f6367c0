// A function over arrays some of which are broadcast. Adjacent axes with compatible strides in every array are merged
// first; then the loop runs over rows of the last axis, and along a row an operand either advances or is constant. As
// in map.h, only the loops are compiled per function; strided.cc does the rest.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "symbind/backend/cpu/map.h"
#include "symbind/core/shape.h"

namespace symbind::cpu_backend {

using Steps = std::array<int64_t, 2>;  // of each operand

struct BroadcastPlan {
  std::vector<int64_t> extents;  // of the merged axes, the innermost first; at least one
  std::vector<Steps> steps;      // along each of them; 0: the operand is broadcast
  int64_t rows = 1;
};

// Operands of these shapes, aligned at the last axis as in NumPy.
BroadcastPlan plan_broadcast(const Shape& out, std::span<const Shape> operands);

struct Range {
  int64_t begin, end;
};

// out = function(operands…) for some columns of some rows, which are counted in the order of the result.
struct BroadcastLoop {
  AnyFunction function;
  size_t arity;
  DType type;
  void (*run)(const AnyFunction& function, void* out, const void* const* in, const BroadcastPlan& plan, Range rows,
              Range columns);
};

template <bool advances, class C>
C element_of_row(const C* row, int64_t i) {
  if constexpr (advances)
    return row[i];
  else
    return *row;
}

template <bool... advances, class Function, class C, size_t... k>
void row_loop(const Function& function, C* out, const Operands<C, sizeof...(k)>& row, Range columns,
              std::index_sequence<k...>) {
  apply(function, out, columns.begin, columns.end,
        [from = row[k]](int64_t i) { return element_of_row<advances>(from, i); }...);
}

template <bool... advances, class Function, class C, size_t arity>
void run_rows(const Function& function, C* out, Operands<C, arity> row, const BroadcastPlan& plan, Range rows,
              Range columns) {
  std::array<int64_t, Shape::max_rank + 1> index{};
  int64_t rest = rows.begin;
  for (size_t axis = 1; axis < plan.extents.size(); ++axis) {
    index[axis] = rest % plan.extents[axis];
    rest /= plan.extents[axis];
    for (size_t k = 0; k < arity; ++k) row[k] += index[axis] * plan.steps[axis][k];
  }
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    row_loop<advances...>(function, out + r * plan.extents[0], row, columns, std::make_index_sequence<arity>{});
    for (size_t axis = 1; axis < plan.extents.size(); ++axis) {
      for (size_t k = 0; k < arity; ++k) row[k] += plan.steps[axis][k];
      if (++index[axis] < plan.extents[axis]) break;
      for (size_t k = 0; k < arity; ++k) row[k] -= plan.steps[axis][k] * plan.extents[axis];
      index[axis] = 0;
    }
  }
}

template <size_t arity, class C, class Function>
BroadcastLoop broadcast_loop_of(const Function& function) {
  return {AnyFunction(function), arity, dtype_of<C>(),
          [](const AnyFunction& any, void* out, const void* const* in, const BroadcastPlan& plan, Range rows,
             Range columns) {
            Operands<C, arity> from;
            for (size_t i = 0; i < arity; ++i) from[i] = static_cast<const C*>(in[i]);
            const Function f = any.as<Function>();
            C* const to = static_cast<C*>(out);
            const auto run = [&]<bool... advances>(std::bool_constant<advances>...) {
              for_range<widest_for<C, Function>>(rows.begin, rows.end, [&](int64_t begin, int64_t end) {
                run_rows<advances...>(f, to, from, plan, Range{begin, end}, columns);
              });
            };
            const Steps& steps = plan.steps[0];
            if constexpr (arity == 1) {
              if (steps[0] != 0)
                run(std::true_type{});
              else
                run(std::false_type{});
            } else {  // along a row at least one advances
              if (steps[0] == 0)
                run(std::false_type{}, std::true_type{});
              else if (steps[1] == 0)
                run(std::true_type{}, std::false_type{});
              else
                run(std::true_type{}, std::true_type{});
            }
          }};
}

// A kernel for output 0 from the first inputs, viewed in the given shapes. Narrow types are widened in scratch.
std::unique_ptr<Kernel> build_broadcast(const NodeView& node, const std::vector<Shape>& shapes,
                                        const BroadcastLoop& loop);

// The same, where make_function(type_identity<C>) returns the function for the type C that the output is computed in.
template <size_t arity, class MakeFunction>
std::unique_ptr<Kernel> broadcast_kernel(const NodeView& node, const std::vector<Shape>& shapes,
                                         MakeFunction make_function) {
  return build_broadcast(node, shapes, functions::visit_wide(node.outputs[0].dtype, [&](auto type) {
                           return broadcast_loop_of<arity, typename decltype(type)::type>(make_function(type));
                         }));
}

}  // namespace symbind::cpu_backend
