// What the kernels of one BatchNorm (batch_norm.cu) and of the sum of two (batch_norm_pair.cu) share: the numbers per
// channel, and the passes that compute them from sums over the channels. The kernels of these passes are in
// batch_norm.cu.
#pragma once

#include <optional>
#include <string>

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/relu_gradient_sums.cuh"
#include "symbind/ops/batch_norm.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

// ---- Forward --------------------------------------------------------------------------------------------------------

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

// The arrays from which the map is derived, and those that are computed with it: mean and deviation, the reciprocal
// standard deviation, may be null. The sums of the data's channels and of their squares are null where not given.
template <class T>
struct StatisticsArrays {
  using C = compute_type<T>;
  const T* x;
  const C *gamma, *beta;
  C *moving_mean, *moving_var, *mean, *deviation;
  const C *sums = nullptr, *square_sums = nullptr;
};

// Computes the map of every channel: from given sums, else from those of a pass over the data, for which `scratch` has
// piece_bytes(), or with `own` false from the moving statistics. The map may be queued as MapAfter::sums.
template <class T>
void queue_statistics(cudaStream_t stream, const ChannelShape& shape, bool wide, const BatchNorm& params, bool own,
                      const StatisticsArrays<T>& arrays, const Affines<compute_type<T>>& affines, void* scratch);

// ---- Gradient -------------------------------------------------------------------------------------------------------

// dx = scale · (dy - of_mean - (x - mean) · of_deviation)
template <class C>
struct GradientOfChannel {
  Affine<C> affine;
  C of_mean, of_deviation;

  __device__ C operator()(C dy, C away) const { return affine.scale * (dy - of_mean - away * of_deviation); }
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

// Each of these calls `finish` with the sums of every channel, Σ dy and Σ dy·(x - mean): given ones, those of a pass
// over dy and x, or those of a pass over a dy that goes through ReLU. The passes need piece_bytes() of scratch. A map
// may be queued as MapAfter::sums after the first two, and as MapAfter::sums_that_write after the third.
template <class C>
void queue_given_gradient_sums(cudaStream_t stream, const C* sums, const C* away_sums, int64_t channels,
                               const FinishGradient<C>& finish);
template <class T>
void queue_gradient_sums(cudaStream_t stream, const ChannelShape& shape, bool wide, const T* dy, const T* x,
                         const FinishGradient<compute_type<T>>& finish, void* scratch);
template <class T, class Results>
void queue_relu_gradient_sums(cudaStream_t stream, const ChannelShape& shape, bool wide,
                              const ReluGradientSums<T, Results>& terms, const FinishGradient<compute_type<T>>& finish,
                              void* scratch);

// ---- Nodes ----------------------------------------------------------------------------------------------------------

ChannelShape channel_shape(const BatchNorm& params, const Tensor& data);
// Why the kernels do not accept such data; empty if they do.
std::string refuse_data(const BatchNorm& params, const Tensor& data, bool with_signs);
// All arrays of the data's shape follow its layout; statistics and parameters have one axis and no layout.
std::optional<PreferredLayouts> follow_data(const NodeView& node, const Tensor& data, int64_t axis);

}  // namespace symbind::cuda_backend
