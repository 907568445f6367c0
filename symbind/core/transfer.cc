#include "symbind/core/transfer.h"

namespace symbind {

std::unique_ptr<Upload> make_upload(Device& device) { return device.is_host() ? nullptr : make_gpu_upload(device); }

std::unique_ptr<Download> start_download(Device& device, const void* src, size_t bytes) {
  return device.is_host() ? nullptr : start_gpu_download(device, src, bytes);
}

std::unique_ptr<Download> start_download(Device& device, const void* src, size_t bytes, const DeviceEvent& after) {
  return device.is_host() ? nullptr : start_gpu_download(device, src, bytes, after);
}

}  // namespace symbind
