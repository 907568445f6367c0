#include "symbind/ops/scalar.h"

#include "symbind/backend/cpu/map.h"
#include "symbind/backend/pointwise_math.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The scalar in the type the array is computed in: first as one of the result's elements, which may cut it off.
template <class C>
C scalar_as(double scalar, DType element) {
  return visit_dtype(element, [&](auto type) { return convert<C>(convert<typename decltype(type)::type>(scalar)); });
}
template <>
float scalar_as<float>(double scalar, DType) {
  return static_cast<float>(scalar);  // half precision is computed in float, and so is its scalar
}

template <size_t arity, class P, class Function>
MapLoop loop_with_scalar(const NodeView& node) {
  const double scalar = node.as<P>().scalar;
  const DType element = node.outputs[0].dtype;
  return map_loop_for<arity>(element, [=](auto type) {
    using C = typename decltype(type)::type;
    return pointwise::WithLast<Function, C>{scalar_as<C>(scalar, element)};
  });
}

// Squares are common, and far cheaper than powers.
MapLoop power_loop(const NodeView& node) {
  using P = WithScalar<"_power_scalar">;
  if (node.as<P>().scalar != 2) return loop_with_scalar<1, P, pointwise::Power>(node);
  return map_loop_for<1>(node.outputs[0].dtype, [](auto) { return pointwise::Square{}; });
}

template <size_t arity, class Entries>
void add_with_scalar(ImplementationTable& table, Entries entries) {
  pointwise::for_each(entries, [&]<class Entry>(Entry) {
    using P = WithScalar<Entry::name>;
    if constexpr (Entry::name.view() == "_power_scalar")
      add_map<P>(table, power_loop);
    else
      add_map<P>(table, loop_with_scalar<arity, P, typename Entry::Function>);
  });
}

}  // namespace

void add_scalar(ImplementationTable& table) {
  add_with_scalar<1>(table, pointwise::ScalarTable{});
  add_with_scalar<2>(table, pointwise::ScalarGradTable{});
  add_with_scalar<1>(table, pointwise::ChoiceScalarTable{});
  add_with_scalar<2>(table, pointwise::ChoiceScalarGradTable{});
}

}  // namespace symbind::cpu_backend
