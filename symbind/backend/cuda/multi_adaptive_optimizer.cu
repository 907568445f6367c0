// AdamW of many arrays in one launch, and LAMB in three: directions with sums of squares of their pieces, the rates
// from these, and the steps.
#include "symbind/backend/cuda/multi_update.cuh"
#include "symbind/backend/multi_adaptive.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr unsigned blocks_per_array = 64;

// ---- AdamW ----------------------------------------------------------------------------------------------------------

struct WithScale {
  const float* rescale;

  __device__ bool skips() const { return !update_rules::is_usable(*rescale); }
  template <class C>
  __device__ update_rules::AdamW<C> operator()(update_rules::AdamW<C> rule, int64_t /*index*/) const {
    rule.scaled.rescale = static_cast<C>(*rescale);
    return rule;
  }
};

template <class P, bool master>
void add_adamw(ImplementationTable& table) {
  constexpr size_t per_weight = master ? 5 : 4;
  table.add<P>({"cuda", [](const NodeView& node) { return refuse_multi(node, per_weight, master); },
                [](const NodeView& node) {
                  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
                    using S = std::conditional_t<master, float, T>;
                    using Rule = update_rules::AdamW<compute_type<S>>;
                    std::vector<Rule> rules;
                    for (size_t i = 0; i < node.outputs.size(); ++i)
                      rules.emplace_back(update_rules::step_of(node.as<P>(), i));
                    return build_multi_update<MultiUpdate<2, master, T, S, Rule>>(
                        node, std::move(rules), [scale = node.inputs.size() - 1](const Args& args) {
                          return WithScale{args.in<float>(scale)};
                        });
                  });
                }});
}

// ---- LAMB -----------------------------------------------------------------------------------------------------------

constexpr int lamb_arrays_per_launch = 16;
constexpr int64_t lamb_piece = 16384;  // elements that a block sums

// One weight of type T; states and, where there is one, its master are of type S.
template <class T, class S>
struct LambArray {
  using C = compute_type<S>;
  update_rules::LambDirection<C> direction_rule;
  update_rules::LambRate<C> rate_rule;
  int64_t count, pieces;
  const T *weight, *grad;
  S *mean, *var, *master;  // no master: null
  T* out;
  double* squares;  // two of each piece
  C *rate, *direction;

  __device__ C weight_at(int64_t i) const {
    return master ? static_cast<C>(load(master[i])) : static_cast<C>(load(weight[i]));
  }
};
template <class T, class S>
struct LambArrays {
  LambArray<T, S> array[lamb_arrays_per_launch];
};

template <class T, class S>
__global__ void find_directions(const __grid_constant__ LambArrays<T, S> arrays) {
  using C = compute_type<S>;
  const LambArray<T, S>& own = arrays.array[blockIdx.y];
  for (int64_t piece = blockIdx.x; piece < own.pieces; piece += gridDim.x) {
    const int64_t begin = piece * lamb_piece;
    const int64_t end = begin + lamb_piece < own.count ? begin + lamb_piece : own.count;
    double of_weight = 0, of_direction = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      C mean = load(own.mean[i]), var = load(own.var[i]);
      const C weight = own.weight_at(i);
      const C direction = own.direction_rule(weight, static_cast<C>(load(own.grad[i])), mean, var);
      own.mean[i] = store<S>(mean);
      own.var[i] = store<S>(var);
      own.direction[i] = direction;
      of_weight += static_cast<double>(weight) * static_cast<double>(weight);
      of_direction += static_cast<double>(direction) * static_cast<double>(direction);
    }
    of_weight = combine_block<Add>(of_weight);
    of_direction = combine_block<Add>(of_direction);
    if (threadIdx.x == 0) {
      own.squares[piece * 2] = of_weight;
      own.squares[piece * 2 + 1] = of_direction;
    }
  }
}

// A block for each array.
template <class T, class S>
__global__ void find_lamb_rates(const __grid_constant__ LambArrays<T, S> arrays) {
  using C = compute_type<S>;
  const LambArray<T, S>& own = arrays.array[blockIdx.x];
  double of_weight = 0, of_direction = 0;
  for (int64_t piece = threadIdx.x; piece < own.pieces; piece += blockDim.x) {
    of_weight += own.squares[piece * 2];
    of_direction += own.squares[piece * 2 + 1];
  }
  of_weight = combine_block<Add>(of_weight);
  of_direction = combine_block<Add>(of_direction);
  if (threadIdx.x == 0)
    *own.rate = own.rate_rule(static_cast<C>(libm::sqrt(of_weight)), static_cast<C>(libm::sqrt(of_direction)));
}

template <class T, class S>
__global__ void step_along_directions(const __grid_constant__ LambArrays<T, S> arrays) {
  using C = compute_type<S>;
  const LambArray<T, S>& own = arrays.array[blockIdx.y];
  const C rate = *own.rate;
  for (int64_t i = first_element(); i < own.count; i += element_step()) {
    const C next = own.weight_at(i) - rate * own.direction[i];
    if (own.master) own.master[i] = store<S>(next);
    own.out[i] = store<T>(static_cast<compute_type<T>>(next));
  }
}

