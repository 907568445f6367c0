// BatchNorm, alone and with ReLU after it, in three passes: sums per channel, one small kernel that turns them into
// statistics, and a map over the elements. The gradient has the same structure. Everything here is memory-bound, so the
// arrays are read up to 16 bytes at a time, and as few times as possible: twice each.
#include "symbind/backend/cuda/batch_norm.cuh"

#include <algorithm>

#include "symbind/backend/cuda/cluster.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/launch.cuh"
#include "symbind/backend/cuda/relu_signs.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/tensor_core.cuh"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// ---- Forward --------------------------------------------------------------------------------------------------------

// Sums of x - pivot and its square. The pivot is some element of the channel: close enough to the mean to avoid
// cancellation in the variance.
template <class T>
struct Moments {
  using Compute = compute_type<T>;
  using OfChannel = Compute;
  const T* x;
  int64_t inner;

  __device__ OfChannel at(int64_t channel) const { return load_element(channel * inner); }
  __device__ Compute load_element(int64_t index) const { return cuda_backend::load(x[index]); }
  template <int width>
  __device__ Packed<T, width> load(int64_t index) const {
    return load_packed<width>(x + index);
  }
  template <int width>
  __device__ PairOf<Compute> operator()(Compute pivot, const Packed<T, width>& values, int k) const {
    const Compute away = values[k] - pivot;
    return {away, away * away};
  }
};

// From the sums of Moments: the outputs mean and var (the reciprocal standard deviation), the moving statistics, and
// the map.
template <class T>
struct FinishStatistics {
  using C = compute_type<T>;
  struct OfChannel {
    C pivot, gamma, beta, moving_mean, moving_var;
  };
  const T* x;
  const C *gamma, *beta;
  C *moving_mean, *moving_var, *mean, *deviation;
  Affines<C> affines;
  int64_t inner;
  double count, share, eps;  // share: 1 / count
  float momentum;
  bool fix_gamma;

  __device__ OfChannel at(int64_t c) const {
    return {load(x[c * inner]), fix_gamma ? C(1) : gamma[c], beta[c], moving_mean[c], moving_var[c]};
  }
  __device__ void operator()(int64_t c, const OfChannel& given, double sum, double square) const {
    const double away = sum * share;
    double variance = square * share - away * away;
    variance = variance > 0 ? variance : (variance == variance ? 0.0 : variance);
    const C middle = static_cast<C>(given.pivot + away), reciprocal = static_cast<C>(rsqrt(variance + eps));
    const float rest = 1 - momentum;
    affines.store(c, {middle, given.gamma * reciprocal, given.beta});
    if (mean) mean[c] = middle;
    if (deviation) deviation[c] = reciprocal;
    moving_mean[c] = static_cast<C>(given.moving_mean * momentum + middle * rest);
    moving_var[c] = static_cast<C>(given.moving_var * momentum + static_cast<C>(variance) * rest);
  }
};

// The sums of a block, added up over the blocks of its cluster in the order of their ranks. All threads of the cluster
// call it; the result is that of the block of rank 0.
class ClusterSums {
 public:
  explicit __device__ ClusterSums(int blocks) : blocks_(blocks) {}

  __device__ PairOf<double> operator()(const PairOf<double>& own) {
#if SYMBIND_BUILT_FOR_9_0
    if (blocks_ > 1) {
      // Two places: one is written while the block of rank 0 may still read the other.
      __shared__ double of_blocks[2][most_cluster_blocks][2];
      const int place = turn_++ % 2;
      if (threadIdx.x == 0) {
        const uint32_t at = tensor_core::shared_address(of_blocks[place][cluster::rank()]);
        cluster::store(cluster::address_in(at, 0), own.first);
        cluster::store(cluster::address_in(at, 0) + sizeof(double), own.second);
      }
      __syncwarp();
      cluster::arrive();
      cluster::wait();
      PairOf<double> total{0, 0};
      if (threadIdx.x == 0 && cluster::rank() == 0)
        for (int rank = 0; rank < blocks_; ++rank) {
          total.first += of_blocks[place][rank][0];
          total.second += of_blocks[place][rank][1];
        }
      return total;
    }
#endif
    return own;
  }

 private:
  const int blocks_;
  int turn_ = 0;
};

