#include "symbind/backend/cpu/thread_cores.h"

#include <atomic>
#include <mutex>
#include <vector>

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif

namespace symbind::cpu {

#ifdef __linux__

namespace {

// Where several programs share the cores a thread moves often: a change costs a microsecond for each thread of its
// loops.
constexpr auto shortest_pause = std::chrono::milliseconds(1);

// The cores of the calling thread but the one it runs on. Empty if it has no other.
cpu_set_t other_cores(int core) {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
  CPU_CLR(static_cast<size_t>(core), &cores);
  return cores;
}

}  // namespace

// The threads of a loop but the calling one.
struct ThreadCores::Members {
  std::mutex mutex;
  std::vector<pid_t> threads;    // 0 for one that has ended
  std::atomic<int> present = 0;  // others than 0

  void reset(int count) {
    const std::lock_guard lock(mutex);
    threads.assign(static_cast<size_t>(count), 0);
    present = 0;
  }
  void enter(size_t index, pid_t thread) {
    const std::lock_guard lock(mutex);
    threads.at(index) = thread;
    ++present;
  }
  void leave(pid_t thread) {
    const std::lock_guard lock(mutex);
    for (pid_t& member : threads) {
      if (member != thread) continue;
      member = 0;
      --present;
    }
  }
  // The number of a thread is another's once it has ended, which none does while this is running.
  void allow(const cpu_set_t& cores) {
    const std::lock_guard lock(mutex);
    for (const pid_t thread : threads)
      if (thread != 0) sched_setaffinity(thread, sizeof cores, &cores);
  }
};

ThreadCores::ThreadCores() : members_(std::make_shared<Members>()) {}

void ThreadCores::keep_apart(int threads, OnThreads on_threads) {
  const int core = sched_getcpu();
  const bool known = members_->present == threads - 1;
  if ((known && core == core_) || core < 0 || threads < 2) return;

  const auto now = std::chrono::steady_clock::now();
  if (now < next_change_) return;
  next_change_ = now + shortest_pause;

  if (!known) {
    struct Membership {
      std::shared_ptr<Members> members;
      ~Membership() {
        if (members) members->leave(gettid());
      }
    };
    members_->reset(threads - 1);
    on_threads(threads, [this](int thread) {
      if (thread == 0) return;
      thread_local Membership membership;
      membership.members = members_;
      members_->enter(static_cast<size_t>(thread - 1), gettid());
    });
  }
  const cpu_set_t cores = other_cores(core);
  if (CPU_COUNT(&cores) + 1 >= threads) members_->allow(cores);
  core_ = core;
}

#else

struct ThreadCores::Members {};
ThreadCores::ThreadCores() = default;
void ThreadCores::keep_apart(int, OnThreads) {}

#endif

}  // namespace symbind::cpu
