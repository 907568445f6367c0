// Every operator that applies a rule of backend/update_rules.h to one weight, and the one that adds noise. The new
// weight is usually written over the old one.
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/sampling.h"
#include "symbind/backend/update_rules.h"
#include "symbind/core/update_condition.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// The arrays of the states, the master after them.
template <class S, int count>
struct States {
  S* array[count == 0 ? 1 : count];
};

template <class C, class Rule, size_t... k>
__device__ C apply(const Rule& rule, C weight, C gradient, C* states, std::index_sequence<k...>) {
  return rule(weight, gradient, states[k]...);
}

// T is the storage type of weight and gradient, S that of the states. If the UpdateCondition `made` is 0, the weight is
// copied.
template <int states, bool has_master, class T, class S, class Rule>
__global__ void update(const T* weight, const T* gradient, T* out, States<S, states + has_master> kept, int64_t count,
                       Rule rule, const float* made) {
  using C = compute_type<S>;
  if (made && *made == 0) {
    for (int64_t i = first_element(); i < count; i += element_step()) out[i] = weight[i];
    return;
  }
  for (int64_t i = first_element(); i < count; i += element_step()) {
    C now[states + 1];
    for (int k = 0; k < states; ++k) now[k] = load(kept.array[k][i]);
    if constexpr (has_master)
      now[states] = kept.array[states][i];
    else
      now[states] = load(weight[i]);
    const C next = apply(rule, now[states], static_cast<C>(load(gradient[i])), now, std::make_index_sequence<states>{});
    for (int k = 0; k < states; ++k) kept.array[k][i] = store<S>(now[k]);
    if constexpr (has_master) kept.array[states][i] = next;
    out[i] = store<T>(static_cast<compute_type<T>>(next));
  }
}

template <int states, bool has_master, class T, class S, class Rule>
std::unique_ptr<Kernel> build(const NodeView& node, const Rule& rule) {
  return make_step(node,
                   [rule, count = node.outputs[0].shape.size()](const Args& args) {
                     if (count == 0) return;
                     States<S, states + has_master> kept{};
                     for (int k = 0; k < states + has_master; ++k)
                       kept.array[k] = args.state<S>(static_cast<size_t>(2 + k));
                     update<states, has_master><<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                         args.in<T>(0), args.in<T>(1), args.out<T>(), kept, count, rule, UpdateCondition::current());
                   },
                   {.in_place = {{0, 0}, {1, 0}}});
}

// Weight and gradient are of the output's type, and the states too, or float32 where there is a master.
std::string refuse(const NodeView& node, bool has_master) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "wants floating numbers";
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i].dtype != (has_master && i >= 2 ? DType::float32 : dtype)) return "arrays of different types";
  return one_layout(node) ? "" : "arrays of different layouts";
}

template <class P, template <class> class Rule, int states, bool has_master>
void add(ImplementationTable& table) {
  table.add<P>({"cuda", [](const NodeView& node) { return refuse(node, has_master); },
                [](const NodeView& node) {
                  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
                    using S = std::conditional_t<has_master, float, T>;
                    return build<states, has_master, T, S>(node, Rule<compute_type<S>>(node.as<P>()));
                  });
                }});
}

// Gradient descent with noise, which is that of random_normal at the same position.
template <class T>
__global__ void update_with_noise(const T* weight, const T* gradient, T* out, int64_t count, const RandomCursor* cursor,
                                  uint64_t slot, update_rules::Sgld<compute_type<T>> rule) {
  using C = compute_type<T>;
  constexpr int per_block = sampling::per_block<C>;
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  for (int64_t at = first_element(); at * per_block < count; at += element_step()) {
    const PhiloxBlock block = philox(key, draw, static_cast<uint64_t>(at));
    for (int index = 0; index < per_block && at * per_block + index < count; ++index) {
      const int64_t i = at * per_block + index;
      out[i] = store<T>(rule(load(weight[i]), load(gradient[i]), sampling::normal<C>(block, index)));
    }
  }
}

std::unique_ptr<Kernel> build_sgld(const NodeView& node) {
  const int64_t count = node.outputs[0].shape.size();
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_step(node,
                     [rule = update_rules::Sgld<C>(node.as<SgldUpdate>()), slot, count](const Args& args) {
                       if (count == 0) return;
                       const int64_t blocks = (count + sampling::per_block<C> - 1) / sampling::per_block<C>;
                       update_with_noise<<<blocks_for(blocks), block_size, 0, stream_of(args)>>>(
                           args.in<T>(0), args.in<T>(1), args.out<T>(), count, args.random, slot, rule);
                     },
                     {.in_place = {{0, 0}}});
  });
}

}  // namespace

void add_optimizer(ImplementationTable& table) {
  table.add<SgldUpdate>({"cuda", [](const NodeView& node) { return refuse(node, false); }, build_sgld});
  update_rules::for_each_operator([&]<class P, template <class> class Rule, size_t states>(bool has_master) {
    if (has_master)
      add<P, Rule, states, true>(table);
    else
      add<P, Rule, states, false>(table);
  });
}

}  // namespace symbind::cuda_backend
