// Giving the interpreter's lock (GIL) up and taking it again, also while the interpreter ends: a thread that asks for
// the lock then is ended by Python in the middle of C++, which aborts the process. Here it sleeps instead until the
// process is gone.
#pragma once

#include <nanobind/nanobind.h>

namespace symbind::python {

// Without the GIL for the length of a scope.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

// With it; the thread may have it already.
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

// Registers what is to be done when the interpreter ends. Called first of all: such functions run in reverse order.
void watch_for_exit();

}  // namespace symbind::python
