// Releasing and acquiring the interpreter's lock (GIL), also while the interpreter ends: Python terminates a thread
// that requests the lock then in the middle of C++ code, which aborts the process. Here such a thread sleeps until the
// process ends.
#pragma once

#include <nanobind/nanobind.h>

namespace symbind::python {

// Releases the GIL for the duration of a scope.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

// Acquires it; the thread may already hold it.
class AcquireGil {
 public:
  AcquireGil();
  ~AcquireGil();
  AcquireGil(const AcquireGil&) = delete;
  AcquireGil& operator=(const AcquireGil&) = delete;

 private:
  PyGILState_STATE state_;
  bool outermost_;  // of this thread: C++ called Python here
};

// Registers an exit handler of the interpreter. Call it first: such handlers run in reverse order.
void watch_for_exit();

}  // namespace symbind::python
