// The kernel of the pass over the result of a convolution: conv_finish.h.
#pragma once

#include "symbind/backend/cuda/channels.cuh"

namespace symbind::cuda_backend {

// out = function(out + bias + more), null operands are skipped.
template <class T, class Function>
struct FinishOutput {
  static constexpr int rows_at_once = 2;
  using Element = T;
  using OfChannel = compute_type<T>;
  template <int width>
  struct Packs {
    Packed<T, width> out, more;
  };
  T* out;
  const T *bias, *more;
  Function function;

  __device__ OfChannel at(int64_t channel) const {
    return bias ? cuda_backend::load(bias[channel]) : compute_type<T>(0);
  }
  template <int width>
  __device__ Packs<width> load(int64_t index) const {
    Packs<width> packs;
    packs.out = load_packed<width>(out + index);
    if (more) packs.more = load_packed<width>(more + index);
    return packs;
  }
  template <class AnyPacks>
  __device__ compute_type<T> operator()(OfChannel shift, const AnyPacks& packs, int k) const {
    const compute_type<T> value = packs.out[k] + shift;
    return function(more ? value + packs.more[k] : value);
  }
};

}  // namespace symbind::cuda_backend
