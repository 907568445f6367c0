// Times what runs in this process: every step of every plan, and every operator that is called on arrays.
//
//   profiler::start();
//   module.forward_backward(batch);
//   profiler::stop();
//   for (const profiler::Event& event : profiler::take().events) ...
//
// While the profiler is on, steps run one after the other, and the device is synchronized before and after each: a
// reported time is that of the step alone, and the whole run takes longer than without profiling. Any thread may call
// these functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbind/core/context.h"

namespace SYMBIND_API symbind {
namespace profiler {

struct Options {
  bool symbolic = true;    // steps of plans
  bool imperative = true;  // operators on arrays
  bool memory = false;     // bytes of each context after each forward or backward
};

struct Event {
  std::string name = "";      // the operator's; of a custom one, its op_type
  std::string category = "";  // "operator", or "Custom Operator"
  std::string node = "";      // the node's name; empty for an operator on arrays
  Context context = {};
  uint64_t thread = 0;  // a number for the thread that ran it
  double begin = 0;     // seconds since profiling of the process first started
  double seconds = 0;
};

struct MemorySample {
  Context context;
  double time = 0;  // as `begin` of events
  size_t bytes = 0;
};

struct Recording {
  std::vector<Event> events;
  std::vector<MemorySample> memory;
};

void start(const Options& options = {});
void stop();
bool is_running();

// Returns what was recorded so far and clears the recording.
Recording take();

// The clock of events, for user-defined events.
double now();

}  // namespace profiler
}  // namespace symbind
