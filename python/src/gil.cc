#include "gil.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <pthread.h>
#include <unistd.h>

namespace nb = nanobind;

namespace symbind::python {
namespace {

std::atomic<bool> ending = false;
std::atomic<unsigned long> ending_thread = 0;  // which may continue to use Python
std::atomic<int> entering = 0;                 // threads that were admitted and may not have the lock yet
std::atomic<int> inside = 0;                   // threads started by C++ that run Python code

// All threads pass before the interpreter ends; after that only the thread that ends it.
void wait_at_exit() {
  ++entering;
  if (!ending || PyThread_get_thread_ident() == ending_thread) return;
  --entering;
  for (;;) ::pause();
}

// Admitted threads get the lock, and those that run Python code for C++ have a moment to return.
void begin_exit() {
  ending_thread = PyThread_get_thread_ident();
  ending = true;
  PyThreadState* const state = PyEval_SaveThread();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (entering > 0 || (inside > 0 && std::chrono::steady_clock::now() < deadline))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

}  // namespace

ReleaseGil::~ReleaseGil() {
  wait_at_exit();
  PyEval_RestoreThread(state_);
  --entering;
}

AcquireGil::AcquireGil() : outermost_(!PyGILState_Check()) {
  if (!outermost_) {
    state_ = PyGILState_Ensure();
    return;
  }
  wait_at_exit();
  state_ = PyGILState_Ensure();
  ++inside;
  --entering;
}

AcquireGil::~AcquireGil() {
  PyGILState_Release(state_);
  if (outermost_) --inside;
}

void watch_for_exit() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&begin_exit));
  pthread_atfork(nullptr, nullptr, [] { entering = inside = 0; });  // the other threads do not exist in the child
}

}  // namespace symbind::python
