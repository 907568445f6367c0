// Arrays whose elements are functions of their index: out[i] = source(i). Neighbouring elements are written together.
#pragma once

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/divisor.h"

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

// The number of neighbours that one thread writes: a pack of at most four elements.
template <class T>
inline constexpr int generated_width = widest<T> < 4 ? widest<T> : 4;

// Source is a function object that device code can call. It may read the output element that it replaces, but no other.
template <class T, class Source>
void queue_generate(cudaStream_t stream, T* out, int64_t count, const Source& source) {
  if (count == 0) return;
  constexpr int width = generated_width<T>;
  if (reinterpret_cast<uintptr_t>(out) % sizeof(Pack<T, width>) == 0)
    generate<width><<<blocks_for(count / width), block_size, 0, stream>>>(out, count, source);
  else
    generate<1><<<blocks_for(count), block_size, 0, stream>>>(out, count, source);
}

template <int width, class T, class Source>
__global__ void generate_rows(T* out, int64_t count, Divisor length, Source source) {
  const int64_t packs = count / width;
  for (int64_t i = first_element(); i < packs; i += element_step()) {
    Divided at = length.divide(i * width);
    auto row = source.row(at.quotient);
    Pack<T, width> result;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      if (k > 0 && at.rest == length) {
        at = {at.quotient + 1, 0};
        row = source.row(at.quotient);
      }
      result.element[k] = source.element(row, at.rest++);
    }
    reinterpret_cast<Pack<T, width>*>(out)[i] = result;
  }
  if constexpr (width > 1) {
    const int64_t last = packs * width + first_element();
    if (last < count) {
      const Divided at = length.divide(last);
      out[last] = source.element(source.row(at.quotient), at.rest);
    }
  }
}

// The same for an array of rows of `length` elements: out[i] = source.element(source.row(i / length), i % length).
// Neighbours share what source.row() computes. `out` must not be an array that the source reads.
template <class T, class Source>
void queue_generate_rows(cudaStream_t stream, T* out, int64_t count, int64_t length, const Source& source) {
  if (count == 0) return;
  constexpr int width = generated_width<T>;
  if (reinterpret_cast<uintptr_t>(out) % sizeof(Pack<T, width>) == 0)
    generate_rows<width><<<blocks_for(count / width), block_size, 0, stream>>>(out, count, Divisor(length), source);
  else
    generate_rows<1><<<blocks_for(count), block_size, 0, stream>>>(out, count, Divisor(length), source);
}

}  // namespace symbind::cuda_backend
