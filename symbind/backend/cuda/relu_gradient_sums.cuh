// The sums per channel of BatchNorm's gradient, Σ dy and Σ dy·(x - mean), for a dy that passes through a ReLU after a
// sum with the BatchNorm. The gradient of the ReLU is written on the way. It arrives as dy, or as the sum of two
// arrays.
#pragma once

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/functions.h"

namespace symbind::cuda_backend {

// The results of ReLU, for its gradient: see SignReader.
template <class T>
struct ResultReader {
  const T* y;

  template <int width>
  __device__ Pack<T, width> load(int64_t index) const {
    return *reinterpret_cast<const Pack<T, width>*>(y + index);
  }
  template <class C, int width>
  __device__ static C number(const Pack<T, width>& loaded, int k) {
    return cuda_backend::load(loaded.element[k]);
  }
};

template <class T, class Results>
struct ReluGradientSums {
  static constexpr int rows_at_once = 2;
  using Compute = compute_type<T>;
  using OfChannel = Compute;  // the mean
  template <int width>
  struct Packs {
    Pack<T, width> dy, more, x;
    decltype(Results{}.template load<width>(0)) results;
  };
  const T *dy, *more, *x;
  Results results;
  T* sum_grad;
  const Compute* mean;

  __device__ OfChannel at(int64_t channel) const { return mean[channel]; }
  template <int width>
  __device__ Packs<width> load(int64_t index) const {
    Packs<width> packs;
    packs.dy = *reinterpret_cast<const Pack<T, width>*>(dy + index);
    if (more) packs.more = *reinterpret_cast<const Pack<T, width>*>(more + index);
    packs.results = results.template load<width>(index);
    packs.x = *reinterpret_cast<const Pack<T, width>*>(x + index);
    return packs;
  }
  template <int width>
  __device__ void write(int64_t index, Packs<width>& packs) const {
#pragma unroll
    for (int k = 0; k < width; ++k) {
      T total = packs.dy.element[k];
      if (more) total = store<T>(cuda_backend::load(total) + cuda_backend::load(packs.more.element[k]));
      packs.dy.element[k] = store<T>(
          functions::ReluGrad{}(cuda_backend::load(total), Results::template number<Compute>(packs.results, k)));
    }
    *reinterpret_cast<Pack<T, width>*>(sum_grad + index) = packs.dy;
  }
  template <class AnyPacks>
  __device__ PairOf<Compute> operator()(Compute middle, const AnyPacks& packs, int k) const {
    const Compute g = cuda_backend::load(packs.dy.element[k]);
    return {g, g * (cuda_backend::load(packs.x.element[k]) - middle)};
  }
};

}  // namespace symbind::cuda_backend
