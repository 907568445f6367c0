// CUDA's events: points in a stream that the host and other streams can wait for.
#pragma once

#include <cuda_runtime_api.h>

#include "symbind/backend/cuda/device.h"
#include "symbind/core/device_event.h"

namespace symbind::cuda_backend {

class CudaEvent final : public DeviceEvent {
 public:
  explicit CudaEvent(CudaDevice& device);
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record() override;  // in the device's queue
  void record(cudaStream_t stream);
  // A stream of this device, which may be another one than the event's.
  void make_wait(CudaDevice& device, cudaStream_t stream) const;
  bool reached() const override;
  cudaError_t wait() const { return cudaEventSynchronize(event_); }

 private:
  CudaDevice& device_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace symbind::cuda_backend
