// A point in the work of a GPU, for threads that wait for some of the queued work and not for all of it.
#pragma once

#include <memory>

#include "symbind/core/device.h"

namespace symbind {

class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Sets the event to the point after the work queued so far. As a part of captured work it does so at every launch.
  virtual void record() = 0;
  // For any thread: is the work before the point done? True too if it failed: the next call that waits throws the
  // error.
  virtual bool reached() const = 0;
};
using DeviceEventPtr = std::shared_ptr<const DeviceEvent>;

// Supplied by backend/cuda, or by its stubs, when linking.
std::shared_ptr<DeviceEvent> make_event(Device& gpu);

}  // namespace symbind
