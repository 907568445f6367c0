#include "symbind/ops/scalar.h"

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/pointwise_math.h"

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
std::unique_ptr<Kernel> build_with_scalar(const NodeView& node) {
  const double scalar = node.as<P>().scalar;
  const DType element = node.outputs[0].dtype;
  return map_kernel<arity>(node, [=](auto type) {
    using C = typename decltype(type)::type;
    return pointwise::WithLast<Function, C>{scalar_as<C>(scalar, element)};
  });
}

template <size_t arity, class Entries>
void add_with_scalar(ImplementationTable& table, Entries entries) {
  pointwise::for_each(entries, [&]<class Entry>(Entry) {
    using P = WithScalar<Entry::name>;
    add_plain<P>(table, build_with_scalar<arity, P, typename Entry::Function>);
  });
}

// Squares are common, and far cheaper than powers.
void add_square(ImplementationTable& table) {
  using P = WithScalar<"_power_scalar">;
  Implementation square;
  square.name = "square";
  square.refuse = [](const NodeView& node) { return node.as<P>().scalar == 2 ? "" : "the exponent is not 2"; };
  square.build = [](const NodeView& node) { return map_kernel<1>(node, [](auto) { return pointwise::Square{}; }); };
  table.add<P>(std::move(square));
}

}  // namespace

void add_scalar(ImplementationTable& table) {
  add_square(table);
  add_with_scalar<1>(table, pointwise::ScalarTable{});
  add_with_scalar<2>(table, pointwise::ScalarGradTable{});
  add_with_scalar<1>(table, pointwise::ChoiceScalarTable{});
  add_with_scalar<2>(table, pointwise::ChoiceScalarGradTable{});
}

}  // namespace symbind::cpu_backend
