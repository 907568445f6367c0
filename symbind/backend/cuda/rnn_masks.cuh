// Masks of the dropout between recurrent layers.
#pragma once

#include "symbind/backend/cuda/each_element.cuh"
#include "symbind/core/random.h"

namespace symbind::cuda_backend {

// Each thread draws a block of four numbers, those of backend/cpu/dropout.h.
template <class T>
struct DrawMask {
  T* mask;
  int64_t count;
  const RandomCursor* cursor;
  uint64_t slot;
  int64_t first_block;
  float keep;
  compute_type<T> scale;

  __device__ void operator()(int64_t block) const {
    const T kept = store<T>(scale), dropped = store<T>(compute_type<T>(0));
    const PhiloxBlock random = philox(cursor->key, cursor->draw + slot, static_cast<uint64_t>(first_block + block));
    for (int word = 0; word < 4 && block * 4 + word < count; ++word)
      mask[block * 4 + word] = unit_float(random.words[word]) < keep ? kept : dropped;
  }
};

// The mask of the input of a layer above the first. Each layer has separate random numbers.
template <class T>
void queue_draw_mask(cudaStream_t stream, const RandomCursor* cursor, uint64_t slot, double p, int64_t layer, T* mask,
                     int64_t count) {
  const int64_t blocks = (count + 3) / 4;
  queue_each_element(stream, blocks,
                     DrawMask<T>{mask, count, cursor, slot, (layer - 1) * blocks, static_cast<float>(1 - p),
                                 static_cast<compute_type<T>>(1 / (1 - p))});
}

template <class T>
struct ApplyMask {
  const T *x, *mask;
  T* y;
  __device__ void operator()(int64_t i) const { y[i] = store<T>(load(x[i]) * load(mask[i])); }
};
template <class T>
void queue_apply_mask(cudaStream_t stream, const T* x, const T* mask, T* y, int64_t count) {
  queue_each_element(stream, count, ApplyMask<T>{x, mask, y});
}

}  // namespace symbind::cuda_backend
