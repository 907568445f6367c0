// Elements of arrays in device code: which of them a thread works on, several at a time, and their conversion to the
// type they are computed in. Part of the text of programs that NVRTC compiles, as backend/functions.h is.
#pragma once

#include "symbind/backend/freestanding.h"

namespace symbind::cuda_backend {

// The elements this thread processes: for (int64_t i = first_element(); i < count; i += element_step()).
__device__ inline int64_t first_element() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t element_step() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// Neighbouring elements that are read and written together: up to 16 bytes, from an address aligned to their size.
template <class T, int width>
struct alignas(sizeof(T) * width) Pack {
  T element[width];
};
template <class T>
inline constexpr int widest = 16 / static_cast<int>(sizeof(T));

// Converts an element to the type it is computed in, and back. Half precision uses the GPU's own conversions, which
// round as those of core/dtype.h do.
template <class T>
__device__ inline T load(const T& value) {
  return value;
}
__device__ inline float load(const float16& value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
__device__ inline float load(const bfloat16& value) {
  return freestanding::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

template <class T>
struct Store {
  __device__ static T of(T value) { return value; }
};
template <>
struct Store<float16> {
  __device__ static float16 of(float value) {
    float16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
  }
};
template <>
struct Store<bfloat16> {
  __device__ static bfloat16 of(float value) {
    bfloat16 result;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
#else
    const uint32_t bits = freestanding::bit_cast<uint32_t>(value);
    result.bits = static_cast<unsigned short>(value != value ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
    return result;
  }
};
template <class T, class Computed>
__device__ inline T store(Computed value) {
  return Store<T>::of(value);
}

// out[i] = function(in[i]…) for all elements of arrays, `width` of them at a time: the body of a kernel of at least
// `width` threads. Above 1 the addresses must be multiples of a pack's size. An input may be the output.
template <int width, class T, class Function, class... Arrays>
__device__ inline void map_packs(const Function& function, T* out, int64_t count, const Arrays*... in) {
  const auto of_packs = [&](Pack<Arrays, width>... values) {
    Pack<T, width> result;
#pragma unroll
    for (int k = 0; k < width; ++k) result.element[k] = function(values.element[k]...);
    return result;
  };
  const int64_t packs = count / width;
  for (int64_t i = first_element(); i < packs; i += element_step())
    reinterpret_cast<Pack<T, width>*>(out)[i] = of_packs(reinterpret_cast<const Pack<Arrays, width>*>(in)[i]...);
  const int64_t last = packs * width + first_element();
  if (width > 1 && last < count) out[last] = function(in[last]...);
}

}  // namespace symbind::cuda_backend
