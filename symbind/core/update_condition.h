// Updates that a device makes or leaves out by itself: the decision is a number in its memory, and the host queues the
// updates before it knows that number.
#pragma once

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// While it lives, operators of this thread that update weights by an elementwise rule on a GPU leave all their arrays
// unchanged if *made is 0 when they run. `made` is in the memory of that GPU. A step on the host cannot be left out: it
// fails.
class UpdateCondition {
 public:
  explicit UpdateCondition(const float* made);
  ~UpdateCondition();
  UpdateCondition(const UpdateCondition&) = delete;
  UpdateCondition& operator=(const UpdateCondition&) = delete;

  static const float* current();  // null: updates are made

 private:
  const float* before_;
};

}  // namespace symbind
