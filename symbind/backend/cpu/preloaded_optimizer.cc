#include "symbind/ops/preloaded_optimizer.h"

#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/update.h"
#include "symbind/backend/update_rules.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The rates and decays are the last two inputs, so the rules are created when the kernel runs, by
// make_rule(type_identity<C>, lr, wd).
template <size_t states, class MakeRule>
std::unique_ptr<Kernel> build_preloaded(const NodeView& node, Master master, MakeRule make_rule) {
  const std::vector<Tensor> weights(node.outputs.begin(), node.outputs.end());
  const size_t rates = node.inputs.size() - 2;
  const auto parts = [=](const float* lrs, const float* wds) {
    return parts_of<states>(weights, master, [=](auto type, size_t i) {
      return make_rule(type, static_cast<double>(lrs[i]), static_cast<double>(wds[i]));
    });
  };
  const std::vector<float> none(weights.size());
  return make_kernel(
      [=](const Args& args) { run_update(parts(args.in<float>(rates), args.in<float>(rates + 1)), args); },
      {.in_place = updated_in_place(parts(none.data(), none.data()))});
}

template <class P>
void add_sgd(ImplementationTable& table, Master master) {
  add_plain<P>(table, [master](const NodeView& node) {
    return build_preloaded<0>(node, master, [p = node.as<P>()]<class C>(std::type_identity<C>, double lr, double wd) {
      return update_rules::Sgd<C>(
          SgdUpdate{.lr = lr, .wd = wd, .rescale_grad = p.rescale_grad, .clip_gradient = p.clip_gradient});
    });
  });
}

template <class P>
void add_sgd_with_momentum(ImplementationTable& table, Master master) {
  add_plain<P>(table, [master](const NodeView& node) {
    return build_preloaded<1>(node, master, [p = node.as<P>()]<class C>(std::type_identity<C>, double lr, double wd) {
      return update_rules::SgdMomentum<C>(SgdMomUpdate{.lr = lr,
                                                       .momentum = p.momentum,
                                                       .wd = wd,
                                                       .rescale_grad = p.rescale_grad,
                                                       .clip_gradient = p.clip_gradient});
    });
  });
}

}  // namespace

void add_preloaded_optimizer(ImplementationTable& table) {
  add_sgd<PreloadedMultiSgdUpdate>(table, Master::none);
  add_sgd<PreloadedMultiMpSgdUpdate>(table, Master::last_state);
  add_sgd_with_momentum<PreloadedMultiSgdMomUpdate>(table, Master::none);
  add_sgd_with_momentum<PreloadedMultiMpSgdMomUpdate>(table, Master::last_state);
}

}  // namespace symbind::cpu_backend
