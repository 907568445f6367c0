#include "symbind/ops/optimizer.h"

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/sgd.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build_sgd(const NodeView& node) {
  return map_kernel<2>(node, [p = node.as<SgdUpdate>()](auto type) {
    return sgd::Step<typename decltype(type)::type>(p.lr, p.wd, p.rescale_grad, p.clip_gradient);
  });
}

// Weight, gradient and momentum of one type. `out` may be the weight.
template <class T>
void update_with_momentum(const sgd::MomentumStep<compute_type<T>>& step, const T* weight, const T* grad, T* momentum,
                          T* out, int64_t count) {
  using C = compute_type<T>;
  for_elements(count, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const C next = step(static_cast<C>(momentum[i]), static_cast<C>(weight[i]), static_cast<C>(grad[i]));
      momentum[i] = static_cast<T>(next);
      out[i] = static_cast<T>(static_cast<C>(weight[i]) + next);
    }
  });
}

std::unique_ptr<Kernel> build_sgd_mom(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto& p = node.as<SgdMomUpdate>();
    const sgd::MomentumStep<compute_type<T>> step(p.lr, p.momentum, p.wd, p.rescale_grad, p.clip_gradient);
    return make_kernel(
        [step, count = node.outputs[0].shape.size()](const Args& args) {
          update_with_momentum(step, args.in<T>(0), args.in<T>(1), args.state<T>(2), args.out<T>(), count);
        },
        {.in_place = {{0, 0}}});
  });
}

}  // namespace

void add_optimizer(ImplementationTable& table) {
  add_plain<SgdUpdate>(table, build_sgd);
  add_plain<SgdMomUpdate>(table, build_sgd_mom);
}

}  // namespace symbind::cpu_backend
