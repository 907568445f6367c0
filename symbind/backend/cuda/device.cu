// Device code of fill and cast.
#include "symbind/backend/cuda/device.h"

#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {
namespace {

template <class T>
__global__ void fill_elements(T* dst, int64_t count, T value) {
  for (int64_t i = first_element(); i < count; i += element_step()) dst[i] = value;
}

template <class To, class From>
__global__ void cast_elements(To* dst, const From* src, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) dst[i] = convert_element<To>(src[i]);
}

// Types of one size are filled alike: only the bits matter.
template <class Bits>
void fill_bits(cudaStream_t stream, void* dst, int64_t count, Bits bits) {
  fill_elements<<<blocks_for(count), block_size, 0, stream>>>(static_cast<Bits*>(dst), count, bits);
}

}  // namespace

void queue_fill(cudaStream_t stream, void* dst, DType dtype, int64_t count, double value) {
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    const T element = convert<T>(value);
    if constexpr (sizeof(T) == 1)
      cudaMemsetAsync(dst, std::bit_cast<uint8_t>(element), static_cast<size_t>(count), stream);
    else if constexpr (sizeof(T) == 2)
      fill_bits(stream, dst, count, std::bit_cast<uint16_t>(element));
    else if constexpr (sizeof(T) == 4)
      fill_bits(stream, dst, count, std::bit_cast<uint32_t>(element));
    else
      fill_bits(stream, dst, count, std::bit_cast<uint64_t>(element));
  });
}

void queue_cast(cudaStream_t stream, void* dst, DType to, const void* src, DType from, int64_t count) {
  visit_dtype(to, [&]<class To>(std::type_identity<To>) {
    visit_dtype(from, [&]<class From>(std::type_identity<From>) {
      if constexpr (!std::is_same_v<To, From>)
        cast_elements<<<blocks_for(count), block_size, 0, stream>>>(static_cast<To*>(dst),
                                                                    static_cast<const From*>(src), count);
    });
  });
}

}  // namespace symbind::cuda_backend
