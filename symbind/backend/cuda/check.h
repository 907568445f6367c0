// CUDA's status codes become errors.
#pragma once

#include <string_view>

#include <cuda_runtime_api.h>

#include "symbind/core/context.h"

namespace symbind::cuda_backend {

// Fails with the operation and CUDA's message.
[[noreturn]] void fail_cuda(cudaError_t status, std::string_view what);

inline void check(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) [[unlikely]]
    fail_cuda(status, what);
}

// Sets the current device of the calling thread while this lives. CUDA's current device is per thread and belongs to
// the program: it is restored.
class CurrentDevice {
 public:
  explicit CurrentDevice(int id) : id_(id) {
    check(cudaGetDevice(&before_), "asking for the current GPU");
    if (before_ != id_) check(cudaSetDevice(id_), "choosing a GPU");
  }
  ~CurrentDevice() {
    if (before_ != id_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int id_;
  int before_ = 0;
};

}  // namespace symbind::cuda_backend
