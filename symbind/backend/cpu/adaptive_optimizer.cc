#include "symbind/ops/adaptive_optimizer.h"

#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/update.h"
#include "symbind/backend/update_rules.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// A row shares one history, which accumulates the mean of its squared gradients.
std::unique_ptr<Kernel> build_group_adagrad(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_kernel(
        [p = node.as<GroupAdagradUpdate>(), rows = shape[0], columns = shape[1]](const Args& args) {
          const update_rules::Scaled<C> scaled(p.rescale_grad, p.clip_gradient);
          const C lr = static_cast<C>(p.lr), epsilon = static_cast<C>(p.epsilon);
          const T *weight = args.in<T>(0), *grad = args.in<T>(1);
          T *const history = args.state<T>(2), *const out = args.out<T>();
          parallel_for(rows, std::max<int64_t>(1, element_grain / std::max<int64_t>(1, columns)),
                       [=](int64_t begin, int64_t end) {
                         for (int64_t row = begin; row < end; ++row) {
                           const int64_t first = row * columns, last = first + columns;
                           double squares = 0;
                           for (int64_t i = first; i < last; ++i) {
                             const C g = scaled(static_cast<C>(grad[i]));
                             squares += static_cast<double>(g) * static_cast<double>(g);
                           }
                           const C mean = columns ? static_cast<C>(squares / static_cast<double>(columns)) : C(0);
                           const C next = static_cast<C>(history[row]) + mean;
                           history[row] = static_cast<T>(next);
                           const C divisor = std::sqrt(next + epsilon);
                           for (int64_t i = first; i < last; ++i)
                             out[i] = static_cast<T>(static_cast<C>(weight[i]) -
                                                     lr * (scaled(static_cast<C>(grad[i])) / divisor));
                         }
                       });
        },
        {.in_place = {{0, 0}}});
  });
}

// Output 0 is the direction, in the type the rule computes in where the weight has a float32 copy.
std::unique_ptr<Kernel> build_mp_phase1(const NodeView& node) {
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const update_rules::LambDirection<float> rule(node.as<MpLambUpdatePhase1>());
    return make_kernel([rule, count = node.outputs[0].shape.size()](const Args& args) {
      const T* const grad = args.in<T>(1);
      float *const mean = args.state<float>(2), *const var = args.state<float>(3);
      const float* const weight = args.in<float>(4);
      float* const out = args.out<float>();
      for_update_blocks(count, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = rule(weight[i], static_cast<float>(grad[i]), mean[i], var[i]);
      });
    });
  });
}

// weight - rate · direction, where the weight is of type `W`; the result is stored in it and rounded to `T`.
template <class T, class D, class W>
std::unique_ptr<Kernel> build_phase2(const NodeView& node, const LambUpdatePhase2& params, size_t weight_input,
                                     std::vector<std::pair<int, int>> in_place) {
  using C = compute_type<W>;
  return make_kernel(
      [rate_of = update_rules::LambRate<C>(params), weight_input,
       count = node.outputs[0].shape.size()](const Args& args) {
        const C rate = rate_of(static_cast<C>(args.in<D>(2)[0]), static_cast<C>(args.in<D>(3)[0]));
        W* const weight = args.state<W>(weight_input);
        const D* const direction = args.in<D>(1);
        T* const out = args.out<T>();
        const bool master = weight_input != 0;
        for_update_blocks(count, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const C next = static_cast<C>(weight[i]) - rate * static_cast<C>(direction[i]);
            if (master) weight[i] = static_cast<W>(next);
            out[i] = static_cast<T>(next);
          }
        });
      },
      {.in_place = std::move(in_place)});
}

std::unique_ptr<Kernel> build_plain_phase2(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_phase2<T, T, T>(node, node.as<LambUpdatePhase2>(), 0, {{0, 0}, {1, 0}});
  });
}

std::unique_ptr<Kernel> build_mp_phase2(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_phase2<T, float, float>(node, node.as<MpLambUpdatePhase2>(), 4, {{0, 0}});
  });
}

}  // namespace

void add_adaptive_optimizer(ImplementationTable& table) {
  add_plain<GroupAdagradUpdate>(table, build_group_adagrad);
  add_plain<LambUpdatePhase2>(table, build_plain_phase2);
  add_plain<MpLambUpdatePhase1>(table, build_mp_phase1);
  add_plain<MpLambUpdatePhase2>(table, build_mp_phase2);
}

}  // namespace symbind::cpu_backend
