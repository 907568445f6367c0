// Pairs of a key and a number sorted by some bits of the keys; the sort is stable. All work is queued.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

// The bits [first, end) of the keys decide.
struct KeyBits {
  int first, end;
};

// The memory that a sort needs. The device must be the current one.
template <class Key>
size_t radix_sort_bytes(int64_t count, KeyBits bits);

// For keys of type uint32_t and uint64_t, fewer than 2^31 of them.
template <class Key>
void queue_radix_sort(cudaStream_t stream, void* memory, size_t bytes, const Key* keys, Key* sorted_keys,
                      const uint32_t* numbers, uint32_t* sorted_numbers, int64_t count, KeyBits bits);

}  // namespace symbind::cuda_backend