// The same from sums of x and of its square in float. The variance is their difference: with m the mean, v the variance
// and e the relative error of the sums, its error is up to 3·(1 + m²/v)·e of it. Where m² is more than 64·v, and where
// the sums are not finite, the channel's data is read instead; otherwise the reciprocal deviation is right to 98·e,
// which is less than a rounding of float16 or TF32, 2^-11, for sums that are right to 2^-18. That the sums may be of
// elements before they are rounded changes less: the roundings are far smaller than the deviation.
//
// Some channels, usually none of which is read, belong to a cluster of `blocks` blocks, which share the reading.
inline constexpr double most_squared_mean = 64;
inline constexpr int given_threads = 512;
inline constexpr int64_t given_clusters = 64;  // that run concurrently
template <class T>
__global__ void __launch_bounds__(given_threads)
    finish_given_sums(ChannelShape shape, int group_channels, int blocks, const compute_type<T>* sums,
                      const compute_type<T>* square_sums, Moments<T> moments, FinishStatistics<T> finish) {
  using C = compute_type<T>;
  let_next_start();
  __shared__ bool is_precise[given_threads];
  const auto index = static_cast<int>(blockIdx.x), rank = index % blocks;
  const int64_t first_channel = int64_t{index / blocks} * group_channels;
  const int channels = static_cast<int>(min(int64_t{group_channels}, shape.channels - first_channel));
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < channels) {
    const int64_t channel = first_channel + thread;
    const auto of_channel = finish.at(channel);
    const double sum = sums[channel], square_sum = square_sums[channel], pivot = of_channel.pivot;
    const double count = finish.count, share = finish.share, mean = sum * share;
    const double variance = square_sum * share - mean * mean;
    const bool precise = isfinite(variance) && variance * most_squared_mean >= mean * mean;
    if (precise && rank == 0)
      finish(channel, of_channel, sum - count * pivot, square_sum - 2 * pivot * sum + count * pivot * pivot);
    is_precise[thread] = precise;
  }
  __syncthreads();
  ClusterSums over_cluster(blocks);
  for (int i = 0; i < channels; ++i) {
    if (is_precise[i]) continue;
    const int64_t channel = first_channel + i;
    const C pivot = moments.at(channel);
    PairOf<C> own = {C(0), C(0)};
#pragma unroll 8
    for (int64_t e = int64_t{rank} * given_threads + thread; e < shape.per_channel(); e += blocks * given_threads) {
      const int64_t at = in_channel(shape, channel, static_cast<uint32_t>(e));
      const PairOf<C> term = moments(pivot, moments.template load<1>(at), 0);
      own.first += term.first;
      own.second += term.second;
    }
    const PairOf<double> total = over_cluster(
        {combine_block<Add>(static_cast<double>(own.first)), combine_block<Add>(static_cast<double>(own.second))});
    if (thread == 0 && rank == 0) finish(channel, finish.at(channel), total.first, total.second);
  }
}

template <class T>
void queue_given_sums(cudaStream_t stream, const ChannelShape& shape, const StatisticsArrays<T>& arrays,
                      const Moments<T>& moments, const FinishStatistics<T>& finish) {
  const auto group_channels =
      static_cast<int>(std::min<int64_t>(divide_up(shape.channels, given_clusters), given_threads));
  const auto groups = static_cast<unsigned>(divide_up(shape.channels, group_channels));
  const auto kernel = finish_given_sums<T>;
  if (is_built_for_9_0(kernel))
    launch_clusters(kernel, {groups * most_cluster_blocks, most_cluster_blocks, given_threads, 0, false}, stream, shape,
                    group_channels, most_cluster_blocks, arrays.sums, arrays.square_sums, moments, finish);
  else
    kernel<<<groups, given_threads, 0, stream>>>(shape, group_channels, 1, arrays.sums, arrays.square_sums, moments,
                                                 finish);
}

// The same from given statistics.
template <class C>
__global__ void show_statistics(const C* gamma, const C* beta, const C* moving_mean, const C* moving_var, C* mean,
                                C* deviation, Affines<C> affines, int64_t channels, double eps, bool fix_gamma) {
  let_next_start();
  for (int64_t c = first_element(); c < channels; c += element_step()) {
    const C reciprocal = static_cast<C>(1 / sqrt(static_cast<double>(moving_var[c]) + eps));
    affines.store(c, {moving_mean[c], fix_gamma ? reciprocal : gamma[c] * reciprocal, beta[c]});
    if (mean) mean[c] = moving_mean[c];
    if (deviation) deviation[c] = reciprocal;
  }
}

template <class T, class Source>
struct NormalizeAddRelu {
  static constexpr int rows_at_once = 2;
  using Element = T;
  using Compute = compute_type<T>;
  using OfChannel = Affine<Compute>;
  template <int width>
  struct Packs {
    Packed<T, width> x, sum;
  };
  const T *x, *sum;
  T* out;
  Source affines;

  template <int width>
  __device__ void read(int64_t channel, OfChannel (&to)[width]) const {
    affines.template read<width>(channel, to);
  }
  template <int width>
  __device__ Packs<width> load(int64_t index) const {
    return {load_packed<width>(x + index), load_packed<width>(sum + index)};
  }
  template <class AnyPacks>
  __device__ Compute operator()(const OfChannel& map, const AnyPacks& packs, int k) const {
    const Compute value = map(packs.x[k]) + packs.sum[k];
    return value < Compute(0) ? Compute(0) : value;
  }
};

