// The queue of a GPU for other libraries that queue work on it.
#pragma once

#include <memory>

#include "symbind/core/device.h"

namespace symbind {

// While it is held, no other thread queues work on the device, and the device is the calling thread's current one.
// Several are released in the opposite order.
struct DeviceQueue {
  void* stream;  // a cudaStream_t
  std::shared_ptr<void> hold;
};

// Supplied by backend/cuda or its stubs.
DeviceQueue hold_queue(Device& gpu);

}  // namespace symbind
