#include "symbind/backend/cuda/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

PFN_cuTensorMapEncodeTiled_v12000 encode_function() {
  static const auto function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const bool is_found = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                                           &result) == cudaSuccess &&
                          result == cudaDriverEntryPointSuccess;
    if (!is_found) cudaGetLastError();
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(is_found ? found : nullptr);
  }();
  return function;
}

}  // namespace

bool has_tensor_maps() { return encode_function() != nullptr; }

CUtensorMap tensor_map(const void* array, const std::array<uint64_t, 4>& extents, const std::array<uint32_t, 4>& box,
                       Swizzle swizzle) {
  std::array<cuuint64_t, 3> strides{};  // in bytes, of all axes but the innermost
  cuuint64_t stride = sizeof(float);
  for (size_t axis = 0; axis < strides.size(); ++axis) strides[axis] = stride *= extents[axis];
  const std::array<cuuint32_t, 4> steps{1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult result = encode_function()(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, static_cast<cuuint32_t>(extents.size()), const_cast<void*>(array),
      extents.data(), strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle == Swizzle::bytes_128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  require(result == CUDA_SUCCESS, "[tensor map] the driver refuses it with error ", static_cast<int>(result));
  return map;
}

}  // namespace symbind::cuda_backend
