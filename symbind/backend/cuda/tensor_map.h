// Tensor maps: the extents of an array, and of the boxes that tensor copies (tensor_copy.cuh) bring from it.
#pragma once

#include <array>
#include <cstdint>

#include <cuda.h>

namespace symbind::cuda_backend {

// Where the 16-byte chunks of a box's rows are in shared memory. bytes_128: rows are 128 bytes, and chunk c of row r is
// at c ^ r % 8; the box begins at a multiple of 1024 bytes.
enum class Swizzle { none, bytes_128 };

// Of a contiguous array of float32, the innermost axis first: that of the array, and of a box. An innermost extent
// that is not a multiple of four has no map.
CUtensorMap tensor_map(const void* array, const std::array<uint64_t, 4>& extents, const std::array<uint32_t, 4>& box,
                       Swizzle swizzle);

// Does the driver know tensor maps?
bool has_tensor_maps();

}  // namespace symbind::cuda_backend
