// Neighbouring elements of an array in registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "symbind/backend/cuda/elements.cuh"
#include "symbind/core/dtype.h"

namespace symbind::cuda_backend {

// Two numbers, rounded, the first in the lower half of a word.
template <class T>
__device__ uint32_t rounded_pair(float first, float second) {
  uint32_t pair = 0;
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float16>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
#else
  pair = store<T>(first).bits | static_cast<uint32_t>(store<T>(second).bits) << 16;
#endif
  return pair;
}

// Elements that are read and written together, from an address aligned to their size or, if that is less, to 16 bytes.
// Those of 2 bytes are two to a word, as they come from memory: of a Pack the compiler puts each into a register of its
// own wherever control flow meets, and waits there for a load that nothing needs yet.
template <class T, int width>
struct alignas(width < widest<T> ? sizeof(T) * width : 16) Packed {
  using Number = compute_type<T>;
  static constexpr bool in_pairs = sizeof(T) == 2 && width % 2 == 0;
  using Unit = std::conditional_t<in_pairs, uint32_t, T>;
  Unit units[in_pairs ? width / 2 : width];

  Packed() = default;
  __device__ explicit Packed(const Number (&numbers)[width]) {  // rounded
#pragma unroll
    for (int k = 0; k < width; ++k) {
      if constexpr (!in_pairs)
        units[k] = store<T>(numbers[k]);
      else if (k % 2 == 0)
        units[k / 2] = rounded_pair<T>(numbers[k], numbers[k + 1]);
    }
  }
  __device__ Number operator[](int k) const {
    if constexpr (in_pairs) {
      T element;
      element.bits = static_cast<uint16_t>(units[k / 2] >> k % 2 * 16);
      return load(element);
    } else {
      return load(units[k]);
    }
  }
};

template <int width, class T>
__device__ Packed<T, width> load_packed(const T* from) {
  return *reinterpret_cast<const Packed<T, width>*>(from);
}
// Into single numbers. Above one, the address is a multiple of 16 bytes, or of the size of all if that is less.
template <int width, class C>
__device__ void load_numbers(const C* from, C (&to)[width]) {
  constexpr int each = width < widest<C> ? width : widest<C>;
#pragma unroll
  for (int i = 0; i < width; i += each) {
    const auto part = load_packed<each>(from + i);
#pragma unroll
    for (int k = 0; k < each; ++k) to[i + k] = part[k];
  }
}
template <class T, int width>
__device__ void store_packed(T* to, const Packed<T, width>& values) {
  *reinterpret_cast<Packed<T, width>*>(to) = values;
}

}  // namespace symbind::cuda_backend
