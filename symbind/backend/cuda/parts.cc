#include "symbind/backend/cuda/architectures.h"
#include "symbind/backend/cuda/check.h"
#include "symbind/backend/cuda/cublas.h"
#include "symbind/backend/cuda/cublas_lt.h"
#include "symbind/backend/cuda/cudnn_part.h"
#include "symbind/backend/cuda/cufft_library.h"
#include "symbind/backend/cuda/cusolver.h"
#include "symbind/backend/cuda/nvrtc_library.h"
#include "symbind/backend/gpu_architectures.h"
#include "symbind/core/device.h"
#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/core/part_sources.h"

namespace symbind {
namespace {

std::string version_text(int version) { return join(version / 1000, ".", version % 1000 / 10); }

// The runtime that was built in, what kernels were compiled for, and what the driver supports.
Part cuda_part() {
  int runtime = 0, driver = 0, count = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  const std::string built = join("built with ", version_text(runtime), ", kernels for ",
                                 capability_text(cuda_backend::built_architectures()));
  if (status == cudaSuccess && count > 0) return {"CUDA", true, join(built, "; driver for ", version_text(driver))};
  if (driver == 0) return {"CUDA", false, join(built, "; this machine has no driver of an NVIDIA GPU")};
  return {"CUDA", false, join(built, "; driver for ", version_text(driver), ": ", cudaGetErrorString(status))};
}

Part gpu_part(Context context) {
  cudaDeviceProp properties{};
  const int id = gpu_number(context);
  const cudaError_t status = cudaGetDeviceProperties(&properties, id);
  const std::string name = context.str();
  if (status != cudaSuccess) return {name, false, cudaGetErrorString(status)};
  const std::string gpu = join(properties.name, ", compute capability ", properties.major, ".", properties.minor, ", ",
                               properties.totalGlobalMem >> 20, " MiB");
  const auto& built_for = cuda_backend::built_architectures();
  const int capability = cuda_backend::compute_capability(id);
  if (const std::string problem = architecture_problem(built_for, capability); !problem.empty())
    return {name, false, join(gpu, ": ", problem)};
  const std::string warning = architecture_warning(built_for, capability);
  return {name, true, warning.empty() ? gpu : join(gpu, ": ", warning)};
}

}  // namespace

void cuda_backend::warn_without_cudnn() {
  static const bool warned = [] {
    const Part cudnn = cudnn_part();
    if (!cudnn.usable)
      log_warning("[gpu] convolutions and recurrent layers run by kernels that are many times slower than cuDNN's: ",
                  cudnn.details);
    return true;
  }();
  static_cast<void>(warned);
}

std::vector<Part> gpu_parts() {
  std::vector<Part> parts{cuda_part()};
  for (int id = 0; id < count_gpu_devices(); ++id) parts.push_back(gpu_part(gpu(id)));
  parts.push_back(cuda_backend::cudnn_part());
  for (SharedLibrary* library : {&cuda_backend::cublas, &cuda_backend::cublas_lt, &cuda_backend::cusolver,
                                 &cuda_backend::cufft, &cuda_backend::nvrtc})
    parts.push_back(library->part());
  return parts;
}

}  // namespace symbind
