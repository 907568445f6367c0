#include "symbind/core/parallel.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbind/core/workers.h"

#include "tests/support/memory.h"

namespace symbind {
namespace {

using Piece = std::pair<int64_t, int64_t>;

// The pieces of a loop in their order, and the threads that ran them.
struct Ran {
  std::vector<Piece> pieces;
  std::set<std::thread::id> threads;
};

Ran run(int64_t count, int64_t grain) {
  Ran ran;
  std::mutex mutex;
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    ran.pieces.emplace_back(begin, end);
    ran.threads.insert(std::this_thread::get_id());
  });
  std::sort(ran.pieces.begin(), ran.pieces.end());
  return ran;
}

bool has_openmp() {
  const ThreadScope two({.threads = 2});
  return available_threads() == 2;
}

TEST(ParallelFor, SmallWorkStaysOnTheCallingThread) {
  const ThreadScope three({.threads = 3});
  const Ran ran = run(199, 100);
  EXPECT_EQ(ran.pieces, (std::vector<Piece>{{0, 199}}));
  EXPECT_EQ(ran.threads, std::set{std::this_thread::get_id()});
  EXPECT_TRUE(run(0, 1).pieces.empty());
}

TEST(ParallelFor, PiecesDependOnTheCountAndTheNumberOfThreadsAlone) {
  const std::vector<Piece> thirds = {{0, 33}, {33, 66}, {66, 100}};
  Workers workers(3, 3);
  {
    const ThreadScope scope({.threads = 1, .workers = &workers});
    EXPECT_EQ(run(100, 1).pieces, thirds);
    EXPECT_EQ(run(100, 50).pieces, (std::vector<Piece>{{0, 50}, {50, 100}}));
  }
  if (!has_openmp()) GTEST_SKIP() << "built without OpenMP";
  const ThreadScope scope({.threads = 3});
  EXPECT_EQ(run(100, 1).pieces, thirds);
  EXPECT_EQ(run(100, 50).pieces, (std::vector<Piece>{{0, 50}, {50, 100}}));
}

TEST(ParallelFor, LoopsOfFewAndManyPiecesRunOnTheSameThreads) {
  if (!has_openmp()) GTEST_SKIP() << "built without OpenMP";
  const ThreadScope four({.threads = 4});
  std::mutex mutex;
  std::set<pid_t> threads;  // by their numbers, which are not given to others soon as thread::id is
  for (int round = 0; round < 10; ++round)
    for (const int64_t pieces : {2, 4})
      parallel_for(pieces, 1, [&](int64_t, int64_t) {
        const std::lock_guard lock(mutex);
        threads.insert(::gettid());
      });
  EXPECT_EQ(threads.size(), 4U);
}

TEST(ParallelFor, ALoopInsideALoopRunsOnOneThread) {
  const ThreadScope two({.threads = 2});
  parallel_for(2, 1, [](int64_t, int64_t) {
    EXPECT_EQ(available_threads(), 1);
    EXPECT_EQ(run(100, 1).threads, std::set{std::this_thread::get_id()});
  });
}

TEST(ParallelFor, ThrowsWhatAPieceThrows) {
  Workers workers(2, 2);
  for (Workers* pool : {static_cast<Workers*>(nullptr), &workers}) {
    const ThreadScope scope({.threads = 2, .workers = pool});
    const auto last_fails = [](int64_t, int64_t end) {
      if (end == 10) throw std::runtime_error("the last piece");
    };
    EXPECT_THROW(parallel_for(10, 1, last_fails), std::runtime_error);
    EXPECT_EQ(run(10, 10).pieces.size(), 1u);
  }
}

TEST(ThreadScope, SetsThePolicyOfItsThreadAndRestoresTheOneBefore) {
  const ThreadPolicy first = thread_policy();
  Workers workers(3, 3);
  {
    const ThreadScope outer({.threads = 2, .workers = &workers});
    EXPECT_EQ(available_threads(), 3);
    EXPECT_EQ(thread_policy().workers, &workers);
    {
      const ThreadScope inner({.threads = 1});
      EXPECT_EQ(available_threads(), 1);
      EXPECT_EQ(thread_policy().workers, nullptr);
    }
    EXPECT_EQ(available_threads(), 3);
    std::thread([&] { EXPECT_EQ(thread_policy().workers, nullptr); }).join();
  }
  EXPECT_EQ(thread_policy().threads, first.threads);
  EXPECT_EQ(thread_policy().workers, nullptr);
}

TEST(ThreadScope, HasOneThreadInAForkedChild) {
  if (!testing::forked_child_may_use_threads) GTEST_SKIP() << "the thread sanitizer cannot follow";
  Workers workers(2, 2);
  for (Workers* pool : {static_cast<Workers*>(nullptr), &workers}) {
    const ThreadScope scope({.threads = 2, .workers = pool});
    const pid_t child = ::fork();
    if (child == 0) ::_exit(available_threads() == 1 && run(100, 1).pieces.size() == 1 ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

}  // namespace
}  // namespace symbind
