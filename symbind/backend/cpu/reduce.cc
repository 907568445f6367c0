#include "symbind/ops/reduce.h"

#include <algorithm>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/reduce_folds.h"
#include "symbind/backend/cpu/reduce_sums.h"
#include "symbind/backend/cpu/strided.h"
#include "symbind/backend/folds.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

template <class P, Reduction reduction>
std::unique_ptr<Kernel> build_reduce(const NodeView& node) {
  const P& p = node.as<P>();
  const auto reduced = reduced_axes(p.axis, p.exclude, node.inputs[0].shape, node.where());
  return build_reduction(node, reduced, reduction);
}

// The gradient in data's rank, with extent 1 along the reduced axes, is broadcast over them.
template <class P>
std::unique_ptr<Kernel> build_reduce_grad(const NodeView& node) {
  const P& p = node.as<P>();
  const Shape& data = node.outputs[0].shape;
  const auto reduced = reduced_axes(p.axis, p.exclude, data, node.where());
  Shape kept = data;
  int64_t count = 1;
  for (int axis = 0; axis < data.rank(); ++axis)
    if (reduced[static_cast<size_t>(axis)]) {
      count *= data[axis];
      kept[axis] = 1;
    }
  if (std::is_same_v<P, SumGrad> || count == 1)
    return broadcast_kernel<1>(node, {kept}, [](auto) { return functions::Identity{}; });
  return broadcast_kernel<1>(node, {kept}, [count](auto type) {
    using C = typename decltype(type)::type;
    return functions::WithNumbers<functions::Divide, C, 1>{static_cast<C>(count)};
  });
}

template <FixedString name>
void add_fold(ImplementationTable& table, Fold fold) {
  add_plain<Reduce<name>>(table, [fold](const NodeView& node) {
    const auto& p = node.as<Reduce<name>>();
    return build_fold(node, reduced_axes(p.axis, p.exclude, node.inputs[0].shape, node.where()), fold);
  });
}

std::unique_ptr<Kernel> build_norm(const NodeView& node) {
  const auto& p = node.as<Norm>();
  const auto reduced = reduced_axes(p.axis, false, node.inputs[0].shape, node.where());
  return build_fold(node, reduced, p.ord == 1 ? Fold::norm1 : Fold::norm2);
}

std::unique_ptr<Kernel> build_arg_reduce(const NodeView& node, const AxisView& axis, bool max) {
  return visit_dtype(node.inputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = functions::Wide<T>;
    return make_kernel([=](const Args& args) {
      const T* const in = args.in<T>(0);
      T* const out = args.out<T>();
      parallel_for(
          axis.row_count(), std::max<int64_t>(1, element_grain / std::max<int64_t>(1, axis.length)),
          [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const T* const row = in + axis.row_start(i);
              int64_t best = 0;
              for (int64_t k = 1; k < axis.length; ++k)
                if (folds::beats(static_cast<C>(row[k * axis.inner]), static_cast<C>(row[best * axis.inner]), max))
                  best = k;
              out[i] = convert<T>(best);
            }
          });
    });
  });
}

template <FixedString name>
void add_arg_reduce(ImplementationTable& table, bool max) {
  add_plain<ArgReduce<name>>(table, [max](const NodeView& node) {
    const auto& p = node.as<ArgReduce<name>>();
    const Shape& shape = node.inputs[0].shape;
    return build_arg_reduce(
        node, p.axis ? view_along(shape, shape.axis(*p.axis, node.where())) : AxisView{1, shape.size(), 1}, max);
  });
}

}  // namespace

void add_reduce(ImplementationTable& table) {
  add_plain<Sum>(table, build_reduce<Sum, Reduction::sum>);
  add_plain<Mean>(table, build_reduce<Mean, Reduction::mean>);
  add_fold<"max">(table, Fold::max);
  add_fold<"min">(table, Fold::min);
  add_fold<"prod">(table, Fold::product);
  add_plain<Reduce<"nansum">>(table, build_reduce<Reduce<"nansum">, Reduction::sum_of_numbers>);
  add_fold<"nanprod">(table, Fold::product_of_numbers);
  add_plain<Norm>(table, build_norm);
  add_arg_reduce<"argmax">(table, true);
  add_arg_reduce<"argmin">(table, false);
  add_plain<ArgmaxChannel>(
      table, [](const NodeView& node) { return build_arg_reduce(node, view_along(node.inputs[0].shape, 1), true); });
  add_plain<SumGrad>(table, build_reduce_grad<SumGrad>);
  add_plain<MeanGrad>(table, build_reduce_grad<MeanGrad>);
}

}  // namespace symbind::cpu_backend