// The arrays of a run without their addresses; those in scratch are offsets until the run.
template <class T, class S>
struct LambPlan {
  using C = compute_type<S>;
  std::vector<LambArray<T, S>> arrays;
  size_t doubles = 0, directions = 0;  // in scratch: squares and rates, then directions

  template <class P>
  LambPlan(const P& p, std::span<const Tensor> weights) {
    for (size_t i = 0; i < weights.size(); ++i) {
      const int64_t count = weights[i].shape.size(), pieces = (count + lamb_piece - 1) / lamb_piece;
      arrays.push_back({update_rules::LambDirection<C>(update_rules::direction_of(p, i)),
                        update_rules::LambRate<C>(update_rules::length_of(p, i)), count, pieces, nullptr, nullptr,
                        nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
      doubles += static_cast<size_t>(pieces) * 2 + 1;
      directions += static_cast<size_t>(count);
    }
  }
  size_t scratch_bytes() const { return doubles * sizeof(double) + directions * sizeof(C); }

  template <bool has_master>
  std::vector<LambArray<T, S>> addressed(const Args& args) const {
    constexpr size_t per_weight = has_master ? 5 : 4;
    std::vector<LambArray<T, S>> all = arrays;
    auto* numbers = static_cast<double*>(args.scratch);
    auto* direction = reinterpret_cast<C*>(numbers + doubles);
    for (size_t i = 0; i < all.size(); ++i) {
      LambArray<T, S>& each = all[i];
      const size_t first = i * per_weight;
      each.weight = args.in<T>(first);
      each.grad = args.in<T>(first + 1);
      each.mean = args.state<S>(first + 2);
      each.var = args.state<S>(first + 3);
      if (has_master) each.master = args.state<S>(first + 4);
      each.out = args.out<T>(i);
      each.squares = numbers;
      each.rate = reinterpret_cast<C*>(numbers + each.pieces * 2);
      each.direction = direction;
      numbers += each.pieces * 2 + 1;
      direction += each.count;
    }
    return all;
  }
};

template <class T, class S>
void queue_lamb(std::span<const LambArray<T, S>> some, cudaStream_t stream) {
  int64_t longest = 0, most_pieces = 1;
  for (const auto& each : some) {
    longest = std::max(longest, each.count);
    most_pieces = std::max(most_pieces, each.pieces);
  }
  if (longest == 0) return;
  // Rules have no default: unused entries repeat the first array.
  const auto launch = [&]<size_t... index>(std::index_sequence<index...>) {
    const LambArrays<T, S> arrays{{(index < some.size() ? some[index] : some[0])...}};
    const auto count = static_cast<unsigned>(some.size());
    find_directions<<<dim3(blocks_for(most_pieces, 1), count), block_size, 0, stream>>>(arrays);
    find_lamb_rates<<<count, block_size, 0, stream>>>(arrays);
    step_along_directions<<<dim3(std::min(blocks_for(longest), blocks_per_array), count), block_size, 0, stream>>>(
        arrays);
  };
  launch(std::make_index_sequence<lamb_arrays_per_launch>{});
}

template <class P, bool has_master>
std::unique_ptr<Kernel> build_lamb(const NodeView& node) {
  constexpr int per_weight = has_master ? 5 : 4;
  std::vector<std::pair<int, int>> in_place;
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) in_place.emplace_back(i * per_weight, i);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using S = std::conditional_t<has_master, float, T>;
    const LambPlan<T, S> plan(node.as<P>(), node.outputs);
    return make_step(node,
                     [plan](const Args& args) {
                       const auto arrays = plan.template addressed<has_master>(args);
                       const std::span<const LambArray<T, S>> all(arrays);
                       for (size_t first = 0; first < all.size(); first += lamb_arrays_per_launch)
                         queue_lamb<T, S>(
                             all.subspan(first, std::min<size_t>(lamb_arrays_per_launch, all.size() - first)),
                             stream_of(args));
                     },
                     {.in_place = std::move(in_place), .scratch_bytes = plan.scratch_bytes()});
  });
}

}  // namespace

void add_multi_adaptive_optimizer(ImplementationTable& table) {
  add_adamw<AdamWUpdate, false>(table);
  add_adamw<MpAdamWUpdate, true>(table);
  add_adamw<MultiAdamWUpdate, false>(table);
  add_adamw<MultiMpAdamWUpdate, true>(table);
  table.add<MultiLambUpdate>(
      {"cuda", [](const NodeView& node) { return refuse_multi(node, 4, false); }, build_lamb<MultiLambUpdate, false>});
  table.add<MultiMpLambUpdate>(
      {"cuda", [](const NodeView& node) { return refuse_multi(node, 5, true); }, build_lamb<MultiMpLambUpdate, true>});
}

}  // namespace symbind::cuda_backend
