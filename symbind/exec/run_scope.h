// Sets the CPU's treatment of denormals for a run, and restores the thread's own when the run ends, even by an
// exception.
#pragma once

#include "symbind/passes/target.h"

namespace symbind {

class RunScope {
 public:
  RunScope() : target_(Target::get(cpu())), state_(target_.enter()) {}
  ~RunScope() { target_.leave(state_); }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

 private:
  Target& target_;
  uint32_t state_;
};

}  // namespace symbind
