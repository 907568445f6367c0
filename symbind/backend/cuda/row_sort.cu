#include "symbind/backend/cuda/row_sort.h"

#include <cub/device/device_segmented_radix_sort.cuh>

#include "symbind/backend/cuda/check.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/radix_sort.h"
#include "symbind/backend/cuda/scratch_layout.h"

namespace symbind::cuda_backend {
namespace {

__global__ void write_row_begins(int32_t* begins, int64_t rows, int64_t length) {
  for (int64_t i = first_element(); i <= rows; i += element_step()) begins[i] = static_cast<int32_t>(i * length);
}

}  // namespace

RowSort::RowSort(int64_t rows, int64_t length, size_t key_bytes) : rows_(rows), length_(length), key_bytes_(key_bytes) {
  const int64_t count = rows * length;
  ScratchLayout layout;
  layout.add_bytes(static_cast<size_t>(count) * key_bytes);
  indices_ = layout.add<int32_t>(count);
  sorted_keys_ = layout.add_bytes(static_cast<size_t>(count) * key_bytes);
  sorted_indices_ = layout.add<int32_t>(count);
  row_begins_ = layout.add<int32_t>(rows + 1);
  work_bytes_ = key_bytes == 8 ? work_bytes<uint64_t>() : work_bytes<uint32_t>();
  work_ = layout.add_bytes(work_bytes_);
  scratch_bytes_ = layout.total();
}

template <class Key>
size_t RowSort::work_bytes() const {
  constexpr int bits = static_cast<int>(sizeof(Key)) * 8;
  if (rows_ == 1) return radix_sort_bytes<Key>(length_, {0, bits});
  size_t bytes = 0;
  Key* const keys = nullptr;
  int32_t* const numbers = nullptr;
  check(cub::DeviceSegmentedRadixSort::SortPairs(nullptr, bytes, keys, keys, numbers, numbers,
                                                 static_cast<int>(rows_ * length_), static_cast<int>(rows_), numbers,
                                                 numbers, 0, bits),
        "asking for the memory of a sort");
  return bytes;
}

template <class Key>
void RowSort::sort(cudaStream_t stream, void* scratch) const {
  constexpr int bits = static_cast<int>(sizeof(Key)) * 8;
  const Key* const unsorted = keys<Key>(scratch);
  auto* const sorted_keys = scratch_at<Key>(scratch, sorted_keys_);
  void* const work = scratch_at<std::byte>(scratch, work_);
  if (rows_ == 1) {
    queue_radix_sort(stream, work, work_bytes_, unsorted, sorted_keys, scratch_at<uint32_t>(scratch, indices_),
                     scratch_at<uint32_t>(scratch, sorted_indices_), length_, {0, bits});
    return;
  }
  int32_t* const begins = at(scratch, row_begins_);
  write_row_begins<<<blocks_for(rows_ + 1), block_size, 0, stream>>>(begins, rows_, length_);
  size_t bytes = work_bytes_;
  check(cub::DeviceSegmentedRadixSort::SortPairs(work, bytes, unsorted, sorted_keys, indices(scratch),
                                                 at(scratch, sorted_indices_), static_cast<int>(rows_ * length_),
                                                 static_cast<int>(rows_), begins, begins + 1, 0, bits, stream),
        "queueing a sort");
}

// The status of the launches is checked after the step (device.h).
void RowSort::run(cudaStream_t stream, void* scratch) const {
  if (key_bytes_ == 8)
    sort<uint64_t>(stream, scratch);
  else
    sort<uint32_t>(stream, scratch);
}

}  // namespace symbind::cuda_backend
