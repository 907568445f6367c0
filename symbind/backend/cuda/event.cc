#include "symbind/backend/cuda/event.h"

namespace symbind {
namespace cuda_backend {

CudaEvent::CudaEvent(CudaDevice& device) : device_(device) {
  const CurrentDevice current(device.id());
  device.check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
}

// In a captured stream an ordinary record only orders the captured work; an external one becomes a part of it, which
// records the event at every launch. Outside of a capture CUDA refuses external records.
void CudaEvent::record() {
  const Queueing queueing(device_);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  device_.check(cudaStreamIsCapturing(device_.stream(), &status), "recording an event");
  const bool captured = status == cudaStreamCaptureStatusActive;
  device_.check(
      cudaEventRecordWithFlags(event_, device_.stream(), captured ? cudaEventRecordExternal : cudaEventRecordDefault),
      "recording an event");
}

void CudaEvent::record(cudaStream_t stream) { device_.check(cudaEventRecord(event_, stream), "recording an event"); }

void CudaEvent::make_wait(CudaDevice& device, cudaStream_t stream) const {
  device.check(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
}

bool CudaEvent::reached() const {
  if (cudaEventQuery(event_) != cudaErrorNotReady) return true;
  cudaGetLastError();  // the answer is not an error that a later check of this thread should find
  return false;
}

}  // namespace cuda_backend

std::shared_ptr<DeviceEvent> make_event(Device& gpu) {
  return std::make_shared<cuda_backend::CudaEvent>(cuda_backend::CudaDevice::of(gpu));
}

}  // namespace symbind
