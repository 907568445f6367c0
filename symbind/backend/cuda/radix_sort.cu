#include "symbind/backend/cuda/radix_sort.h"

#include <cub/device/device_radix_sort.cuh>

#include "symbind/backend/cuda/check.h"

namespace symbind::cuda_backend {

template <class Key>
size_t radix_sort_bytes(int64_t count, KeyBits bits) {
  size_t bytes = 0;
  Key* const keys = nullptr;
  uint32_t* const numbers = nullptr;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, keys, numbers, numbers, static_cast<int>(count),
                                        bits.first, bits.end),
        "asking for the memory of a sort");
  return bytes;
}

template <class Key>
void queue_radix_sort(cudaStream_t stream, void* memory, size_t bytes, const Key* keys, Key* sorted_keys,
                      const uint32_t* numbers, uint32_t* sorted_numbers, int64_t count, KeyBits bits) {
  check(cub::DeviceRadixSort::SortPairs(memory, bytes, keys, sorted_keys, numbers, sorted_numbers,
                                        static_cast<int>(count), bits.first, bits.end, stream),
        "queueing a sort");
}

template size_t radix_sort_bytes<uint32_t>(int64_t, KeyBits);
template size_t radix_sort_bytes<uint64_t>(int64_t, KeyBits);
template void queue_radix_sort<uint32_t>(cudaStream_t, void*, size_t, const uint32_t*, uint32_t*, const uint32_t*,
                                         uint32_t*, int64_t, KeyBits);
template void queue_radix_sort<uint64_t>(cudaStream_t, void*, size_t, const uint64_t*, uint64_t*, const uint32_t*,
                                         uint32_t*, int64_t, KeyBits);

}  // namespace symbind::cuda_backend
