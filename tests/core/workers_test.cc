#include "symbind/core/workers.h"

#include <array>
#include <atomic>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbind/core/parallel.h"

#include "tests/support/memory.h"

namespace symbind {
namespace {

TEST(Workers, RunEveryJobOnceAtTheSameTime) {
  for (const size_t count : {1, 2, 3}) {
    Workers workers(count, 2);
    for (int round = 0; round < 200; ++round) {
      std::atomic<size_t> begun = 0;
      std::vector<std::thread::id> threads(count);
      workers.run([&](size_t worker) {
        threads[worker] = std::this_thread::get_id();
        ++begun;
        while (begun < count) std::this_thread::yield();  // until all are there
      });
      EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), count);
      EXPECT_EQ(threads[0], std::this_thread::get_id());
    }
  }
}

TEST(Workers, WaitForEachOtherThoughOneThrows) {
  Workers workers(3, 1);
  for (size_t thrower = 0; thrower < 3; ++thrower) {
    std::atomic<int> finished = 0;
    const auto job = [&](size_t worker) {
      if (worker == thrower) throw std::runtime_error("worker " + std::to_string(worker));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++finished;
    };
    EXPECT_THROW(workers.run(job), std::runtime_error);
    EXPECT_EQ(finished, 2);
  }
  std::atomic<int> calls = 0;
  workers.run([&](size_t) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(Workers, DoTheirWorkInAForkedProcessToo) {
  if (!testing::forked_child_may_use_threads) GTEST_SKIP() << "the thread sanitizer cannot follow";
  auto workers = std::make_unique<Workers>(3, 3);
  workers->run([](size_t) {});
  const pid_t child = ::fork();
  if (child == 0) {
    int calls = 0;
    workers->run([&](size_t) { ++calls; });
    workers.reset();
    ::_exit(calls);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(Workers, HelpWithTheLoopsOfTheCallingThread) {
  Workers workers(3, 3);
  const ThreadScope loops({.threads = 1, .workers = &workers});
  EXPECT_EQ(available_threads(), 3);
  std::vector<int> values(900, 0);
  std::array<std::atomic<int>, 3> pieces{};
  parallel_for(900, 10, [&](int64_t begin, int64_t end) {
    ++pieces[static_cast<size_t>(begin * 3 / 900)];
    for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += 1;
    // A loop inside a loop stays where it is.
    parallel_for(2, 1, [&, here = std::this_thread::get_id()](int64_t, int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), here);
    });
  });
  EXPECT_EQ(values, std::vector<int>(900, 1));
  for (const auto& piece : pieces) EXPECT_EQ(piece, 1);
  EXPECT_THROW(parallel_for(100, 1,
                            [](int64_t begin, int64_t) {
                              if (begin > 0) throw std::runtime_error("a piece");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace symbind
