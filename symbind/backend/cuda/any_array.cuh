// Indices, conditions and lengths of any type (see any_type.cuh): separate kernels would multiply with the types of the
// data.
#pragma once

#include "symbind/backend/convert.h"
#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/divisor.h"

namespace symbind::cuda_backend {

struct AnyArray {
  const void* data;
  DType dtype;

  // function(element i), where half precision becomes float.
  template <class Function>
  __device__ auto with(int64_t i, const Function& function) const {
    decltype(function(0.0f)) result{};
    visit_any(dtype, [&]<class T>(std::type_identity<T>) { result = function(load(static_cast<const T*>(data)[i])); });
    return result;
  }

  // Fractions are truncated; values beyond int64 saturate, so that clipping finds the nearest index.
  __device__ int64_t index(int64_t i) const {
    return with(i, [](auto value) { return index_of(value); });
  }
  // The same by the rules of Cast.
  __device__ int64_t whole(int64_t i) const {
    return with(i, [](auto value) { return convert<int64_t>(value); });
  }
  __device__ bool truth(int64_t i) const {
    return with(i, [](auto value) { return value != decltype(value)(0); });
  }
};

// An element of a type as a unit of its size (backend/units.h), for kernels that only move elements.
inline uint64_t bits_of(double value, DType dtype) {
  return visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    const T element = convert<T>(value);
    if constexpr (sizeof(T) == 1)
      return static_cast<uint64_t>(std::bit_cast<uint8_t>(element));
    else if constexpr (sizeof(T) == 2)
      return static_cast<uint64_t>(std::bit_cast<uint16_t>(element));
    else if constexpr (sizeof(T) == 4)
      return static_cast<uint64_t>(std::bit_cast<uint32_t>(element));
    else
      return std::bit_cast<uint64_t>(element);
  });
}

// Numbers that are not negative, divided; by 32 bits where they fit, which is several times faster. A Divisor is faster
// still where the divisor is known on the host.
__device__ inline Divided divided(int64_t number, int64_t by) {
  if ((number | by) >> 32 == 0) {
    const auto small = static_cast<uint32_t>(number), divisor = static_cast<uint32_t>(by);
    const uint32_t quotient = small / divisor;
    return {quotient, small - quotient * divisor};
  }
  const int64_t quotient = number / by;
  return {quotient, number - quotient * by};
}

}  // namespace symbind::cuda_backend
