// Keeps the threads of loops away from the core of the thread that starts them. Linux wakes a thread on the core of the
// one that wakes it unless it finds another core idle, and in a virtual machine it often does not recognise an idle
// core. Both threads then take turns on one core, and a loop of 40 microseconds takes 140. No thread is bound to a
// core: those of a loop may use every core but one, and the calling thread any.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace symbind::cpu {

class ThreadCores {
 public:
  // Runs a function of the thread's index on each thread of a loop; 0 is the calling thread.
  using OnThreads = void (*)(int threads, const std::function<void(int thread)>& function);

  ThreadCores();

  // Called before a loop by the thread that starts it, which is always the same one. It takes some nanoseconds while
  // that thread stays on its core and its loops have the same threads.
  void keep_apart(int threads, OnThreads on_threads);

 private:
  struct Members;

  std::shared_ptr<Members> members_;  // shared with the threads, which may outlive the calling one
  int core_ = -1;                     // which the threads avoid
  std::chrono::steady_clock::time_point next_change_{};
};

}  // namespace symbind::cpu
