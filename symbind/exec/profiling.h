// Recording for the profiler, called by code that runs steps and operators.
#pragma once

#include "symbind/core/device.h"
#include "symbind/exec/profiler.h"

namespace symbind::profiler {

bool records_plans();      // cheap: called once per run
bool records_operators();  // cheap: called once per call

void record(Event event);
void sample_memory(Context context);  // if requested by Options::memory

// Runs a function on a context, and records how long it took. The event is described only when recording, since most
// runs do not record.
template <class Function, class Describe>
void timed(Context context, Function&& function, Describe&& describe) {
  Device& device = Device::get(context);
  if (!device.is_host()) device.synchronize();
  const double begin = now();
  function();
  if (!device.is_host()) device.synchronize();
  const double seconds = now() - begin;
  Event event = describe();
  event.context = context;
  event.begin = begin;
  event.seconds = seconds;
  record(std::move(event));
}

}  // namespace symbind::profiler
