// Compiled by nvcc, which says what it compiles for.
#include "symbind/backend/cuda/architectures.h"

#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

#include "symbind/backend/gpu_architectures.h"
#include "symbind/core/device.h"
#include "symbind/core/error.h"
#include "symbind/core/log.h"

namespace symbind::cuda_backend {

const std::vector<int>& built_architectures() {
  static const std::vector<int> architectures = [] {
    std::vector<int> all{__CUDA_ARCH_LIST__};
    for (int& architecture : all) architecture /= 10;
    return all;
  }();
  return architectures;
}

int compute_capability(int gpu) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu);
  return major * 10 + minor;
}

void check_architecture(Context context) {
  const int capability = compute_capability(gpu_number(context));
  const std::string problem = architecture_problem(built_architectures(), capability);
  require(problem.empty(), context, " is not available: ", problem);
  const std::string warning = architecture_warning(built_architectures(), capability);
  static std::once_flag warned;
  if (!warning.empty()) std::call_once(warned, [&] { log_warning("[", context, "] ", warning); });
}

}  // namespace symbind::cuda_backend