template <class T, bool relu, class Source>
struct Normalize {
  using Element = T;
  using Compute = compute_type<T>;
  static constexpr int rows_at_once = 4, blocks_at_once = std::is_same_v<Source, Affines<Compute>> ? 4 : 3;
  using OfChannel = Affine<Compute>;
  const T* x;
  T* out;
  Source affines;

  template <int width>
  __device__ void read(int64_t channel, OfChannel (&to)[width]) const {
    affines.template read<width>(channel, to);
  }
  template <int width>
  __device__ Packed<T, width> load(int64_t index) const {
    return load_packed<width>(x + index);
  }
  template <int width>
  __device__ Compute operator()(const OfChannel& map, const Packed<T, width>& values, int k) const {
    const Compute value = map(values[k]);
    return relu && value < Compute(0) ? Compute(0) : value;
  }
};

// ---- Gradient -------------------------------------------------------------------------------------------------------

// With ReLU, dy counts only where the result, recomputed as in forward, was above zero.
template <bool relu, class C>
__device__ C arriving(C dy, C away, C scale, C shift) {
  return relu && !(away * scale + shift > C(0)) ? C(0) : dy;
}

template <class T, int width>
struct GradientPacks {
  Packed<T, width> dy, x, more;
};

// Σ dy and Σ dy·(x - mean).
template <class T, bool relu>
struct GradientSums {
  static constexpr int pack_width = 4, rows_at_once = sizeof(T) == 2 ? 6 : 4, blocks_at_once = sizeof(T) == 2 ? 4 : 3;
  using Compute = compute_type<T>;
  using OfChannel = Affine<Compute>;
  const T *dy, *x;
  Parameters<Compute> parameters;

  template <int width>
  __device__ void read(int64_t channel, OfChannel (&to)[width]) const {
    parameters.template read<width>(channel, to);
  }
  template <int width>
  __device__ GradientPacks<T, width> load(int64_t index) const {
    return {load_packed<width>(dy + index), load_packed<width>(x + index), {}};
  }
  template <int width>
  __device__ PairOf<Compute> operator()(const OfChannel& c, const GradientPacks<T, width>& values, int k) const {
    const Compute away = values.x[k] - c.mean;
    const Compute g = arriving<relu>(values.dy[k], away, c.scale, c.shift);
    return {g, g * away};
  }
};

// The sums are given: those of the whole batch.
template <class C>
__global__ void finish_given_gradient_sums(const C* sums, const C* away_sums, int64_t channels,
                                           FinishGradient<C> finish) {
  let_next_start();
  for (int64_t c = first_element(); c < channels; c += element_step()) finish(c, finish.at(c), sums[c], away_sums[c]);
}

// `more`, where it is not null, is added to the gradient.
template <class T, bool relu>
struct DataGradient {
  static constexpr int pack_width = 4, rows_at_once = sizeof(T) == 2 ? 4 : 2;
  using Element = T;
  using Compute = compute_type<T>;
  using OfChannel = GradientOfChannel<Compute>;
  const T *dy, *x, *more;
  T* out;
  GradientsOfChannels<Compute> gradients;

  template <int width>
  __device__ void read(int64_t channel, OfChannel (&to)[width]) const {
    gradients.template read<width>(channel, to);
  }
  template <int width>
  __device__ GradientPacks<T, width> load(int64_t index) const {
    GradientPacks<T, width> packs;
    packs.dy = load_packed<width>(dy + index);
    packs.x = load_packed<width>(x + index);
    if (more) packs.more = load_packed<width>(more + index);
    return packs;
  }
  template <int width>
  __device__ Compute operator()(const OfChannel& c, const GradientPacks<T, width>& values, int k) const {
    const Compute away = values.x[k] - c.affine.mean;
    const Compute g = arriving<relu>(values.dy[k], away, c.affine.scale, c.affine.shift);
    const Compute result = c(g, away);
    return more ? result + values.more[k] : result;
  }
};

// The result of ReLU is written as well.
template <class T>
struct DataGradientAndOutput : DataGradient<T, true> {
  using typename DataGradient<T, true>::Compute, typename DataGradient<T, true>::OfChannel;
  T* other_out;

  template <int width>
  __device__ Compute other(const OfChannel& c, const GradientPacks<T, width>& values, int k) const {
    const Compute value = c.affine(values.x[k]);
    return value < Compute(0) ? Compute(0) : value;
  }
};

// The sums are given: those of the whole batch. Every block turns those of its channels into what the map needs.
template <class T>
struct DataGradientFromSums : DataGradient<T, false> {
  using typename DataGradient<T, false>::Compute, typename DataGradient<T, false>::OfChannel;
  FinishGradient<Compute> finish;
  const Compute *sums, *away_sums;

