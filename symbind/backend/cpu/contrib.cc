#include "symbind/ops/contrib.h"

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/positions.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build_arange_like(const NodeView& node) {
  const auto& p = node.as<ArangeLike>();
  const int64_t count = node.outputs[0].shape.size();
  return visit_dtype(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;
    return numbers_kernel<T>(count, ArangeNumber<C>{convert<C>(p.start), convert<C>(p.step), p.repeat});
  });
}

std::unique_ptr<Kernel> build_index_array(const NodeView& node) {
  return numbers_kernel<int64_t>(node.outputs[0].shape.size(),
                                 IndexNumber(node.as<IndexArray>(), node.inputs[0].shape));
}

}  // namespace

void add_contrib(ImplementationTable& table) {
  add_plain<GradientMultiplier>(table, build_copy);
  add_plain<IdentityLike>(table, build_copy);
  add_plain<ArangeLike>(table, build_arange_like);
  add_plain<IndexArray>(table, build_index_array);
}

}  // namespace symbind::cpu_backend
