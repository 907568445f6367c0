// BatchNorm, alone and with ReLU after it, in three passes: sums per channel, one small kernel that turns them into
// statistics, and a map over the elements. The gradient has the same structure. Everything here is memory-bound, so the
// arrays are read up to 16 bytes at a time, and as few times as possible: twice each.
#include "symbind/ops/batch_norm.h"

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/relu_gradient_sums.cuh"
#include "symbind/backend/cuda/relu_signs.cuh"
#include "symbind/backend/cuda/step.h"
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

// The parameters of the map over the elements: y = (x - mean) · scale + shift.
template <class C>
struct Affine {
  C mean, scale, shift;
  __device__ C operator()(C x) const { return (x - mean) * scale + shift; }
};

// Those of all channels, in an array for each.
template <class C>
struct Affines {
  static constexpr int arrays = 3;
  C* numbers;
  int64_t channels;

  __device__ void store(int64_t c, const Affine<C>& affine) const {
    numbers[c] = affine.mean;
    numbers[channels + c] = affine.scale;
    numbers[2 * channels + c] = affine.shift;
  }
  template <int width>
  __device__ void read(int64_t channel, Affine<C> (&to)[width]) const {
    C mean[width], scale[width], shift[width];
    load_numbers<width>(numbers + channel, mean);
    load_numbers<width>(numbers + channels + channel, scale);
    load_numbers<width>(numbers + 2 * channels + channel, shift);
#pragma unroll
    for (int k = 0; k < width; ++k) to[k] = {mean[k], scale[k], shift[k]};
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

// The same from sums of x and of its square in float. The variance is their difference: with m the mean, v the variance
// and e the relative error of the sums, its error is up to 3·(1 + m²/v)·e of it. Where m² is more than 64·v, and where
// the sums are not finite, the block reads the channel's data instead; otherwise the reciprocal deviation is right to
// 98·e, which is less than a rounding of float16 or TF32, 2^-11, for sums that are right to 2^-18. That the sums may be
// of elements before they are rounded changes less: the roundings are far smaller than the deviation.
inline constexpr double most_squared_mean = 64;
inline constexpr int given_channels = 4;  // of a block
template <class T>
__global__ void __launch_bounds__(block_size)
    finish_given_sums(ChannelShape shape, const compute_type<T>* sums, const compute_type<T>* square_sums,
                      Moments<T> moments, FinishStatistics<T> finish) {
  using C = compute_type<T>;
  let_next_start();
  __shared__ bool is_precise[given_channels];
  const int64_t first_channel = int64_t{blockIdx.x} * given_channels;
  if (const int64_t channel = first_channel + threadIdx.x; threadIdx.x < given_channels && channel < shape.channels) {
    const auto of_channel = finish.at(channel);
    const double sum = sums[channel], square_sum = square_sums[channel], pivot = of_channel.pivot;
    const double count = finish.count, share = finish.share, mean = sum * share;
    const double variance = square_sum * share - mean * mean;
    const bool precise = isfinite(variance) && variance * most_squared_mean >= mean * mean;
    if (precise) finish(channel, of_channel, sum - count * pivot, square_sum - 2 * pivot * sum + count * pivot * pivot);
    is_precise[threadIdx.x] = precise;
  }
  __syncthreads();
  for (int i = 0; i < given_channels && first_channel + i < shape.channels; ++i) {
    if (is_precise[i]) continue;
    const int64_t channel = first_channel + i;
    const C pivot = moments.at(channel);
    PairOf<C> own = {C(0), C(0)};
#pragma unroll 8
    for (int64_t e = threadIdx.x; e < shape.per_channel(); e += blockDim.x) {
      const int64_t index = in_channel(shape, channel, static_cast<uint32_t>(e));
      const PairOf<C> term = moments(pivot, moments.template load<1>(index), 0);
      own.first += term.first;
      own.second += term.second;
    }
    const double first = combine_block<Add>(static_cast<double>(own.first));
    const double second = combine_block<Add>(static_cast<double>(own.second));
    if (threadIdx.x == 0) finish(channel, finish.at(channel), first, second);
  }
}

// The same from given statistics.
template <class C>
__global__ void show_statistics(const C* gamma, const C* beta, const C* moving_mean, const C* moving_var, C* mean,
                                C* deviation, Affines<C> affines, int64_t channels, double eps, bool fix_gamma) {
  for (int64_t c = first_element(); c < channels; c += element_step()) {
    const C reciprocal = static_cast<C>(1 / sqrt(static_cast<double>(moving_var[c]) + eps));
    affines.store(c, {moving_mean[c], fix_gamma ? reciprocal : gamma[c] * reciprocal, beta[c]});
    if (mean) mean[c] = moving_mean[c];
    if (deviation) deviation[c] = reciprocal;
  }
}

// The same from a channel's parameters and statistics; the shift is 0 where beta is null.
template <class C>
struct Parameters {
  const C *gamma, *beta, *mean, *deviation;
  bool fix_gamma;

  __device__ Affine<C> at(int64_t c) const {
    return {mean[c], fix_gamma ? deviation[c] : gamma[c] * deviation[c], beta ? beta[c] : C(0)};
  }
  template <int width>
  __device__ void read(int64_t channel, Affine<C> (&to)[width]) const {
    C middle[width], scale[width], slope[width], shift[width];
    load_numbers<width>(mean + channel, middle);
    load_numbers<width>(deviation + channel, scale);
    if (!fix_gamma) load_numbers<width>(gamma + channel, slope);
    if (beta) load_numbers<width>(beta + channel, shift);
#pragma unroll
    for (int k = 0; k < width; ++k)
      to[k] = {middle[k], fix_gamma ? scale[k] : slope[k] * scale[k], beta ? shift[k] : C(0)};
  }
  // May neighbouring channels be read together?
  bool aligned() const {
    return aligned_for_packs(gamma) && aligned_for_packs(beta) && aligned_for_packs(mean) &&
           aligned_for_packs(deviation);
  }
};

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

// Also stores the signs of the results.
template <class T, class Source>
struct NormalizeAddReluSigns : NormalizeAddRelu<T, Source> {
  uint8_t* signs;

  template <int width>
  __device__ void note(int64_t index, const Packed<T, width>& results) const {
    if constexpr (width % signs_per_byte == 0) write_signs(signs, index, results);
  }
};

template <class T, class Source>
void queue_add_relu(cudaStream_t stream, const ChannelShape& shape, bool wide, const NormalizeAddRelu<T, Source>& map,
                    uint8_t* signs, MapAfter after) {
  if (!signs) return queue_channel_map(stream, shape, wide, map, after);
  queue_channel_map(stream, shape, wide, NormalizeAddReluSigns<T, Source>{map, signs}, after);
  if (!is_packed<T>(shape, wide)) queue_signs(stream, shape, map.out, signs);
}

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

// dx = scale · (dy - of_mean - (x - mean) · of_deviation)
template <class C>
struct GradientOfChannel {
  Affine<C> affine;
  C of_mean, of_deviation;
};

// Those of all channels, in an array for each.
template <class C>
struct GradientsOfChannels {
  static constexpr int arrays = Affines<C>::arrays + 2;
  Affines<C> affines;  // the first arrays

  __device__ void store(int64_t c, const GradientOfChannel<C>& of) const {
    affines.store(c, of.affine);
    others()[c] = of.of_mean;
    others()[affines.channels + c] = of.of_deviation;
  }
  template <int width>
  __device__ void read(int64_t channel, GradientOfChannel<C> (&to)[width]) const {
    Affine<C> affine[width];
    C of_mean[width], of_deviation[width];
    affines.template read<width>(channel, affine);
    load_numbers<width>(others() + channel, of_mean);
    load_numbers<width>(others() + affines.channels + channel, of_deviation);
#pragma unroll
    for (int k = 0; k < width; ++k) to[k] = {affine[k], of_mean[k], of_deviation[k]};
  }

 private:
  __device__ C* others() const { return affines.numbers + Affines<C>::arrays * affines.channels; }
};

// With x̂ = (x - mean) / deviation: dbeta = Σ dy, dgamma = Σ dy·x̂, and the gradient through the batch's own statistics
// is (dbeta + x̂·dgamma) / count; given statistics have none.
template <class C>
struct FinishGradient {
  struct OfChannel {
    Affine<C> affine;
    C deviation;
  };
  Parameters<C> parameters;
  C *dgamma, *dbeta;
  GradientsOfChannels<C> gradients;
  double share;  // 1 / count
  bool own;

  __device__ OfChannel at(int64_t c) const { return {parameters.at(c), parameters.deviation[c]}; }
  // In C or in double.
  template <class Number>
  __device__ GradientOfChannel<C> gradient(const OfChannel& given, Number sum, Number sum_away) const {
    if (!own) return {given.affine, C(0), C(0)};
    const Number reciprocal = given.deviation, part = static_cast<Number>(share);
    return {given.affine, static_cast<C>(sum * part), static_cast<C>(sum_away * reciprocal * reciprocal * part)};
  }
  template <class Number>
  __device__ void store_parameters(int64_t c, const OfChannel& given, Number sum, Number sum_away) const {
    if (dbeta) dbeta[c] = static_cast<C>(sum);
    if (dgamma) dgamma[c] = parameters.fix_gamma ? C(0) : static_cast<C>(sum_away * given.deviation);
  }
  __device__ void operator()(int64_t c, const OfChannel& given, double sum, double sum_away) const {
    gradients.store(c, gradient(given, sum, sum_away));
    store_parameters(c, given, sum, sum_away);
  }
};

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
    const Compute result = c.affine.scale * (g - c.of_mean - away * c.of_deviation);
    return more ? result + values.more[k] : result;
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

// ---- Kernels --------------------------------------------------------------------------------------------------------

ChannelShape channel_shape(const BatchNorm& p, const Tensor& data) {
  const BatchNormSize size = size_of(p, data.shape);
  if (data.layout == Layout::channels_last) return {size.outer * size.inner, size.channels, 1};
  return {size.outer, size.channels, size.inner};
}

template <class P>
constexpr bool has_signs = std::is_same_v<P, BatchNormSigns> || std::is_same_v<P, BatchNormSignsGrad>;
template <class P>
constexpr bool has_add = std::is_same_v<P, BatchNormAddRelu> || std::is_same_v<P, BatchNormSigns>;
template <class P>
constexpr bool is_add_gradient = std::is_same_v<P, BatchNormAddReluGrad> || std::is_same_v<P, BatchNormSignsGrad>;
template <class P>
constexpr bool is_gradient = std::is_same_v<P, BatchNormGrad> || std::is_same_v<P, BatchNormReluGrad> ||
                             std::is_same_v<P, BatchNormGradFromSums> || is_add_gradient<P>;
// Where the data is among the inputs.
template <class P>
constexpr size_t data_input = is_add_gradient<P> ? 2
                              : is_gradient<P>   ? 1
                                                 : 0;
template <class P>
constexpr bool has_relu = std::is_same_v<P, BatchNormRelu> || std::is_same_v<P, BatchNormReluGrad>;

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
        const C *const gamma = args.in<C>(1), *const beta = args.in<C>(2);
        constexpr size_t states = has_add<P> ? 4 : 3;
        C *const moving_mean = args.state<C>(states), *const moving_var = args.state<C>(states + 1);
        const T* const sum = has_add<P> ? args.in<T>(3) : nullptr;
        T* const y = args.out<T>(0);
        C *const mean = args.out<C>(1), *const deviation = args.out<C>(2);
        const Affines<C> affines{static_cast<C*>(args.scratch), shape.channels};
        const bool wide = aligned_for_packs(x) && aligned_for_packs(y) && aligned_for_packs(sum);
        const cudaStream_t stream = stream_of(args);
        const MapAfter after = own ? MapAfter::sums : MapAfter::any;
        const auto count = static_cast<double>(shape.per_channel());
        if (own)
          queue_channel_sums<T>(
              stream, shape, wide, Moments<T>{x, shape.inner}, static_cast<std::byte*>(args.scratch) + sums_at,
              FinishStatistics<T>{x, gamma, beta, moving_mean, moving_var, mean, deviation, affines, shape.inner, count,
                                  1 / count, p.eps, static_cast<float>(p.momentum), p.fix_gamma});
        else
          show_statistics<<<blocks_for(shape.channels), block_size, 0, stream>>>(
              gamma, beta, moving_mean, moving_var, mean, deviation, affines, shape.channels, p.eps, p.fix_gamma);
        if constexpr (has_add<P>)
          queue_add_relu(stream, shape, wide, NormalizeAddRelu<T, Affines<C>>{x, sum, y, affines},
                         has_signs<P> ? args.out<uint8_t>(3) : nullptr, after);
        else
          queue_channel_map(stream, shape, wide, Normalize<T, has_relu<P>, Affines<C>>{x, y, affines}, after);
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
        const auto count = static_cast<double>(shape.per_channel());
        const auto blocks = static_cast<unsigned>(divide_up(shape.channels, given_channels));
        finish_given_sums<T><<<blocks, block_size, 0, stream>>>(
            shape, args.in<C>(3), args.in<C>(4), Moments<T>{x, shape.inner},
            FinishStatistics<T>{x, args.in<C>(1), args.in<C>(2), args.state<C>(states), args.state<C>(states + 1),
                                args.out<C>(1), args.out<C>(2), affines, shape.inner, count, 1 / count, p.eps,
                                static_cast<float>(p.momentum), p.fix_gamma});
        if (p.add)
          queue_add_relu(stream, shape, wide, NormalizeAddRelu<T, Affines<C>>{x, sum, y, affines},
                         has_signs<P> ? args.out<uint8_t>(3) : nullptr, MapAfter::sums);
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
  return make_step(
      node,
      [=](const Args& args) {
        const T *const dy = args.in<T>(0), *const x = args.in<T>(1), *const more = with_sum ? args.in<T>(6) : nullptr;
        const Parameters<C> parameters{args.in<C>(2), relu ? args.in<C>(3) : nullptr, args.in<C>(relu ? 4 : 3),
                                       args.in<C>(relu ? 5 : 4), p.fix_gamma};
        T* const dx = args.out<T>(0);
        const GradientsOfChannels<C> gradients{{static_cast<C*>(args.scratch), shape.channels}};
        const bool wide = aligned_for_packs(dy) && aligned_for_packs(x) && aligned_for_packs(dx) &&
                          aligned_for_packs(more) && parameters.aligned();
        queue_channel_sums<T>(stream_of(args), shape, wide, GradientSums<T, relu>{dy, x, parameters},
                              static_cast<std::byte*>(args.scratch) + sums_at,
                              FinishGradient<C>{parameters, args.out<C>(1), args.out<C>(2), gradients,
                                                1 / static_cast<double>(shape.per_channel()), own});
        if (dx)
          queue_channel_map(stream_of(args), shape, wide, DataGradient<T, relu>{dy, x, more, dx, gradients},
                            MapAfter::sums);
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
        bool wide = true;
        for (const void* array :
             std::initializer_list<const void*>{dy, args.inputs[1], x, more, dx, sum_grad, parameters.mean})
          wide &= aligned_for_packs(array);
        queue_channel_sums<T>(stream_of(args), shape, wide,
                              ReluGradientSums<T, Results>{dy, more, x, results, sum_grad, parameters.mean},
                              static_cast<std::byte*>(args.scratch) + sums_at,
                              FinishGradient<C>{parameters, args.out<C>(1), args.out<C>(2), gradients,
                                                1 / static_cast<double>(shape.per_channel()), own});
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
  const ChannelShape shape = channel_shape({.axis = p.axis}, node.inputs[0]);
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

BatchNormSize size_of(const BatchNormRecompute& p, const Shape& data) {
  return symbind::size_of({.axis = p.axis}, data);
}

template <class P>
std::string refuse(const NodeView& node) {
  const Tensor& data = node.inputs[data_input<P>];
  if (!is_floating(data.dtype)) return "wants floating numbers";
  if (data.shape.size() == 0) return "an empty array";
  if (block_of(data.layout) > 1) return "a blocked layout";
  const BatchNormSize size = size_of(node.as<P>(), data.shape);
  if (has_signs<P> && data.dtype == DType::float64) return "float64, of which 16 bytes do not fill a byte of signs";
  if (has_signs<P> && size.channels % widest_channels != 0) return "channels that do not fill bytes of signs";
  return size.per_channel() < (int64_t{1} << 31) ? "" : "too many elements in a channel";
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

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_same_v<P, BatchNormRecompute>)
      return build_recompute<T>(node);
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

// Follows the data; statistics and parameters have one axis and no layout.
template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  const Tensor& data = node.inputs[data_input<P>];
  if (data.layout != Layout::channels_last) return std::nullopt;
  if (data.shape.axis(node.as<P>().axis, node.where()) != 1) return std::nullopt;
  PreferredLayouts preferred;
  const auto follow = [&](std::span<const Tensor> tensors, std::vector<Layout>& layouts) {
    for (const Tensor& tensor : tensors)
      layouts.push_back(tensor.shape == data.shape ? Layout::channels_last : Layout::plain);
  };
  follow(node.inputs, preferred.inputs);
  follow(node.outputs, preferred.outputs);
  return preferred;
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
  add<BatchNormGradFromSums>(table, Tier::specialised);
  add<BatchNormSignsGrad>(table, Tier::specialised);
  table.add<BatchNormSigns>(
      {"cuda", refuse_signs, build<BatchNormSigns>, preferred_layouts<BatchNormSigns>, false, Tier::specialised});
  table.add<BatchNormGivenSums>({"cuda", refuse_given_sums, build<BatchNormGivenSums>,
                                 preferred_layouts<BatchNormGivenSums>, false, Tier::specialised});
}

}  // namespace symbind::cuda_backend
