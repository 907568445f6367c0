#include "symbind/core/error.h"
#include "symbind/kvstore/gpu_group.h"
#include "symbind/kvstore/worker_gpus.h"

namespace symbind {

std::string nccl_problem() {
  return "this build has no NCCL: install it (Debian: apt-get install libnccl-dev) beside CUDA and build Symbind again";
}

bool nccl_adds(DType) { return false; }

std::unique_ptr<GpuGroup> open_gpu_group(std::span<const Context>) { fail("[kvstore] ", nccl_problem()); }

std::shared_ptr<const GpuConnector> nccl_connector() { return nullptr; }

}  // namespace symbind