  template <int width>
  __device__ void read(int64_t channel, OfChannel (&to)[width]) const {
    Affine<Compute> affine[width];
    Compute deviation[width], sum[width], away_sum[width];
    finish.parameters.template read<width>(channel, affine);
    load_numbers<width>(finish.parameters.deviation + channel, deviation);
    load_numbers<width>(sums + channel, sum);
    load_numbers<width>(away_sums + channel, away_sum);
#pragma unroll
    for (int k = 0; k < width; ++k) to[k] = finish.gradient({affine[k], deviation[k]}, sum[k], away_sum[k]);
  }
  __device__ void store_channel(int64_t c) const { finish.store_parameters(c, finish.at(c), sums[c], away_sums[c]); }
};
// Where there is no map.
template <class C>
__global__ void store_parameter_gradients(const C* sums, const C* away_sums, int64_t channels,
                                          FinishGradient<C> finish) {
  for (int64_t c = first_element(); c < channels; c += element_step())
    finish.store_parameters(c, finish.at(c), sums[c], away_sums[c]);
}

}  // namespace

// ---- Shared with batch_norm_pair.cu ---------------------------------------------------------------------------------

template <class T>
void queue_statistics(cudaStream_t stream, const ChannelShape& shape, bool wide, const BatchNorm& p, bool own,
                      const StatisticsArrays<T>& arrays, const Affines<compute_type<T>>& affines, void* scratch) {
  const auto count = static_cast<double>(shape.per_channel());
  const Moments<T> moments{arrays.x, shape.inner};
  const FinishStatistics<T> finish{arrays.x,
                                   arrays.gamma,
                                   arrays.beta,
                                   arrays.moving_mean,
                                   arrays.moving_var,
                                   arrays.mean,
                                   arrays.deviation,
                                   affines,
                                   shape.inner,
                                   count,
                                   1 / count,
                                   p.eps,
                                   static_cast<float>(p.momentum),
                                   p.fix_gamma};
  if (arrays.sums)
    queue_given_sums(stream, shape, arrays, moments, finish);
  else if (own)
    queue_channel_sums<T>(stream, shape, wide, moments, scratch, finish);
  else
    show_statistics<<<blocks_for(shape.channels), block_size, 0, stream>>>(
        arrays.gamma, arrays.beta, arrays.moving_mean, arrays.moving_var, arrays.mean, arrays.deviation, affines,
        shape.channels, p.eps, p.fix_gamma);
}

template <class C>
void queue_given_gradient_sums(cudaStream_t stream, const C* sums, const C* away_sums, int64_t channels,
                               const FinishGradient<C>& finish) {
  finish_given_gradient_sums<<<blocks_for(channels), block_size, 0, stream>>>(sums, away_sums, channels, finish);
}

template <class T>
void queue_gradient_sums(cudaStream_t stream, const ChannelShape& shape, bool wide, const T* dy, const T* x,
                         const FinishGradient<compute_type<T>>& finish, void* scratch) {
  queue_channel_sums<T>(stream, shape, wide, GradientSums<T, false>{dy, x, finish.parameters}, scratch, finish);
}

template <class T, class Results>
void queue_relu_gradient_sums(cudaStream_t stream, const ChannelShape& shape, bool wide,
                              const ReluGradientSums<T, Results>& terms, const FinishGradient<compute_type<T>>& finish,
                              void* scratch) {
  queue_channel_sums<T>(stream, shape, wide, terms, scratch, finish);
}

#define SYMBIND_INSTANTIATE(T)                                                                        \
  template void queue_statistics(cudaStream_t, const ChannelShape&, bool, const BatchNorm&, bool,     \
                                 const StatisticsArrays<T>&, const Affines<compute_type<T>>&, void*); \
  template void queue_gradient_sums(cudaStream_t, const ChannelShape&, bool, const T*, const T*,      \
                                    const FinishGradient<compute_type<T>>&, void*);                   \
  template void queue_relu_gradient_sums(cudaStream_t, const ChannelShape&, bool,                     \
                                         const ReluGradientSums<T, SignReader>&,                      \
                                         const FinishGradient<compute_type<T>>&, void*);              \
  template void queue_relu_gradient_sums(cudaStream_t, const ChannelShape&, bool,                     \
                                         const ReluGradientSums<T, ResultReader<T>>&,                 \
                                         const FinishGradient<compute_type<T>>&, void*);
SYMBIND_INSTANTIATE(float16)
SYMBIND_INSTANTIATE(bfloat16)
SYMBIND_INSTANTIATE(float)
SYMBIND_INSTANTIATE(double)
#undef SYMBIND_INSTANTIATE
template void queue_given_gradient_sums(cudaStream_t, const float*, const float*, int64_t,
                                        const FinishGradient<float>&);
