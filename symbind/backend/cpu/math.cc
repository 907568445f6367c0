#include "symbind/ops/math.h"

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/backend/pointwise_math.h"

namespace symbind::cpu_backend {
namespace {

template <template <class> class Function, size_t arity>
std::unique_ptr<Kernel> build_clip(const NodeView& node, double low, double high) {
  return map_kernel<arity>(node, [=](auto type) {
    using C = typename decltype(type)::type;
    return Function<C>{convert<C>(low), convert<C>(high)};
  });
}

template <template <class> class Function, size_t arity>
std::unique_ptr<Kernel> build_hard_sigmoid(const NodeView& node, const HardSigmoid& p) {
  return map_kernel<arity>(node, [=](auto type) {
    using C = typename decltype(type)::type;
    return Function<C>{static_cast<C>(p.alpha), static_cast<C>(p.beta)};
  });
}

template <class Function, size_t arity>
std::unique_ptr<Kernel> build_smooth_l1(const NodeView& node) {
  return map_kernel<arity>(node, [sigma = node.as<SmoothL1>().scalar](auto type) {
    using C = typename decltype(type)::type;
    return pointwise::WithLast<Function, C>{static_cast<C>(sigma)};
  });
}

}  // namespace

void add_math(ImplementationTable& table) {
  add_maps<1>(table, pointwise::MathTable{});
  add_maps<2>(table, pointwise::MathGradTable{});
  add_plain<Clip>(table, [](const NodeView& node) {
    return build_clip<pointwise::Clip, 1>(node, node.as<Clip>().a_min, node.as<Clip>().a_max);
  });
  add_plain<ClipGrad>(table, [](const NodeView& node) {
    return build_clip<pointwise::ClipGrad, 2>(node, node.as<ClipGrad>().a_min, node.as<ClipGrad>().a_max);
  });
  add_plain<SmoothL1>(table, build_smooth_l1<pointwise::SmoothL1, 1>);
  add_plain<SmoothL1Grad>(table, build_smooth_l1<pointwise::SmoothL1Grad, 2>);
  add_plain<HardSigmoid>(table, [](const NodeView& node) {
    return build_hard_sigmoid<pointwise::HardSigmoid, 1>(node, node.as<HardSigmoid>());
  });
  add_plain<HardSigmoidGrad>(table, [](const NodeView& node) {
    return build_hard_sigmoid<pointwise::HardSigmoidGrad, 2>(node, node.as<HardSigmoidGrad>());
  });
}

}  // namespace symbind::cpu_backend
