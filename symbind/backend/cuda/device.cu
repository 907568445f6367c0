// Device code of fill and cast.
#include "symbind/backend/cuda/device.h"

#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {
namespace {

// Neighbouring elements that a thread reads and writes together where both addresses allow it: up to 16 bytes of the
// larger type.
template <class To, class From>
inline constexpr int cast_width = std::min(widest<To>, widest<From>);

template <int width, class T>
__global__ void fill_elements(T* dst, int64_t count, T value) {
  map_packs<width>([=] { return value; }, dst, count);
}

// `packs`: are both addresses multiples of a pack's size? One kernel has both loops, since there are many pairs of
// types.
template <class To, class From>
__global__ void cast_elements(To* dst, const From* src, int64_t count, bool packs) {
  const auto cast = [](const From& value) { return convert_element<To>(value); };
  if (packs)
    map_packs<cast_width<To, From>>(cast, dst, count, src);
  else
    map_packs<1>(cast, dst, count, src);
}

// Types of the same size share a kernel: only the bits matter.
template <class Bits>
void fill_bits(cudaStream_t stream, void* dst, int64_t count, Bits bits) {
  auto* const out = static_cast<Bits*>(dst);
  if (aligned_for_packs(dst))
    fill_elements<widest<Bits>><<<blocks_for(count / widest<Bits>), block_size, 0, stream>>>(out, count, bits);
  else
    fill_elements<1><<<blocks_for(count), block_size, 0, stream>>>(out, count, bits);
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
      if constexpr (!std::is_same_v<To, From>) {
        constexpr int width = cast_width<To, From>;
        const bool packs = reinterpret_cast<uintptr_t>(dst) % (width * sizeof(To)) == 0 &&
                           reinterpret_cast<uintptr_t>(src) % (width * sizeof(From)) == 0;
        cast_elements<<<blocks_for(packs ? count / width : count), block_size, 0, stream>>>(
            static_cast<To*>(dst), static_cast<const From*>(src), count, packs);
      }
    });
  });
}

}  // namespace symbind::cuda_backend
