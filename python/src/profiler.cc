#include "symbind/exec/profiler.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {

void bind_profiler(nb::module_& m) {
  m.def(
      "_profiler_start",
      [](bool symbolic, bool imperative, bool memory) {
        profiler::start({.symbolic = symbolic, .imperative = imperative, .memory = memory});
      },
      nb::arg("symbolic"), nb::arg("imperative"), nb::arg("memory"));
  m.def("_profiler_stop", &profiler::stop);
  m.def("_profiler_now", &profiler::now);
  // ([(name, category, node, context, thread, begin, seconds)], [(context, time, bytes)])
  m.def("_profiler_take", [] {
    const profiler::Recording recording = profiler::take();
    nb::list events, memory;
    for (const profiler::Event& event : recording.events)
      events.append(nb::make_tuple(event.name, event.category, event.node, event.context, event.thread, event.begin,
                                   event.seconds));
    for (const profiler::MemorySample& sample : recording.memory)
      memory.append(nb::make_tuple(sample.context, sample.time, sample.bytes));
    return nb::make_tuple(events, memory);
  });
}

}  // namespace symbind::python
