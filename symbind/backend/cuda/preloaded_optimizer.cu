// Steps of stochastic gradient descent for many arrays in one launch, with rates and decays that are read on the
// device.
#include "symbind/ops/preloaded_optimizer.h"

#include "symbind/backend/cuda/multi_update.cuh"
#include "symbind/backend/update_rules.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Sets the rate and the decay of a rule.
struct WithRates {
  const float *lrs, *wds;
  double momentum, rescale_grad, clip_gradient;

  __device__ static bool skips() { return false; }
  template <class C>
  __device__ update_rules::Sgd<C> operator()(update_rules::Sgd<C> rule, int64_t index) const {
    rule.step = sgd::Step<C>(lrs[index], wds[index], rescale_grad, clip_gradient);
    return rule;
  }
  template <class C>
  __device__ update_rules::SgdMomentum<C> operator()(update_rules::SgdMomentum<C> rule, int64_t index) const {
    rule.step = sgd::MomentumStep<C>(lrs[index], momentum, wds[index], rescale_grad, clip_gradient);
    return rule;
  }
};

template <class P, bool master>
void add(ImplementationTable& table) {
  constexpr bool has_momentum = requires(const P& p) { p.momentum; };
  constexpr size_t per_weight = 2 + (has_momentum ? 1 : 0) + (master ? 1 : 0);
  table.add<P>({"cuda", [](const NodeView& node) { return refuse_multi(node, per_weight, master); },
                [](const NodeView& node) {
                  const P& p = node.as<P>();
                  double momentum = 0;
                  if constexpr (has_momentum) momentum = p.momentum;
                  const auto finish = [momentum, rescale = p.rescale_grad, clip = p.clip_gradient,
                                       rates = node.inputs.size() - 2](const Args& args) {
                    return WithRates{args.in<float>(rates), args.in<float>(rates + 1), momentum, rescale, clip};
                  };
                  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
                    using S = std::conditional_t<master, float, T>;
                    using C = compute_type<S>;
                    if constexpr (has_momentum) {
                      using Rule = update_rules::SgdMomentum<C>;
                      const std::vector<Rule> rules(node.outputs.size(), Rule(SgdMomUpdate{.lr = 0}));
                      return build_multi_update<MultiUpdate<1, master, T, S, Rule>>(node, rules, finish);
                    } else {
                      using Rule = update_rules::Sgd<C>;
                      const std::vector<Rule> rules(node.outputs.size(), Rule(SgdUpdate{.lr = 0}));
                      return build_multi_update<MultiUpdate<0, master, T, S, Rule>>(node, rules, finish);
                    }
                  });
                }});
}

}  // namespace

void add_preloaded_optimizer(ImplementationTable& table) {
  add<PreloadedMultiSgdUpdate, false>(table);
  add<PreloadedMultiSgdMomUpdate, false>(table);
  add<PreloadedMultiMpSgdUpdate, true>(table);
  add<PreloadedMultiMpSgdMomUpdate, true>(table);
}

}  // namespace symbind::cuda_backend
