// A replacement is spawned after process 0 has stopped waiting for it, and is lost before it can be notified. Process 0
// must not end with it. Runs over stand_in_mpi.cc.
#include <chrono>
#include <cstdio>
#include <thread>

#include <dlfcn.h>

#include "symbind/kvstore/mpi/replacements.h"

int main() {
  using namespace std::chrono_literals;
  { const symbind::mpi::SpawnedProcesses given_up(1, 3, "/"); }
  void* const mpi = ::dlopen("libmpi.so.40", RTLD_NOW);
  const auto let_return = reinterpret_cast<void (*)()>(::dlsym(mpi, "stand_in_let_spawn_return"));
  const auto failures = reinterpret_cast<int (*)()>(::dlsym(mpi, "stand_in_failures"));
  if (!let_return || !failures) {
    std::puts("the stand-in for MPI was not loaded: is its folder in LD_LIBRARY_PATH?");
    return 1;
  }
  let_return();
  for (int i = 0; failures() == 0; ++i) {
    if (i == 3000) {
      std::puts("the late process was sent nothing");
      return 1;
    }
    std::this_thread::sleep_for(10ms);
  }
  std::this_thread::sleep_for(1s);  // an exception that nobody catches ends the process meanwhile
  return 0;
}
