// How the profiler is told: for what runs steps and operators.
#pragma once

#include "symbind/core/device.h"
#include "symbind/exec/profiler.h"

namespace symbind::profiler {

bool records_plans();      // cheap: asked once per run
bool records_operators();  // cheap: asked once per call

void record(Event event);
void sample_memory(Context context);  // where it was asked for

// Runs a function on a context, and records how long it took. Names are made only here, since most runs need none.
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
