// Stubs for a build without CUDA: there are no GPUs.
#include "symbind/core/device.h"

#include "symbind/core/device_event.h"
#include "symbind/core/device_queue.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind {

int count_gpu_devices() { return 0; }

int gpu_number(Context gpu) { return gpu.id; }

std::unique_ptr<Device> make_gpu_device(Context context) {
  fail(context, " is not available: Symbind was built without CUDA");
}

std::shared_ptr<DeviceEvent> make_event(Device& gpu) {
  fail(gpu.context(), " has no events: Symbind was built without CUDA");
}

DeviceQueue hold_queue(Device& gpu) { fail(gpu.context(), " has no queue: Symbind was built without CUDA"); }

std::unique_ptr<Target> make_gpu_target() { fail(gpu(0), " is not available: Symbind was built without CUDA"); }

}  // namespace symbind
