// An update rule (backend/update_rules.h) applied to many arrays in one launch: their addresses are part of the
// launch's arguments, and a row of blocks updates each array.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

inline constexpr int arrays_per_launch = 32;  // what fits the 4 KB of a launch's arguments
inline constexpr unsigned blocks_per_array = 64;

// The inputs of each weight are weight, gradient, `states` arrays and, where `has_master`, the weight's float32 copy.
// T is the type of weights and gradients, S that of states and masters.
template <int states_, bool has_master_, class T_, class S_, class Rule_>
struct MultiUpdate {
  static constexpr int states = states_;
  static constexpr bool has_master = has_master_;
  static constexpr size_t per_weight = 2 + states + (has_master ? 1 : 0);
  using T = T_;
  using S = S_;
  using Rule = Rule_;

  struct Part {
    const T *weight, *gradient;
    S* kept[per_weight > 2 ? per_weight - 2 : 1];  // states, then the master
    T* out;
    int64_t count;
    Rule rule;
  };
  struct Parts {
    Part part[arrays_per_launch];
  };
  static_assert(sizeof(Parts) <= 4000, "beside it there are other arguments");
};

template <class C, class Rule, size_t... k>
__device__ C apply_rule(const Rule& rule, C weight, C gradient, C* states, std::index_sequence<k...>) {
  return rule(weight, gradient, states[k]...);
}

// `finish(rule, index)` is the rule of the array `first` + index of the operator: values that depend on other arrays
// are set there. If finish.skips(), weights are copied.
template <class Update, class Finish>
__global__ void update_arrays(const __grid_constant__ typename Update::Parts parts, int64_t first, Finish finish) {
  using T = typename Update::T;
  using S = typename Update::S;
  using C = compute_type<S>;
  constexpr int states = Update::states;
  const typename Update::Part& part = parts.part[blockIdx.y];
  if (finish.skips()) {
    for (int64_t i = first_element(); i < part.count; i += element_step()) part.out[i] = part.weight[i];
    return;
  }
  const auto rule = finish(part.rule, first + blockIdx.y);
  for (int64_t i = first_element(); i < part.count; i += element_step()) {
    C now[states + 1];
    for (int k = 0; k < states; ++k) now[k] = load(part.kept[k][i]);
    if constexpr (Update::has_master)
      now[states] = part.kept[states][i];
    else
      now[states] = load(part.weight[i]);
    const C next =
        apply_rule(rule, now[states], static_cast<C>(load(part.gradient[i])), now, std::make_index_sequence<states>{});
    for (int k = 0; k < states; ++k) part.kept[k][i] = store<S>(now[k]);
    if constexpr (Update::has_master) part.kept[states][i] = next;
    part.out[i] = store<T>(static_cast<compute_type<T>>(next));
  }
}

// The rules need no completion.
struct AsItIs {
  __device__ static bool skips() { return false; }
  template <class Rule>
  __device__ const Rule& operator()(const Rule& rule, int64_t /*index*/) const {
    return rule;
  }
};

// make_finish(args) gives the function that completes rules in the kernel.
template <class Update, class MakeFinish>
std::unique_ptr<Kernel> build_multi_update(const NodeView& node, std::vector<typename Update::Rule> rules,
                                           MakeFinish make_finish) {
  using T = typename Update::T;
  std::vector<int64_t> counts;
  std::vector<std::pair<int, int>> in_place;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    counts.push_back(node.outputs[i].shape.size());
    in_place.emplace_back(static_cast<int>(i * Update::per_weight), static_cast<int>(i));
  }
  const auto part_of = [](const Args& args, size_t array, int64_t count, const typename Update::Rule& rule) {
    const size_t input = array * Update::per_weight;
    typename Update::Part part{args.in<T>(input), args.in<T>(input + 1), {}, args.out<T>(array), count, rule};
    for (size_t k = 2; k < Update::per_weight; ++k) part.kept[k - 2] = args.state<typename Update::S>(input + k);
    return part;
  };
  return make_step(node,
                   [rules = std::move(rules), counts = std::move(counts), part_of, make_finish](const Args& args) {
                     for (size_t first = 0; first < counts.size(); first += arrays_per_launch) {
                       const size_t now = std::min<size_t>(arrays_per_launch, counts.size() - first);
                       int64_t longest = 0;
                       for (size_t k = 0; k < now; ++k) longest = std::max(longest, counts[first + k]);
                       if (longest == 0) continue;
                       const dim3 grid(std::min(blocks_for(longest), blocks_per_array), static_cast<unsigned>(now));
                       // Rules have no default: unused entries repeat the first array.
                       const auto part = [&](size_t k) {
                         const size_t array = k < now ? first + k : first;
                         return part_of(args, array, counts[array], rules[array]);
                       };
                       const auto launch = [&]<size_t... index>(std::index_sequence<index...>) {
                         update_arrays<Update><<<grid, block_size, 0, stream_of(args)>>>(
                             typename Update::Parts{{part(index)...}}, static_cast<int64_t>(first), make_finish(args));
                       };
                       launch(std::make_index_sequence<arrays_per_launch>{});
                     }
                   },
                   {.in_place = std::move(in_place)});
}

// `per_weight` inputs for each weight: weight and gradient of one type that all weights share; the others are of that
// type too, or float32 with a master. Inputs after those are float32.
inline std::string refuse_multi(const NodeView& node, size_t per_weight, bool has_master) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "needs floating types";
  for (const Tensor& output : node.outputs)
    if (output.dtype != dtype) return "weights of different types";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool shared = i >= node.outputs.size() * per_weight;
    const DType wanted = shared || (has_master && i % per_weight >= 2) ? DType::float32 : dtype;
    if (node.inputs[i].dtype != wanted) return "arrays of different types";
  }
  return "";
}

}  // namespace symbind::cuda_backend
