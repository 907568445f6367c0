// A CPU's way with denormals during a run; it is the thread's own again when the run is over, however it ends.
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
