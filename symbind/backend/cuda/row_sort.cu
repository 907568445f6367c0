#include "symbind/backend/cuda/row_sort.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>

#include "symbind/backend/cuda/check.h"
#include "symbind/backend/cuda/kernels.cuh"
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
  if (key_bytes == 8)
    check(sort<uint64_t>(nullptr, work_bytes_, nullptr, nullptr), "asking for the memory of a sort");
  else
    check(sort<uint32_t>(nullptr, work_bytes_, nullptr, nullptr), "asking for the memory of a sort");
  work_ = layout.add_bytes(work_bytes_);
  scratch_bytes_ = layout.total();
}

template <class Key>
cudaError_t RowSort::sort(void* work, size_t& bytes, cudaStream_t stream, void* scratch) const {
  const auto* const keys = static_cast<const Key*>(scratch);
  auto* const sorted_keys = scratch ? scratch_at<Key>(scratch, sorted_keys_) : nullptr;
  const int32_t* const own_indices = scratch ? indices(scratch) : nullptr;
  int32_t* const sorted = scratch ? at(scratch, sorted_indices_) : nullptr;
  const int32_t* const begins = scratch ? at(scratch, row_begins_) : nullptr;
  const int count = static_cast<int>(rows_ * length_), bits = static_cast<int>(sizeof(Key)) * 8;
  if (rows_ == 1)
    return cub::DeviceRadixSort::SortPairs(work, bytes, keys, sorted_keys, own_indices, sorted, count, 0, bits, stream);
  return cub::DeviceSegmentedRadixSort::SortPairs(work, bytes, keys, sorted_keys, own_indices, sorted, count,
                                                  static_cast<int>(rows_), begins, scratch ? begins + 1 : nullptr, 0,
                                                  bits, stream);
}

// What the launches answer is asked for after the step (device.h).
void RowSort::run(cudaStream_t stream, void* scratch) const {
  if (rows_ > 1)
    write_row_begins<<<blocks_for(rows_ + 1), block_size, 0, stream>>>(at(scratch, row_begins_), rows_, length_);
  size_t bytes = work_bytes_;
  void* const work = scratch_at<std::byte>(scratch, work_);
  check(key_bytes_ == 8 ? sort<uint64_t>(work, bytes, stream, scratch) : sort<uint32_t>(work, bytes, stream, scratch),
        "queueing a sort");
}

}  // namespace symbind::cuda_backend
