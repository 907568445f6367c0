// Transfers between the host and a device that run beside the device's queue: data for later work arrive while earlier
// work runs, and results leave while later work runs. (The copies of Device are queued with the work.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "symbind/core/device.h"

namespace symbind {

class DeviceEvent;

// A buffer on a device that is filled from the host again and again, with several arrays at a time. Serves one thread
// at a time.
class Upload {
 public:
  struct Source {
    const void* data;
    size_t bytes;
  };
  // Where the first `count` elements of a source of the last start() go, converted where the types differ.
  struct Target {
    size_t source;
    void* data;
    DType to, from;
    int64_t count;
  };

  virtual ~Upload() = default;
  // Starts to copy; the host memory may be reused when it returns. What was not delivered before is lost.
  virtual void start(std::span<const Source> sources) = 0;
  // Queues the copies to the targets.
  virtual void deliver(std::span<const Target> targets) = 0;
};

// Data on the way to the host.
class Download {
 public:
  virtual ~Download() = default;
  virtual bool arrived() = 0;
  // Waits for the data, whose memory belongs to this object; throws errors of queued work.
  virtual const void* data() = 0;
};

// All are null for a device whose memory the host reads: there is nothing to transfer. A download has the values that
// the memory has after the work queued so far; work queued later may overwrite it.
std::unique_ptr<Upload> make_upload(Device& device);
std::unique_ptr<Download> start_download(Device& device, const void* src, size_t bytes);
// After an event of the device, whatever else is queued. The memory must not change before the data has arrived.
std::unique_ptr<Download> start_download(Device& device, const void* src, size_t bytes, const DeviceEvent& after);

// Supplied by backend/cuda, or by its stubs, when linking.
std::unique_ptr<Upload> make_gpu_upload(Device& device);
std::unique_ptr<Download> start_gpu_download(Device& device, const void* src, size_t bytes);
std::unique_ptr<Download> start_gpu_download(Device& device, const void* src, size_t bytes, const DeviceEvent& after);

}  // namespace symbind
