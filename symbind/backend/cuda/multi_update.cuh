// An update rule (backend/update_rules.h) applied to many arrays in one launch: their addresses are part of the
// launch's arguments, and each array has as many blocks as its size needs.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbind/backend/cuda/array_blocks.cuh"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/core/update_condition.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

// The arguments of a launch are copied with it and may have 32 KB, or 4 KB with drivers before CUDA 12.1: operators
// with few arrays, and such drivers, have a kernel that takes less than 4 KB.
inline constexpr int few_arrays = 32, many_arrays = 192;
inline bool has_large_arguments() {
  static const bool has = [] {
    int driver = 0;
    return cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12010;
  }();
  return has;
}
inline constexpr int elements_ahead = 4;  // that a thread reads before it writes the first
inline constexpr int64_t most_blocks_of_array = 1024;

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
    S* states_and_master[per_weight > 2 ? per_weight - 2 : 1];  // in this order
    T* out;
    int64_t count;
    Rule rule;
  };
  template <int most>
  struct Parts {
    ArrayBlocks<most> blocks;
    // Rules have no default: entries are constructed as they are added.
    union {
      Part part[most];
    };
    Parts() {}

    void add(const Part& next, int64_t blocks_of_next) {
      std::construct_at(&part[blocks.count()], next);
      blocks.add(blocks_of_next);
    }
  };
  static_assert(sizeof(Parts<few_arrays>) <= 4000 && sizeof(Parts<many_arrays>) <= 32000,
                "beside it there are other arguments");
};

template <class C, class Rule, size_t... k>
__device__ C apply_rule(const Rule& rule, C weight, C gradient, C* states, std::index_sequence<k...>) {
  return rule(weight, gradient, states[k]...);
}

// `finish(rule, index)` is the rule of the array `first` + index of the operator: values that depend on other arrays
// are set there. If finish.skips() or the UpdateCondition `made` is 0, weights are copied.
template <class Update, int most, class Finish>
__global__ void update_arrays(const __grid_constant__ typename Update::template Parts<most> parts, int64_t first,
                              Finish finish, const float* made) {
  using T = typename Update::T;
  using S = typename Update::S;
  using C = compute_type<S>;
  constexpr int states = Update::states;
  const auto own = parts.blocks.find(blockIdx.x);
  const typename Update::Part& part = parts.part[own.array];
  const int64_t begin = int64_t{own.block} * blockDim.x + threadIdx.x;
  const int64_t step = int64_t{own.blocks} * blockDim.x;
  if (finish.skips() || (made && *made == 0)) {
    for (int64_t i = begin; i < part.count; i += step) part.out[i] = part.weight[i];
    return;
  }
  const auto rule = finish(part.rule, first + own.array);
  for (int64_t next = begin; next < part.count; next += elements_ahead * step) {
    C now[elements_ahead][states + 1], gradient[elements_ahead];
#pragma unroll
    for (int k = 0; k < elements_ahead; ++k) {
      const int64_t i = next + k * step;
      if (i >= part.count) break;
      for (int state = 0; state < states; ++state) now[k][state] = load(part.states_and_master[state][i]);
      if constexpr (Update::has_master)
        now[k][states] = part.states_and_master[states][i];
      else
        now[k][states] = load(part.weight[i]);
      gradient[k] = static_cast<C>(load(part.gradient[i]));
    }
#pragma unroll
    for (int k = 0; k < elements_ahead; ++k) {
      const int64_t i = next + k * step;
      if (i >= part.count) break;
      const C updated = apply_rule(rule, now[k][states], gradient[k], now[k], std::make_index_sequence<states>{});
      for (int state = 0; state < states; ++state) part.states_and_master[state][i] = store<S>(now[k][state]);
      if constexpr (Update::has_master) part.states_and_master[states][i] = updated;
      part.out[i] = store<T>(static_cast<compute_type<T>>(updated));
    }
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

inline int64_t update_blocks(int64_t count) {
  constexpr int64_t elements = int64_t{block_size} * elements_ahead;
  return std::min((count + elements - 1) / elements, most_blocks_of_array);
}

// make_finish(args) returns the function that completes rules in the kernel.
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
    for (size_t k = 2; k < Update::per_weight; ++k)
      part.states_and_master[k - 2] = args.state<typename Update::S>(input + k);
    return part;
  };
  const auto queue = [rules = std::move(rules), counts = std::move(counts), part_of, make_finish]<int most>(
                         const Args& args, std::integral_constant<int, most>) {
    for (size_t first = 0; first < counts.size(); first += most) {
      typename Update::template Parts<most> parts;
      for (size_t i = first; i < std::min(first + most, counts.size()); ++i)
        parts.add(part_of(args, i, counts[i], rules[i]), update_blocks(counts[i]));
      if (parts.blocks.blocks() == 0) continue;
      update_arrays<Update, most><<<parts.blocks.blocks(), block_size, 0, stream_of(args)>>>(
          parts, static_cast<int64_t>(first), make_finish(args), UpdateCondition::current());
    }
  };
  return make_step(node,
                   [queue, few = node.outputs.size() <= few_arrays || !has_large_arguments()](const Args& args) {
                     if (few)
                       queue(args, std::integral_constant<int, few_arrays>{});
                     else
                       queue(args, std::integral_constant<int, many_arrays>{});
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
