// Arrays whose elements are functions of their index: out[i] = source(i). Neighbouring elements are written together.
#pragma once

#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {

template <int width, class T, class Source>
__global__ void generate(T* out, int64_t count, Source source) {
  const int64_t packs = count / width;
  for (int64_t i = first_element(); i < packs; i += element_step()) {
    Pack<T, width> result;
#pragma unroll
    for (int k = 0; k < width; ++k) result.element[k] = source(i * width + k);
    reinterpret_cast<Pack<T, width>*>(out)[i] = result;
  }
  if constexpr (width > 1) {
    const int64_t last = packs * width + first_element();
    if (last < count) out[last] = source(last);
  }
}

// Source is a function object that device code can call. It may read the output element that it replaces, but no other.
template <class T, class Source>
void queue_generate(cudaStream_t stream, T* out, int64_t count, const Source& source) {
  if (count == 0) return;
  constexpr int width = widest<T> < 4 ? widest<T> : 4;
  if (reinterpret_cast<uintptr_t>(out) % sizeof(Pack<T, width>) == 0)
    generate<width><<<blocks_for(count / width), block_size, 0, stream>>>(out, count, source);
  else
    generate<1><<<blocks_for(count), block_size, 0, stream>>>(out, count, source);
}

}  // namespace symbind::cuda_backend