template void queue_given_gradient_sums(cudaStream_t, const double*, const double*, int64_t,
                                        const FinishGradient<double>&);

ChannelShape channel_shape(const BatchNorm& p, const Tensor& data) {
  const BatchNormSize size = size_of(p, data.shape);
  if (data.layout == Layout::channels_last) return {size.outer * size.inner, size.channels, 1};
  return {size.outer, size.channels, size.inner};
}

std::string refuse_data(const BatchNorm& p, const Tensor& data, bool with_signs) {
  if (!is_floating(data.dtype)) return "wants floating numbers";
  if (data.shape.size() == 0) return "an empty array";
  if (block_of(data.layout) > 1) return "a blocked layout";
  const BatchNormSize size = size_of(p, data.shape);
  if (with_signs && data.dtype == DType::float64) return "float64, of which 16 bytes do not fill a byte of signs";
  if (with_signs && size.channels % widest_channels != 0) return "channels that do not fill bytes of signs";
  return size.per_channel() < (int64_t{1} << 31) ? "" : "too many elements in a channel";
}

std::optional<PreferredLayouts> follow_data(const NodeView& node, const Tensor& data, int64_t axis) {
  if (data.layout != Layout::channels_last || data.shape.axis(axis, node.where()) != 1) return std::nullopt;
  PreferredLayouts preferred;
  const auto follow = [&](std::span<const Tensor> tensors, std::vector<Layout>& layouts) {
    for (const Tensor& tensor : tensors)
      layouts.push_back(tensor.shape == data.shape ? Layout::channels_last : Layout::plain);
  };
  follow(node.inputs, preferred.inputs);
  follow(node.outputs, preferred.outputs);
  return preferred;
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

namespace {

template <class P>
constexpr bool has_signs = std::is_same_v<P, BatchNormSigns> || std::is_same_v<P, BatchNormSignsGrad>;
template <class P>
constexpr bool has_add = std::is_same_v<P, BatchNormAddRelu> || std::is_same_v<P, BatchNormSigns>;
template <class P>
constexpr bool is_add_gradient = std::is_same_v<P, BatchNormAddReluGrad> || std::is_same_v<P, BatchNormSignsGrad>;
template <class P>
constexpr bool is_gradient =
    std::is_same_v<P, BatchNormGrad> || std::is_same_v<P, BatchNormReluGrad> ||
    std::is_same_v<P, BatchNormReluGradOutput> || std::is_same_v<P, BatchNormGradFromSums> || is_add_gradient<P>;
// Where the data is among the inputs.
template <class P>
constexpr size_t data_input = is_add_gradient<P> ? 2
                              : is_gradient<P>   ? 1
                                                 : 0;
template <class P>
constexpr bool has_output = std::is_same_v<P, BatchNormReluGradOutput>;  // beside gradients
template <class P>
constexpr bool has_relu = std::is_same_v<P, BatchNormRelu> || std::is_same_v<P, BatchNormReluGrad> || has_output<P>;

BatchNorm norm_of(const BatchNorm& p) { return p; }
BatchNorm norm_of(const BatchNormRecompute& p) { return {.axis = p.axis}; }
BatchNorm norm_of(const BatchNormAddReluRecompute& p) { return {.axis = p.axis}; }

template <class T, class P>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  using C = compute_type<T>;
  const auto p = node.as<P>();
  const ChannelShape shape = channel_shape(p, node.inputs[0]);
  const bool own = uses_batch_statistics(p, node.is_train);
  const size_t sums_at = (Affines<C>::arrays * static_cast<size_t>(shape.channels) * sizeof(C) + 63) / 64 * 64;
  KernelTraits traits{.in_place = {{0, 0}}, .scratch_bytes = sums_at + (own ? piece_bytes(shape, sizeof(C)) : 0)};
  if (has_add<P>) traits.in_place.push_back({3, 0});
  return make_step(
      node,
      [=](const Args& args) {
        const T* const x = args.in<T>(0);
        constexpr size_t states = has_add<P> ? 4 : 3;
        const T* const sum = has_add<P> ? args.in<T>(3) : nullptr;
        T* const y = args.out<T>(0);
        const Affines<C> affines{static_cast<C*>(args.scratch), shape.channels};
        const bool wide = aligned_for_packs(x) && aligned_for_packs(y) && aligned_for_packs(sum);
        const cudaStream_t stream = stream_of(args);
        queue_statistics<T>(stream, shape, wide, p, own,
                            {x, args.in<C>(1), args.in<C>(2), args.state<C>(states), args.state<C>(states + 1),
                             args.out<C>(1), args.out<C>(2)},
                            affines, static_cast<std::byte*>(args.scratch) + sums_at);
        if constexpr (has_add<P>)
          queue_map_with_signs(stream, shape, wide, NormalizeAddRelu<T, Affines<C>>{x, sum, y, affines},
                               has_signs<P> ? args.out<uint8_t>(3) : nullptr);
        else
          queue_channel_map(stream, shape, wide, Normalize<T, has_relu<P>, Affines<C>>{x, y, affines}, MapAfter::sums);
      },
      std::move(traits));
}

BatchNormGivenSums as_given_sums(const BatchNormGivenSums& p) { return p; }
BatchNormGivenSums as_given_sums(const BatchNormSigns& p) { return {p, true, true}; }

template <class T, class P>
std::unique_ptr<Kernel> build_given_sums(const NodeView& node) {
  using C = compute_type<T>;
  const BatchNormGivenSums p = as_given_sums(node.as<P>());
  const ChannelShape shape = channel_shape(p, node.inputs[0]);
  KernelTraits traits{.in_place = {{0, 0}},
                      .scratch_bytes = Affines<C>::arrays * static_cast<size_t>(shape.channels) * sizeof(C)};
  if (p.add) traits.in_place.push_back({5, 0});
  return make_step(
      node,
      [=](const Args& args) {
        const T *const x = args.in<T>(0), *const sum = p.add ? args.in<T>(5) : nullptr;
        T* const y = args.out<T>(0);
        const size_t states = p.add ? 6 : 5;
        const Affines<C> affines{static_cast<C*>(args.scratch), shape.channels};
        const bool wide = aligned_for_packs(x) && aligned_for_packs(y) && aligned_for_packs(sum);
        const cudaStream_t stream = stream_of(args);
        queue_statistics<T>(stream, shape, wide, p, true,
                            {x, args.in<C>(1), args.in<C>(2), args.state<C>(states), args.state<C>(states + 1),
                             args.out<C>(1), args.out<C>(2), args.in<C>(3), args.in<C>(4)},
                            affines, nullptr);
        if (p.add)
          queue_map_with_signs(stream, shape, wide, NormalizeAddRelu<T, Affines<C>>{x, sum, y, affines},
                               has_signs<P> ? args.out<uint8_t>(3) : nullptr);
        else if (p.relu)
          queue_channel_map(stream, shape, wide, Normalize<T, true, Affines<C>>{x, y, affines}, MapAfter::sums);
        else
          queue_channel_map(stream, shape, wide, Normalize<T, false, Affines<C>>{x, y, affines}, MapAfter::sums);
      },
      std::move(traits));
}

template <class T, class P>
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  using C = compute_type<T>;
  constexpr bool relu = has_relu<P>;
  const auto p = node.as<P>();
  bool with_sum = false;
  if constexpr (relu) with_sum = p.with_sum;
  const ChannelShape shape = channel_shape(p, node.inputs[1]);
  const bool own = uses_batch_statistics(p, node.is_train);
  const size_t sums_at =
      (GradientsOfChannels<C>::arrays * static_cast<size_t>(shape.channels) * sizeof(C) + 63) / 64 * 64;
  KernelTraits traits{.in_place = {{0, 0}, {1, 0}}, .scratch_bytes = sums_at + piece_bytes(shape, sizeof(C))};
  if (with_sum) traits.in_place.push_back({6, 0});
  if (has_output<P>) traits.in_place.insert(traits.in_place.end(), {{1, 3}, {0, 3}});
  return make_step(
      node,
      [=](const Args& args) {
        const T *const dy = args.in<T>(0), *const x = args.in<T>(1), *const more = with_sum ? args.in<T>(6) : nullptr;
        const Parameters<C> parameters{args.in<C>(2), relu ? args.in<C>(3) : nullptr, args.in<C>(relu ? 4 : 3),
                                       args.in<C>(relu ? 5 : 4), p.fix_gamma};
        T *const dx = args.out<T>(0), *const y = has_output<P> ? args.out<T>(3) : nullptr;
        const GradientsOfChannels<C> gradients{{static_cast<C*>(args.scratch), shape.channels}};
        const bool wide = all_aligned_for_packs({dy, x, dx, more, y}) && parameters.aligned();
        const FinishGradient<C> finish{
            parameters, args.out<C>(1), args.out<C>(2), gradients, 1 / static_cast<double>(shape.per_channel()), own};
        void* const pieces = static_cast<std::byte*>(args.scratch) + sums_at;
        if constexpr (relu)
          queue_channel_sums<T>(stream_of(args), shape, wide, GradientSums<T, true>{dy, x, parameters}, pieces, finish);
        else
          queue_gradient_sums<T>(stream_of(args), shape, wide, dy, x, finish, pieces);
        const DataGradient<T, relu> map{dy, x, more, dx, gradients};
        if constexpr (has_output<P>)
          queue_channel_map(stream_of(args), shape, wide, DataGradientAndOutput<T>{map, y}, MapAfter::sums);
        else if (dx)
          queue_channel_map(stream_of(args), shape, wide, map, MapAfter::sums);
      },
      std::move(traits));
}

