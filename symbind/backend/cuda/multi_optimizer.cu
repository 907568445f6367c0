// Steps of stochastic gradient descent for many arrays in one launch: their addresses travel in the launch, a row of
// blocks looks after each array. Sums of squares of many arrays in the same way, and the rates of LARS from them.
#include "symbind/ops/multi_optimizer.h"

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/sgd.h"
#include "symbind/backend/update_rules.h"
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

// ---- Sums of squares and LARS ---------------------------------------------------------------------------------------

constexpr int64_t square_piece = 16384;  // elements that a block sums

struct SquaresOf {
  AnyInput array;
  int64_t count, pieces;
  double* sums;  // of the pieces
};
struct SquaresOfArrays {
  SquaresOf array[arrays_per_launch];
};

__global__ void sum_squares(const __grid_constant__ SquaresOfArrays arrays) {
  const SquaresOf& own = arrays.array[blockIdx.y];
  for (int64_t piece = blockIdx.x; piece < own.pieces; piece += gridDim.x) {
    const int64_t begin = piece * square_piece;
    const int64_t end = begin + square_piece < own.count ? begin + square_piece : own.count;
    double sum = 0;
    visit_any(own.array.dtype, [&]<class T>(std::type_identity<T>) {
      const T* const values = static_cast<const T*>(own.array.data);
#pragma unroll 4
      for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const auto value = static_cast<double>(load(values[i]));
        sum += value * value;
      }
    });
    sum = combine_block<Add>(sum);
    if (threadIdx.x == 0) own.sums[piece] = sum;
  }
}

// A block for each array adds up its pieces.
__global__ void sum_pieces(const __grid_constant__ SquaresOfArrays arrays, float* out) {
  const SquaresOf& own = arrays.array[blockIdx.x];
  double sum = 0;
  for (int64_t piece = threadIdx.x; piece < own.pieces; piece += blockDim.x) sum += own.sums[piece];
  sum = combine_block<Add>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<float>(sum);
}

std::unique_ptr<Kernel> build_sum_sq(const NodeView& node) {
  std::vector<SquaresOf> arrays;
  int64_t pieces = 0;
  for (const Tensor& input : node.inputs) {
    const int64_t count = input.shape.size();
    arrays.push_back({{nullptr, input.dtype}, count, (count + square_piece - 1) / square_piece, nullptr});
    pieces += arrays.back().pieces;
  }
  return make_step(node,
                   [arrays](const Args& args) {
                     auto* sums = static_cast<double*>(args.scratch);
                     for (size_t first = 0; first < arrays.size(); first += arrays_per_launch) {
                       const size_t now = std::min<size_t>(arrays_per_launch, arrays.size() - first);
                       SquaresOfArrays some{};
                       int64_t most = 1;
                       for (size_t i = 0; i < now; ++i) {
                         some.array[i] = arrays[first + i];
                         some.array[i].array.data = args.inputs[first + i];
                         some.array[i].sums = sums;
                         sums += some.array[i].pieces;
                         most = std::max(most, some.array[i].pieces);
                       }
                       const auto count = static_cast<unsigned>(now);
                       sum_squares<<<dim3(blocks_for(most, 1), count), block_size, 0, stream_of(args)>>>(some);
                       sum_pieces<<<count, block_size, 0, stream_of(args)>>>(some, args.out<float>() + first);
                     }
                   },
                   {.scratch_bytes = static_cast<size_t>(pieces) * sizeof(double)});
}

std::string refuse_sum_sq(const NodeView& node) {
  for (const Tensor& input : node.inputs)
    if (!is_floating(input.dtype)) return "wants floating numbers";
  return node.outputs[0].dtype == DType::float32 ? "" : "the result is float32";
}

__global__ void find_rates(const float* lrs, const float* weights, const float* grads, const float* wds, float* out,
                           int64_t count, update_rules::LarsRate rate) {
  for (int64_t i = first_element(); i < count; i += element_step()) out[i] = rate(lrs[i], weights[i], grads[i], wds[i]);
}

std::unique_ptr<Kernel> build_lars(const NodeView& node) {
  return make_step(
      node,
      [rate = update_rules::LarsRate(node.as<MultiLars>()), count = node.outputs[0].shape.size()](const Args& args) {
        if (count == 0) return;
        find_rates<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
            args.in<float>(0), args.in<float>(1), args.in<float>(2), args.in<float>(3), args.out<float>(), count, rate);
      },
      {.in_place = {{0, 0}}});
}

std::string refuse_lars(const NodeView& node) {
  for (const Tensor& input : node.inputs)
    if (input.dtype != DType::float32) return "wants float32";
  return "";
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
  table.add<MultiSumSq>({"cuda", refuse_sum_sq, build_sum_sq});
  table.add<MultiLars>({"cuda", refuse_lars, build_lars});
}

}  // namespace symbind::cuda_backend
