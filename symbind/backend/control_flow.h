// Loops inside a network, on any device: the body is compiled once, as a separate plan, and every step runs it in the
// same scratch memory. Slices of arrays are addresses: nothing is copied between the steps.
#pragma once

#include <functional>
#include <memory>

#include "symbind/passes/target.h"

namespace symbind {

// Writes the cursors of the random numbers of `steps` steps, `draws` draws each, to `to` in the device's memory. They
// are from a separate sequence, so that they never coincide with those of other operators.
struct StepCursors {
  int64_t steps = 0;
  uint64_t draws = 0, slot = 0;

  constexpr RandomCursor at(const RandomCursor& run, int64_t step) const {
    return {run.key * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du,
            ((run.draw + slot) << 24) + static_cast<uint64_t>(step) * draws};
  }
};
using WriteCursors = std::function<void(const Args& args, const StepCursors& cursors, RandomCursor* to)>;

std::unique_ptr<Kernel> build_foreach(const NodeView& node, WriteCursors write_cursors);
std::unique_ptr<Kernel> build_foreach_grad(const NodeView& node);

}  // namespace symbind
