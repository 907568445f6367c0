#include "symbind/ops/math.h"

#include "symbind/backend/cpu/map.h"
#include "symbind/backend/pointwise_math.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

template <template <class> class Function, size_t arity>
MapLoop clip_loop(const NodeView& node, double low, double high) {
  return map_loop_for<arity>(node.outputs[0].dtype, [=](auto type) {
    using C = typename decltype(type)::type;
    return Function<C>{convert<C>(low), convert<C>(high)};
  });
}

template <template <class> class Function, size_t arity>
MapLoop hard_sigmoid_loop(const NodeView& node, const HardSigmoid& p) {
  return map_loop_for<arity>(node.outputs[0].dtype, [=](auto type) {
    using C = typename decltype(type)::type;
    return Function<C>{convert<C>(p.alpha), convert<C>(p.beta)};
  });
}

template <class Function, size_t arity>
MapLoop smooth_l1_loop(const NodeView& node) {
  return map_loop_for<arity>(node.outputs[0].dtype, [sigma = node.as<SmoothL1>().scalar](auto type) {
    using C = typename decltype(type)::type;
    return pointwise::WithLast<Function, C>{convert<C>(sigma)};
  });
}

}  // namespace

void add_math(ImplementationTable& table) {
  add_maps<1>(table, pointwise::MathTable{});
  add_maps<2>(table, pointwise::MathGradTable{});
  add_map<Clip>(table, [](const NodeView& node) {
    return clip_loop<pointwise::Clip, 1>(node, node.as<Clip>().a_min, node.as<Clip>().a_max);
  });
  add_map<ClipGrad>(table, [](const NodeView& node) {
    return clip_loop<pointwise::ClipGrad, 2>(node, node.as<ClipGrad>().a_min, node.as<ClipGrad>().a_max);
  });
  add_map<SmoothL1>(table, smooth_l1_loop<pointwise::SmoothL1, 1>);
  add_map<SmoothL1Grad>(table, smooth_l1_loop<pointwise::SmoothL1Grad, 2>);
  add_map<HardSigmoid>(table, [](const NodeView& node) {
    return hard_sigmoid_loop<pointwise::HardSigmoid, 1>(node, node.as<HardSigmoid>());
  });
  add_map<HardSigmoidGrad>(table, [](const NodeView& node) {
    return hard_sigmoid_loop<pointwise::HardSigmoidGrad, 2>(node, node.as<HardSigmoidGrad>());
  });
}

}  // namespace symbind::cpu_backend
