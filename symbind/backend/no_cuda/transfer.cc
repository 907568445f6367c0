// Stubs for a build without CUDA: there is no device that could be passed to these.
#include "symbind/core/transfer.h"

namespace symbind {

std::unique_ptr<Upload> make_gpu_upload(Device&) { return nullptr; }
std::unique_ptr<Download> start_gpu_download(Device&, const void*, size_t) { return nullptr; }
std::unique_ptr<Download> start_gpu_download(Device&, const void*, size_t, const DeviceEvent&) { return nullptr; }

}  // namespace symbind
