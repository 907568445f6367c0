// Signs of ReLU's results (ops/relu_signs.h) in device code.
#pragma once

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/relu_signs.h"
#include "symbind/ops/relu_signs.h"

namespace symbind::cuda_backend {

// The byte with the sign of an element. Unsigned numbers are divided by a shift.
__device__ inline int64_t byte_of_sign(int64_t index) {
  return static_cast<int64_t>(static_cast<uint64_t>(index) / uint64_t{signs_per_byte});
}

// The signs of an array. Elements are named by their index in memory.
struct SignReader {
  const uint8_t* signs;
  ChannelShape shape;

  // Those of `width` elements from this one on, the first in the lowest bits.
  template <int width>
  __device__ unsigned load(int64_t index) const {
    if constexpr (width == 2 * signs_per_byte)
      return *reinterpret_cast<const uint16_t*>(signs + byte_of_sign(index));
    else if constexpr (width == signs_per_byte)
      return signs[byte_of_sign(index)];
    else
      return load_one(channels_last_index(index));
  }
  template <class C>
  __device__ static C number(unsigned loaded, int k) {
    return number_of_sign<C>(loaded >> k * bits_per_sign & sign_mask);
  }

 private:
  __device__ unsigned load_one(int64_t place) const {
    return signs[place / signs_per_byte] >> place % signs_per_byte * bits_per_sign;
  }
  __device__ int64_t channels_last_index(int64_t index) const {
    if (shape.last()) return index;
    const int64_t inside = index % shape.inner, rest = index / shape.inner;
    return (rest / shape.channels * shape.inner + inside) * shape.channels + rest % shape.channels;
  }
};

// The signs of neighbouring elements, to be written together.
template <class T, int width>
__device__ void write_signs(uint8_t* signs, int64_t index, const Packed<T, width>& values) {
  static_assert(width == signs_per_byte || width == 2 * signs_per_byte);
  unsigned all = 0;
  if constexpr (values.in_pairs && width == 8) {
    all = signs_of_eight<T>(values.units);
  } else {
#pragma unroll
    for (int k = 0; k < width; ++k) all |= sign_of(values[k]) << k * bits_per_sign;
  }
  uint8_t* const target = signs + byte_of_sign(index);
  if constexpr (width == signs_per_byte)
    *target = static_cast<uint8_t>(all);
  else
    *reinterpret_cast<uint16_t*>(target) = static_cast<uint16_t>(all);
}

// Where a map over the channels cannot write them.
template <class T>
__global__ void find_signs(const T* values, uint8_t* signs, ChannelShape shape, int64_t bytes) {
  for (int64_t byte = first_element(); byte < bytes; byte += element_step()) {
    const int64_t row = byte * signs_per_byte / shape.channels, channel = byte * signs_per_byte % shape.channels;
    const T* const first = values + (row / shape.inner * shape.channels + channel) * shape.inner + row % shape.inner;
    unsigned all = 0;
    for (int k = 0; k < signs_per_byte; ++k) all |= sign_of(load(first[k * shape.inner])) << k * bits_per_sign;
    signs[byte] = static_cast<uint8_t>(all);
  }
}
template <class T>
void queue_signs(cudaStream_t stream, const ChannelShape& shape, const T* values, uint8_t* signs) {
  const int64_t bytes = shape.size() / signs_per_byte;
  if (bytes > 0) find_signs<<<blocks_for(bytes), block_size, 0, stream>>>(values, signs, shape, bytes);
}

// A map over channels (channels.cuh) that also stores the signs of its results.
template <class Map>
struct WithSigns : Map {
  uint8_t* signs;

  template <int width>
  __device__ void note(int64_t index, const Packed<typename Map::Element, width>& results) const {
    if constexpr (width % signs_per_byte == 0) write_signs(signs, index, results);
  }
};
// queue_channel_map() after sums, with signs where they are not null.
template <class Map>
void queue_map_with_signs(cudaStream_t stream, const ChannelShape& shape, bool wide, const Map& map, uint8_t* signs) {
  if (!signs) return queue_channel_map(stream, shape, wide, map, MapAfter::sums);
  queue_channel_map(stream, shape, wide, WithSigns<Map>{map, signs}, MapAfter::sums);
  if (!is_packed<typename Map::Element>(shape, wide)) queue_signs(stream, shape, map.out, signs);
}

}  // namespace symbind::cuda_backend
