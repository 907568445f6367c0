#include "symbind/backend/cuda/index_sort.h"

#include "symbind/backend/cuda/radix_sort.h"

namespace symbind::cuda_backend {

IndexSort::IndexSort(int64_t terms, int64_t elements)
    : terms_(terms), of_numbers_((static_cast<size_t>(terms) * sizeof(uint32_t) + 255) / 256 * 256) {
  while (int64_t{1} << bits_ < elements) ++bits_;
  of_sort_ = radix_sort_bytes<uint32_t>(terms_, {0, bits_});
}

IndexSort::Sorted IndexSort::queue(cudaStream_t stream, void* scratch) const {
  queue_radix_sort<uint32_t>(stream, numbers(scratch, 4), of_sort_, numbers(scratch, 0), numbers(scratch, 2),
                             numbers(scratch, 1), numbers(scratch, 3), terms_, {0, bits_});
  return {numbers(scratch, 2), numbers(scratch, 3)};
}

}  // namespace symbind::cuda_backend
