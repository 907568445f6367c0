// Steps of stochastic gradient descent for many arrays in one launch: their addresses travel in the launch, a row of
// blocks looks after each array.
#include "symbind/ops/multi_optimizer.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/sgd.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int arrays_per_launch = 32;  // what fits the 4 KB of a launch's arguments
constexpr unsigned blocks_per_array = 64;

// T is the type of weights and gradients, M that of momenta, C that of the arithmetic and of masters.
template <class T, class M, class C, class Step>
struct Part {
  const T *weight, *gradient;
  M* momentum;  // null where there is none
  C* master;    // likewise
  T* out;
  int64_t count;
  Step step;
};

template <class T, class M, class C, class Step>
struct Parts {
  Part<T, M, C, Step> part[arrays_per_launch];
};

template <class T, class M, class C, class Step, bool momentum, bool master>
__global__ void update_arrays(const Parts<T, M, C, Step> parts) {
  const Part<T, M, C, Step>& part = parts.part[blockIdx.y];
  for (int64_t i = first_element(); i < part.count; i += element_step()) {
    const C weight = master ? part.master[i] : static_cast<C>(load(part.weight[i]));
    const C gradient = static_cast<C>(load(part.gradient[i]));
    C result;
    if constexpr (momentum) {
      const C next = part.step(static_cast<C>(load(part.momentum[i])), weight, gradient);
      part.momentum[i] = store<M>(next);
      result = weight + next;
    } else {
      result = part.step(weight, gradient);
    }
    if (master) part.master[i] = result;
    part.out[i] = store<T>(static_cast<compute_type<T>>(result));
  }
}

// Weights of one type: what is kept beside them is of that type too, or float32 with a master.
template <class T, class M, class C, class Step, bool momentum, bool master>
std::unique_ptr<Kernel> build(const NodeView& node, std::vector<Step> steps) {
  constexpr size_t per_weight = 2 + (momentum ? 1 : 0) + (master ? 1 : 0);
  std::vector<int64_t> counts;
  std::vector<std::pair<int, int>> in_place;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    counts.push_back(node.outputs[i].shape.size());
    in_place.emplace_back(static_cast<int>(i * per_weight), static_cast<int>(i));
  }
  return make_step(node,
                   [steps = std::move(steps), counts = std::move(counts)](const Args& args) {
                     for (size_t first = 0; first < counts.size(); first += arrays_per_launch) {
                       const size_t now = std::min<size_t>(arrays_per_launch, counts.size() - first);
                       // The steps have no state of rest: what is not launched is a copy of the first.
                       std::vector<Part<T, M, C, Step>> some(
                           arrays_per_launch, {nullptr, nullptr, nullptr, nullptr, nullptr, 0, steps[0]});
                       int64_t longest = 0;
                       for (size_t k = 0; k < now; ++k) {
                         const size_t array = first + k, input = array * per_weight;
                         some[k] = {args.in<T>(input),
                                    args.in<T>(input + 1),
                                    momentum ? args.state<M>(input + 2) : nullptr,
                                    master ? args.state<C>(input + per_weight - 1) : nullptr,
                                    args.out<T>(array),
                                    counts[array],
                                    steps[array]};
                         longest = std::max(longest, counts[array]);
                       }
                       if (longest == 0) continue;
                       const dim3 grid(std::min(blocks_for(longest), blocks_per_array), static_cast<unsigned>(now));
                       const auto launch = [&]<size_t... index>(std::index_sequence<index...>) {
                         update_arrays<T, M, C, Step, momentum, master>
                             <<<grid, block_size, 0, stream_of(args)>>>(Parts<T, M, C, Step>{{some[index]...}});
                       };
                       launch(std::make_index_sequence<arrays_per_launch>{});
                     }
                   },
                   {.in_place = std::move(in_place)});
}

template <class P, class C>
auto steps_of(const P& p) {
  if constexpr (requires { p.momentum; }) {
    std::vector<sgd::MomentumStep<C>> steps;
    for (size_t i = 0; i < p.lrs.size(); ++i)
      steps.emplace_back(p.lrs[i], p.momentum, p.wds[i], p.rescale_grad, p.clip_gradient);
    return steps;
  } else {
    std::vector<sgd::Step<C>> steps;
    for (size_t i = 0; i < p.lrs.size(); ++i) steps.emplace_back(p.lrs[i], p.wds[i], p.rescale_grad, p.clip_gradient);
    return steps;
  }
}

template <class P, bool master>
std::string refuse(const NodeView& node) {
  constexpr bool momentum = requires(const P& p) { p.momentum; };
  constexpr size_t per_weight = 2 + (momentum ? 1 : 0) + (master ? 1 : 0);
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "wants floating numbers";
  for (const auto& output : node.outputs)
    if (output.dtype != dtype) return "weights of different types";
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (i % per_weight < 2 && node.inputs[i].dtype != dtype) return "arrays of different types";
  return "";
}

template <class P, bool master>
std::unique_ptr<Kernel> build_for(const NodeView& node) {
  constexpr bool momentum = requires(const P& p) { p.momentum; };
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = std::conditional_t<master, float, compute_type<T>>;
    using M = std::conditional_t<master, float, T>;
    auto steps = steps_of<P, C>(node.as<P>());
    using Step = typename decltype(steps)::value_type;
    return build<T, M, C, Step, momentum, master>(node, std::move(steps));
  });
}

template <class P, bool master>
void add(ImplementationTable& table) {
  table.add<P>({"cuda", refuse<P, master>, build_for<P, master>});
}

}  // namespace

void add_multi_optimizer(ImplementationTable& table) {
  add<MultiSgdUpdate, false>(table);
  add<MultiSgdMomUpdate, false>(table);
  add<MultiMpSgdUpdate, true>(table);
  add<MultiMpSgdMomUpdate, true>(table);
}

}  // namespace symbind::cuda_backend