template <class T, class P>
std::unique_ptr<Kernel> build_add_backward(const NodeView& node) {
  using C = compute_type<T>;
  using Results = std::conditional_t<has_signs<P>, SignReader, ResultReader<T>>;
  const auto p = node.as<P>();
  const ChannelShape shape = channel_shape(p, node.inputs[2]);
  const bool own = uses_batch_statistics(p, node.is_train);
  const size_t sums_at =
      (GradientsOfChannels<C>::arrays * static_cast<size_t>(shape.channels) * sizeof(C) + 63) / 64 * 64;
  // The first pass reads all arrays and writes the gradient of the sum, the second reads that and the data.
  KernelTraits traits{.scratch_bytes = sums_at + piece_bytes(shape, sizeof(C))};
  if (has_signs<P>)
    traits.in_place = {{0, 3}, {2, 0}, {0, 0}};
  else
    traits.in_place = {{0, 3}, {1, 3}, {2, 0}, {1, 0}, {0, 0}};
  if (p.two_grads) traits.in_place.push_back({6, 3});
  return make_step(
      node,
      [=](const Args& args) {
        const T *const dy = args.in<T>(0), *const x = args.in<T>(2);
        const T* const more = p.two_grads ? args.in<T>(6) : nullptr;
        Results results{};
        if constexpr (has_signs<P>)
          results = {args.in<uint8_t>(1), shape};
        else
          results = {args.in<T>(1)};
        const Parameters<C> parameters{args.in<C>(3), nullptr, args.in<C>(4), args.in<C>(5), p.fix_gamma};
        T *const dx = args.out<T>(0), *const sum_grad = args.out<T>(3);
        const GradientsOfChannels<C> gradients{{static_cast<C*>(args.scratch), shape.channels}};
        const bool wide = all_aligned_for_packs({dy, args.inputs[1], x, more, dx, sum_grad, parameters.mean});
        queue_relu_gradient_sums<T, Results>(
            stream_of(args), shape, wide, {dy, more, x, results, sum_grad, parameters.mean},
            {parameters, args.out<C>(1), args.out<C>(2), gradients, 1 / static_cast<double>(shape.per_channel()), own},
            static_cast<std::byte*>(args.scratch) + sums_at);
        if (dx)
          queue_channel_map(stream_of(args), shape, wide, DataGradient<T, false>{sum_grad, x, nullptr, dx, gradients},
                            MapAfter::sums_that_write);
      },
      std::move(traits));
}

