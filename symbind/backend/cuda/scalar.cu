// Functions of an array and a number, and their gradients.
#include "symbind/ops/scalar.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/elementwise.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// The function of `arity` arrays that remains once the scalar, its last argument, is given.
template <int arity, class Function>
std::unique_ptr<Kernel> build_with_scalar(pointwise::Holds<Function>, const NodeView& node, double scalar) {
  return visit_number(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using Number = pointwise::Wide<T>;
    return build_map<arity, T>(node, pointwise::WithLast<Function, Number>{convert<Number>(scalar)});
  });
}

template <int arity, class Entries>
void add_with_scalar(ImplementationTable& table, Entries entries) {
  pointwise::for_each(entries, [&]<class Entry>(Entry entry) {
    table.add<WithScalar<Entry::name>>({"cuda", refuse_elementwise, [entry](const NodeView& node) {
                                          return build_with_scalar<arity>(entry, node,
                                                                          node.as<WithScalar<Entry::name>>().scalar);
                                        }});
  });
}

}  // namespace

void add_scalar(ImplementationTable& table) {
  add_with_scalar<1>(table, pointwise::ScalarTable{});
  add_with_scalar<2>(table, pointwise::ScalarGradTable{});
}

}  // namespace symbind::cuda_backend
