#include "symbind/exec/profiler.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "symbind/core/device.h"
#include "symbind/exec/profiling.h"

namespace symbind::profiler {
namespace {

std::atomic<int> mode = 0;  // bits of Options; 0: not running
constexpr int symbolic_bit = 1, imperative_bit = 2, memory_bit = 4;

struct State {
  std::mutex mutex;
  Recording recording;
};

State& state() {
  static auto* const forever = new State;  // threads may record until the process ends
  return *forever;
}

std::chrono::steady_clock::time_point epoch() {
  static const auto first = std::chrono::steady_clock::now();
  return first;
}

}  // namespace

void start(const Options& options) {
  epoch();
  mode = (options.symbolic ? symbolic_bit : 0) | (options.imperative ? imperative_bit : 0) |
         (options.memory ? memory_bit : 0);
}

void stop() { mode = 0; }
bool is_running() { return mode != 0; }

Recording take() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().recording, {});
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now() - epoch()).count(); }

bool records_plans() { return (mode.load(std::memory_order_relaxed) & symbolic_bit) != 0; }
bool records_operators() { return (mode.load(std::memory_order_relaxed) & imperative_bit) != 0; }

void record(Event event) {
  event.thread = std::hash<std::thread::id>{}(std::this_thread::get_id());
  const std::lock_guard lock(state().mutex);
  state().recording.events.push_back(std::move(event));
}

void sample_memory(Context context) {
  if ((mode.load(std::memory_order_relaxed) & memory_bit) == 0) return;
  const size_t bytes = Device::get(context).memory().live;
  const std::lock_guard lock(state().mutex);
  state().recording.memory.push_back({context, now(), bytes});
}

}  // namespace symbind::profiler
