// Shared by device code: the alignment of packs, conversions, and reductions over a block of threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include <cuda_runtime.h>

#include "symbind/backend/convert.h"
#include "symbind/backend/cuda/elements.cuh"
#include "symbind/backend/cuda/grid.h"
#include "symbind/core/dtype.h"

namespace symbind::cuda_backend {

inline bool aligned_for_packs(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }
inline bool all_aligned_for_packs(std::initializer_list<const void*> addresses) {
  return std::all_of(addresses.begin(), addresses.end(), aligned_for_packs);
}

// Converts an element to another type, by the rules of the CPU.
template <class To, class From>
__device__ inline To convert_element(const From& value) {
  constexpr bool to_small = std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>;
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (to_small)
    return store<To>(convert<float>(load(value)));
  else
    return convert<To>(load(value));
}

template <class T>
struct Add {
  __device__ static T identity() { return T(0); }
  __device__ static T combine(T a, T b) { return a + b; }
};
template <class T>
struct Largest {
  __device__ static T identity() { return -std::numeric_limits<T>::infinity(); }
  __device__ static T combine(T a, T b) { return a > b || a != a ? a : b; }  // NaN stays
};

// The combination of one value per thread, in a fixed order; all threads of the block get it. The number of threads is
// a multiple of 32.
template <template <class> class Operation, class T>
__device__ T combine_block(T value) {
  using Op = Operation<T>;
  __shared__ T of_warp[32];
  for (int offset = 16; offset > 0; offset /= 2)
    value = Op::combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  __syncthreads();  // the values of an earlier call have been read
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = lane < warps ? of_warp[lane] : Op::identity();
  for (int offset = 16; offset > 0; offset /= 2)
    value = Op::combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

}  // namespace symbind::cuda_backend
