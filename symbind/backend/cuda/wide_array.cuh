// Arrays of any type that is computed in C (functions::Wide, backend/wide.h): one kernel per C instead of one per type.
// All threads take the same branch.
#pragma once

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/wide.h"

namespace symbind::cuda_backend {

template <class C>
struct WideArray {
  void* data;
  DType dtype;

  constexpr WideArray(const void* address, DType type) : data(const_cast<void*>(address)), dtype(type) {}

  __device__ C operator[](int64_t i) const {
    C value{};
    with_type([&]<class T>(T* array) { value = static_cast<C>(load(array[i])); });
    return value;
  }
  __device__ void set(int64_t i, C value) const {
    with_type([&]<class T>(T* array) { array[i] = convert_element<T>(value); });
  }

 private:
  template <class Function>
  __device__ void with_type(const Function& function) const {
    if constexpr (std::is_same_v<C, float>) {
      if (dtype == DType::float16) return function(static_cast<float16*>(data));
      if (dtype == DType::bfloat16) return function(static_cast<bfloat16*>(data));
    } else if constexpr (std::is_same_v<C, int32_t>) {
      if (dtype == DType::int8) return function(static_cast<int8_t*>(data));
      if (dtype == DType::uint8) return function(static_cast<uint8_t*>(data));
      if (dtype == DType::boolean) return function(static_cast<bool*>(data));
    }
    function(static_cast<C*>(data));
  }
};

// For operators of floating numbers: calls function with the type they are computed in.
template <class Function>
decltype(auto) visit_computed(DType dtype, Function&& function) {
  return dtype == DType::float64 ? function(std::type_identity<double>{}) : function(std::type_identity<float>{});
}

}  // namespace symbind::cuda_backend
