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
  __device__ Packed<T, width> load(int64_t index) const {
    return load_packed<width>(y + index);
  }
  template <class C, int width>
  __device__ static C number(const Packed<T, width>& loaded, int k) {
    return loaded[k];
  }
};

template <class T, class Results>
struct ReluGradientSums {
  static constexpr int pack_width = 4, rows_at_once = sizeof(T) == 2 ? 4 : 2;
  using Compute = compute_type<T>;
  using OfChannel = Compute;  // the mean
  template <int width>
  struct Packs {
    Packed<T, width> dy, more, x;
    decltype(Results{}.template load<width>(0)) results;
  };
  const T *dy, *more, *x;
  Results results;
  T* sum_grad;
  const Compute* mean;

  template <int width>
  __device__ void read(int64_t channel, OfChannel (&to)[width]) const {
    load_numbers<width>(mean + channel, to);
  }
  template <int width>
  __device__ Packs<width> load(int64_t index) const {
    Packs<width> packs;
    packs.dy = load_packed<width>(dy + index);
    if (more) packs.more = load_packed<width>(more + index);
    packs.results = results.template load<width>(index);
    packs.x = load_packed<width>(x + index);
    return packs;
  }
  template <int width>
  __device__ void write(int64_t index, Packs<width>& packs) const {
    Compute numbers[width];
    if (more) {
#pragma unroll
      for (int k = 0; k < width; ++k) numbers[k] = packs.dy[k] + packs.more[k];
      packs.dy = Packed<T, width>(numbers);
    }
#pragma unroll
    for (int k = 0; k < width; ++k)
      numbers[k] = functions::ReluGrad{}(packs.dy[k], Results::template number<Compute>(packs.results, k));
    packs.dy = Packed<T, width>(numbers);
    store_packed(sum_grad + index, packs.dy);
  }
  template <class AnyPacks>
  __device__ PairOf<Compute> operator()(Compute middle, const AnyPacks& packs, int k) const {
    const Compute g = packs.dy[k];
    return {g, g * (packs.x[k] - middle)};
  }
};

}  // namespace symbind::cuda_backend
