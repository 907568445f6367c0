#include "symbind/ops/reduce.h"

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/reduction.h"
#include "symbind/backend/cpu/strided.h"

namespace symbind::cpu_backend {
namespace {

template <class P>
std::unique_ptr<Kernel> build_reduce(const NodeView& node) {
  const P& p = node.as<P>();
  const auto reduced = reduced_axes(p.axis, p.exclude, node.inputs[0].shape.rank(), node.where());
  return build_reduction(node, reduced, std::is_same_v<P, Mean> ? Reduction::mean : Reduction::sum);
}

// The gradient in data's rank, with extent 1 along the reduced axes, is spread over them.
template <class P>
std::unique_ptr<Kernel> build_reduce_grad(const NodeView& node) {
  const P& p = node.as<P>();
  const Shape& data = node.outputs[0].shape;
  const auto reduced = reduced_axes(p.axis, p.exclude, data.rank(), node.where());
  Shape kept = data;
  int64_t count = 1;
  for (int axis = 0; axis < data.rank(); ++axis)
    if (reduced[static_cast<size_t>(axis)]) {
      count *= data[axis];
      kept[axis] = 1;
    }
  if (std::is_same_v<P, SumGrad> || count == 1)
    return broadcast_kernel<1>(node, {kept}, [](auto) { return pointwise::Identity{}; });
  return broadcast_kernel<1>(node, {kept}, [count](auto type) {
    using C = typename decltype(type)::type;
    return pointwise::WithLast<pointwise::Divide, C>{static_cast<C>(count)};
  });
}

}  // namespace

void add_reduce(ImplementationTable& table) {
  add_plain<Sum>(table, build_reduce<Sum>);
  add_plain<Mean>(table, build_reduce<Mean>);
  add_plain<SumGrad>(table, build_reduce_grad<SumGrad>);
  add_plain<MeanGrad>(table, build_reduce_grad<MeanGrad>);
}

}  // namespace symbind::cpu_backend