template <class T>
std::unique_ptr<Kernel> build_from_sums(const NodeView& node) {
  using C = compute_type<T>;
  const auto& p = node.as<BatchNormGradFromSums>();
  const ChannelShape shape = channel_shape(p, node.inputs[1]);
  const bool own = uses_batch_statistics(p, node.is_train);
  return make_step(node,
                   [shape, own, fix_gamma = p.fix_gamma](const Args& args) {
                     const T *const dy = args.in<T>(0), *const x = args.in<T>(1);
                     const Parameters<C> parameters{args.in<C>(2), nullptr, args.in<C>(3), args.in<C>(4), fix_gamma};
                     T* const dx = args.out<T>(0);
                     const C *const sums = args.in<C>(5), *const away_sums = args.in<C>(6);
                     const bool wide = aligned_for_packs(dy) && aligned_for_packs(x) && aligned_for_packs(dx) &&
                                       aligned_for_packs(sums) && aligned_for_packs(away_sums) && parameters.aligned();
                     const cudaStream_t stream = stream_of(args);
                     const FinishGradient<C> finish{
                         parameters, args.out<C>(1), args.out<C>(2), {}, 1 / static_cast<double>(shape.per_channel()),
                         own};
                     if (dx)
                       queue_channel_map(stream, shape, wide,
                                         DataGradientFromSums<T>{{dy, x, nullptr, dx, {}}, finish, sums, away_sums});
                     else
                       store_parameter_gradients<<<blocks_for(shape.channels), block_size, 0, stream>>>(
                           sums, away_sums, shape.channels, finish);
                   },
                   {.in_place = {{0, 0}, {1, 0}}});
}

template <class T>
std::unique_ptr<Kernel> build_recompute(const NodeView& node) {
  using C = compute_type<T>;
  const auto& p = node.as<BatchNormRecompute>();
  const ChannelShape shape = channel_shape(norm_of(p), node.inputs[0]);
  return make_step(
      node,
      [shape, fix_gamma = p.fix_gamma, relu = p.relu](const Args& args) {
        const T* const x = args.in<T>(0);
        T* const y = args.out<T>();
        const Parameters<C> parameters{args.in<C>(1), args.in<C>(2), args.in<C>(3), args.in<C>(4), fix_gamma};
        const bool wide = aligned_for_packs(x) && aligned_for_packs(y) && parameters.aligned();
        if (relu)
          queue_channel_map(stream_of(args), shape, wide, Normalize<T, true, Parameters<C>>{x, y, parameters});
        else
          queue_channel_map(stream_of(args), shape, wide, Normalize<T, false, Parameters<C>>{x, y, parameters});
      },
      {.in_place = {{0, 0}}});
}

