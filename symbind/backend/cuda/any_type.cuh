// Arrays whose type is known only at run time, for inputs and results whose type is independent of those that the
// kernel is compiled for: labels, lengths, parameters. All threads take the same branch.
#pragma once

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/core/dtype.h"

namespace symbind::cuda_backend {

// Calls function(std::type_identity<T>) for the C++ type of dtype.
template <class Function>
__device__ inline void visit_any(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::float32:
      return function(std::type_identity<float>{});
    case DType::float64:
      return function(std::type_identity<double>{});
    case DType::float16:
      return function(std::type_identity<float16>{});
    case DType::bfloat16:
      return function(std::type_identity<bfloat16>{});
    case DType::uint8:
      return function(std::type_identity<uint8_t>{});
    case DType::int8:
      return function(std::type_identity<int8_t>{});
    case DType::int32:
      return function(std::type_identity<int32_t>{});
    case DType::int64:
      return function(std::type_identity<int64_t>{});
    case DType::boolean:
      return function(std::type_identity<bool>{});
    case DType::none:
      return;
  }
}

struct AnyInput {
  const void* data = nullptr;
  DType dtype = DType::float32;

  template <class C>
  __device__ C at(int64_t i) const {
    C result{};
    visit_any(dtype,
              [&]<class T>(std::type_identity<T>) { result = convert_element<C>(static_cast<const T*>(data)[i]); });
    return result;
  }
};

struct AnyOutput {
  void* data = nullptr;
  DType dtype = DType::float32;

  template <class C>
  __device__ void set(int64_t i, C value) const {
    visit_any(dtype, [&]<class T>(std::type_identity<T>) { static_cast<T*>(data)[i] = convert_element<T>(value); });
  }
};

}  // namespace symbind::cuda_backend
