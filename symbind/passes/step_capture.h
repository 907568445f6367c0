// Capturing steps in the order that their data requires, so that small ones run at the same time: offered by targets
// that can (those of GPUs), beside Target::capture.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind {

// Steps of longer plans run one after the other: those of large networks fill a GPU, and more edges of a graph take
// more time than small steps gain (docs/decisions.md).
inline constexpr size_t most_concurrent_steps = 64;

class StepCapture {
 public:
  // Work that begins when all steps up to `after` have ended, and that no step waits for. Pieces with the same `after`
  // run in their order.
  struct Following {
    size_t after;
    QueueWork queue;
  };

  virtual ~StepCapture() = default;
  // Records the work that run_step(0), run_step(1), … queue on the device. When it is launched, step i begins as soon
  // as the steps waits[i], all of which come before it, have ended. For each step in `joined`, in their order,
  // run_joined(step) queues work that begins when all steps up to this one have ended, and that no step waits for. Null
  // if the device cannot record it.
  virtual std::unique_ptr<Captured> capture_steps(Device& device, std::span<const std::vector<size_t>> waits,
                                                  const std::function<void(size_t step)>& run_step,
                                                  std::span<const size_t> joined = {},
                                                  const std::function<void(size_t step)>& run_joined = {},
                                                  std::span<const Following> following = {}) = 0;
};

}  // namespace symbind
