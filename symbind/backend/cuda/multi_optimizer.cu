// Steps of stochastic gradient descent for many arrays in one launch, sums of squares of many arrays in the same way,
// and the rates of LARS from them.
#include "symbind/ops/multi_optimizer.h"

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/multi_update.cuh"
#include "symbind/backend/update_rules.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

template <class P, class C>
auto rules_of(const P& p) {
  if constexpr (requires { p.momentum; }) {
    std::vector<update_rules::SgdMomentum<C>> rules;
    for (size_t i = 0; i < p.lrs.size(); ++i)
      rules.emplace_back(SgdMomUpdate{.lr = p.lrs[i],
                                      .momentum = p.momentum,
                                      .wd = p.wds[i],
                                      .rescale_grad = p.rescale_grad,
                                      .clip_gradient = p.clip_gradient});
    return rules;
  } else {
    std::vector<update_rules::Sgd<C>> rules;
    for (size_t i = 0; i < p.lrs.size(); ++i)
      rules.emplace_back(
          SgdUpdate{.lr = p.lrs[i], .wd = p.wds[i], .rescale_grad = p.rescale_grad, .clip_gradient = p.clip_gradient});
    return rules;
  }
}

template <class P, bool master>
void add(ImplementationTable& table) {
  constexpr bool momentum = requires(const P& p) { p.momentum; };
  constexpr size_t per_weight = 2 + (momentum ? 1 : 0) + (master ? 1 : 0);
  table.add<P>({"cuda", [](const NodeView& node) { return refuse_multi(node, per_weight, master); },
                [](const NodeView& node) {
                  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
                    using S = std::conditional_t<master, float, T>;
                    auto rules = rules_of<P, compute_type<S>>(node.as<P>());
                    using Update = MultiUpdate<momentum ? 1 : 0, master, T, S, typename decltype(rules)::value_type>;
                    return build_multi_update<Update>(node, std::move(rules), [](const Args&) { return AsItIs{}; });
                  });
                }});
}

// ---- Sums of squares and LARS ---------------------------------------------------------------------------------------

constexpr int arrays_per_launch = 32;
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
