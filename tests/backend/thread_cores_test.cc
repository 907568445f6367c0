#include "symbind/backend/cpu/thread_cores.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

#include "symbind/core/parallel.h"

namespace symbind::cpu {
namespace {

cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

// Where the other thread of loops of two threads may run, at a moment when the calling thread did not change its core.
struct Seen {
  int core;
  cpu_set_t others;
};
Seen run_loop() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than the pause between changes
    const int core = sched_getcpu();
    const auto caller = std::this_thread::get_id();
    cpu_set_t others = cores_of_this_thread();
    parallel_for(2, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != caller) others = cores_of_this_thread();
    });
    if (sched_getcpu() == core) return {core, others};
  }
}

TEST(ThreadCores, ThreadsOfALoopLeaveTheCoreOfTheirCallerToIt) {
  const ThreadScope two({.threads = 2});
  const cpu_set_t own = cores_of_this_thread();
  run_loop();  // the first makes them known
  const Seen seen = run_loop();
  cpu_set_t expected = own;
  if (CPU_COUNT(&own) >= 2) CPU_CLR(static_cast<size_t>(seen.core), &expected);
  EXPECT_TRUE(CPU_EQUAL(&seen.others, &expected));
  const cpu_set_t after = cores_of_this_thread();
  EXPECT_TRUE(CPU_EQUAL(&after, &own)) << "the calling thread itself is not restricted";
}

TEST(ThreadCores, AThreadWithOneCoreSharesIt) {
  std::thread bound([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const ThreadScope two({.threads = 2});
    run_loop();
    const Seen seen = run_loop();
    EXPECT_TRUE(CPU_EQUAL(&seen.others, &one));
  });
  bound.join();
}

// Threads that end are forgotten, those of the next loop are found; numbers of threads that are no more are not used.
TEST(ThreadCores, ThreadsMayEndBetweenLoops) {
  static int entered;
  static std::mutex mutex;
  entered = 0;
  ThreadCores cores;
  for (int loop = 0; loop < 3; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    cores.keep_apart(3, [](int threads, const std::function<void(int)>& function) {
      std::vector<std::thread> others;
      for (int thread = 1; thread < threads; ++thread)
        others.emplace_back([&function, thread] {
          function(thread);
          const std::lock_guard lock(mutex);
          ++entered;
        });
      function(0);
      for (std::thread& thread : others) thread.join();
    });
  }
  EXPECT_EQ(entered, 6);
}

}  // namespace
}  // namespace symbind::cpu
