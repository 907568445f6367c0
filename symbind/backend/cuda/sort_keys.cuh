// Numbers as order-preserving unsigned keys, for a radix sort. All zeros are one key, and so are all NaNs, which are
// above every number, as they are on a CPU.
#pragma once

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/radix_sort.h"

namespace symbind::cuda_backend {

__device__ inline uint32_t key_of(float value) {
  if (value != value) return ~uint32_t{0};
  const uint32_t sign = uint32_t{1} << 31, bits = value == 0 ? 0 : __float_as_uint(value);
  return bits & sign ? ~bits : bits | sign;
}
__device__ inline uint64_t key_of(double value) {
  if (value != value) return ~uint64_t{0};
  const uint64_t sign = uint64_t{1} << 63;
  const uint64_t bits = value == 0 ? 0 : static_cast<uint64_t>(__double_as_longlong(value));
  return bits & sign ? ~bits : bits | sign;
}
__device__ inline uint32_t key_of(bool value) { return value; }
__device__ inline uint32_t key_of(uint8_t value) { return value; }
__device__ inline uint32_t key_of(int8_t value) { return static_cast<uint32_t>(value + 128); }
__device__ inline uint32_t key_of(int32_t value) {
  return static_cast<uint32_t>(value) ^ uint32_t { 1 } << 31;
}
__device__ inline uint64_t key_of(int64_t value) {
  return static_cast<uint64_t>(value) ^ uint64_t { 1 } << 63;
}

// The keys of an array: which bits of them differ, and the order they are sorted in.
struct Keys {
  AnyArray data;
  bool ascend;

  KeyBits bits() const {  // the last bits of a float from half precision are zero
    const size_t bytes = size_of(data.dtype);
    const int first = data.dtype == DType::float16 ? 13 : data.dtype == DType::bfloat16 ? 16 : 0;
    return {first, bytes == 1 ? 8 : bytes == 8 ? 64 : 32};
  }

  template <class Key>
  __device__ Key at(int64_t i) const {
    const Key key = data.with(i, [](auto value) { return static_cast<Key>(key_of(value)); });
    return ascend ? key : static_cast<Key>(~key);
  }
};

}  // namespace symbind::cuda_backend