template <class T>
std::unique_ptr<Kernel> build_recompute_add_relu(const NodeView& node) {
  using C = compute_type<T>;
  const auto& p = node.as<BatchNormAddReluRecompute>();
  const ChannelShape shape = channel_shape(norm_of(p), node.inputs[0]);
  return make_step(
      node,
      [shape, fix_gamma = p.fix_gamma](const Args& args) {
        const T *const x = args.in<T>(0), *const sum = args.in<T>(3);
        T* const y = args.out<T>();
        const Parameters<C> parameters{args.in<C>(1), args.in<C>(2), args.in<C>(4), args.in<C>(5), fix_gamma};
        const bool wide = all_aligned_for_packs({x, sum, y}) && parameters.aligned();
        queue_channel_map(stream_of(args), shape, wide, NormalizeAddRelu<T, Parameters<C>>{x, sum, y, parameters});
      },
      {.in_place = {{0, 0}, {3, 0}}});
}

template <class P>
std::string refuse(const NodeView& node) {
  return refuse_data(norm_of(node.as<P>()), node.inputs[data_input<P>], has_signs<P>);
}

std::string refuse_signs(const NodeView& node) {
  const auto& p = node.as<BatchNormSigns>();
  if (p.given_sums && !uses_batch_statistics(p, node.is_train)) return "given statistics";
  return refuse<BatchNormSigns>(node);
}

std::string refuse_given_sums(const NodeView& node) {
  const auto& p = node.as<BatchNormGivenSums>();
  if (!uses_batch_statistics(p, node.is_train)) return "given statistics";
  if (p.add && !p.relu) return "a sum without ReLU";
  return refuse<BatchNormGivenSums>(node);
}

std::string refuse_recompute_add_relu(const NodeView& node) {
  return node.as<BatchNormAddReluRecompute>().pair ? "two norms" : refuse<BatchNormAddReluRecompute>(node);
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_same_v<P, BatchNormRecompute>)
      return build_recompute<T>(node);
    else if constexpr (std::is_same_v<P, BatchNormAddReluRecompute>)
      return build_recompute_add_relu<T>(node);
    else if constexpr (std::is_same_v<P, BatchNormGivenSums>)
      return build_given_sums<T, P>(node);
    else if constexpr (std::is_same_v<P, BatchNormSigns>)
      return node.as<P>().given_sums ? build_given_sums<T, P>(node) : build_forward<T, P>(node);
    else if constexpr (std::is_same_v<P, BatchNormGradFromSums>)
      return build_from_sums<T>(node);
    else if constexpr (is_add_gradient<P>)
      return build_add_backward<T, P>(node);
    else if constexpr (is_gradient<P>)
      return build_backward<T, P>(node);
    else
      return build_forward<T, P>(node);
  });
}

template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  return follow_data(node, node.inputs[data_input<P>], node.as<P>().axis);
}

template <class P>
void add(ImplementationTable& table, Tier tier = Tier::plain) {
  table.add<P>({"cuda", refuse<P>, build<P>, preferred_layouts<P>, false, tier});
}

}  // namespace

void add_batch_norm(ImplementationTable& table) {
  add<BatchNorm>(table);
  add<BatchNormGrad>(table);
  add<BatchNormRelu>(table);
  add<BatchNormReluGrad>(table);
  add<BatchNormRecompute>(table);
  // Before the networks that they replace.
  add<BatchNormAddRelu>(table, Tier::specialised);
  add<BatchNormAddReluGrad>(table, Tier::specialised);
  add<BatchNormReluGradOutput>(table, Tier::specialised);
  add<BatchNormGradFromSums>(table, Tier::specialised);
  add<BatchNormSignsGrad>(table, Tier::specialised);
  table.add<BatchNormSigns>(
      {"cuda", refuse_signs, build<BatchNormSigns>, preferred_layouts<BatchNormSigns>, false, Tier::specialised});
  table.add<BatchNormGivenSums>({"cuda", refuse_given_sums, build<BatchNormGivenSums>,
                                 preferred_layouts<BatchNormGivenSums>, false, Tier::specialised});
  table.add<BatchNormAddReluRecompute>({"cuda", refuse_recompute_add_relu, build<BatchNormAddReluRecompute>,
                                        preferred_layouts<BatchNormAddReluRecompute>, false, Tier::specialised});
}

}  // namespace symbind::cuda_backend
