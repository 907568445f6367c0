// Numbers stored in arrays whose element type is known when a kernel runs only (see any_array.cuh).
#pragma once

#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {

// By the rules of Cast.
template <class Value>
__device__ inline void store_any(void* to, DType dtype, int64_t at, Value value) {
  const auto store_as = [&]<class T>(T*) { static_cast<T*>(to)[at] = convert_element<T>(value); };
  switch (dtype) {
    case DType::float32:
      return store_as(static_cast<float*>(nullptr));
    case DType::float64:
      return store_as(static_cast<double*>(nullptr));
    case DType::float16:
      return store_as(static_cast<float16*>(nullptr));
    case DType::bfloat16:
      return store_as(static_cast<bfloat16*>(nullptr));
    case DType::uint8:
      return store_as(static_cast<uint8_t*>(nullptr));
    case DType::int8:
      return store_as(static_cast<int8_t*>(nullptr));
    case DType::int32:
      return store_as(static_cast<int32_t*>(nullptr));
    case DType::int64:
      return store_as(static_cast<int64_t*>(nullptr));
    default:
      return store_as(static_cast<bool*>(nullptr));
  }
}

}  // namespace symbind::cuda_backend
