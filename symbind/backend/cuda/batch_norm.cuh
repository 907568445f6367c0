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

template <class C>
struct Affines {
  const Affine<C>* affine;
  __device__ Affine<C> at(int64_t c) const { return affine[c]; }
};
// The same from a channel's parameters and statistics; the shift is 0 where beta is null.
template <class C>
struct Parameters {
  const C *gamma, *beta, *mean, *deviation;
  bool fix_gamma;

  __device__ Affine<C> at(int64_t c) const {
    return {mean[c], fix_gamma ? deviation[c] : gamma[c] * deviation[c], beta ? beta[c] : C(0)};
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
// piece_bytes(), or with `own` false from the moving statistics. The next kernel is queued by launch_after_ours().
template <class T>
void queue_statistics(cudaStream_t stream, const ChannelShape& shape, bool wide, const BatchNorm& params, bool own,
                      const StatisticsArrays<T>& arrays, Affine<compute_type<T>>* affine, void* scratch);

// ---- Gradient -------------------------------------------------------------------------------------------------------

// dx = scale · (dy - of_mean - (x - mean) · of_deviation)
template <class C>
struct GradientOfChannel {
  Affine<C> affine;
  C of_mean, of_deviation;

  __device__ C operator()(C dy, C away) const { return affine.scale * (dy - of_mean - away * of_deviation); }
};

// With x̂ = (x - mean) / deviation: dbeta = Σ dy, dgamma = Σ dy·x̂, and the gradient through the batch's own statistics
// is (dbeta + x̂·dgamma) / count; given statistics have none.
template <class C>
struct FinishGradient {
  Parameters<C> parameters;
  C *dgamma, *dbeta;
  GradientOfChannel<C>* of_channel;
  double count;
  bool own;

  __device__ void operator()(int64_t c, double sum, double sum_away) const {
    const double reciprocal = parameters.deviation[c], slope = sum_away * reciprocal;
    if (dbeta) dbeta[c] = static_cast<C>(sum);
    if (dgamma) dgamma[c] = parameters.fix_gamma ? C(0) : static_cast<C>(slope);
    of_channel[c] = {parameters.at(c), own ? static_cast<C>(sum / count) : C(0),
                     own ? static_cast<C>(slope * reciprocal / count) : C(0)};
  }
};

// Each of these calls `finish` with the sums of every channel, Σ dy and Σ dy·(x - mean): given ones, those of a pass
// over dy and x, or those of a pass over a dy that goes through ReLU. The passes need piece_bytes() of scratch. The
// next kernel is queued by launch_after_ours().
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
