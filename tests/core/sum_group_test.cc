#include "symbind/core/sum_group.h"

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbind/core/interrupt.h"
#include "symbind/core/workers.h"

#include "tests/support/arrays.h"
#include "tests/support/memory.h"

namespace symbind::testing {
namespace {

std::vector<std::string> titles(size_t count) {
  std::vector<std::string> all;
  for (size_t i = 0; i < count; ++i) all.push_back("context " + std::to_string(i));
  return all;
}

// Numbers whose sum depends on the order.
double part(size_t context, int round) { return (context % 2 ? 1e16 : 1.0) + static_cast<double>(context) + round; }

TEST(SumGroup, AddsInTheOrderOfTheContextsWhoeverComesFirst) {
  for (const size_t count : {2, 3, 5}) {
    Workers workers(count, 2);
    SumGroup group(titles(count));
    for (int pass = 0; pass < 20; ++pass) {
      std::vector<std::array<double, 2>> got(count);
      group.run(workers, [&](size_t context) {
        EXPECT_TRUE(sums_over_contexts());
        for (int round = 0; round < 5; ++round) {
          if ((context + static_cast<size_t>(round)) % count == 0) std::this_thread::yield();
          got[context] = {part(context, round), 1};
          sum_over_contexts("[op] " + std::to_string(round), got[context]);
        }
      });
      double expected = part(0, 4);
      for (size_t k = 1; k < count; ++k) expected += part(k, 4);
      for (const auto& each : got) EXPECT_EQ(each, (std::array{expected, static_cast<double>(count)}));
    }
  }
  EXPECT_FALSE(sums_over_contexts());
}

TEST(SumGroup, EndsThoseThatWaitForAContextThatFails) {
  Workers workers(3, 2);
  SumGroup group(titles(3));
  for (size_t thrower = 0; thrower < 3; ++thrower) {
    std::array<std::string, 3> errors;
    const auto pass = [&](size_t context) {
      if (context == thrower) throw std::runtime_error("no memory");
      std::array<double, 1> values = {1};
      errors[context] = error_of([&] { sum_over_contexts("[op bn1]", values); });
      fail(errors[context]);
    };
    // The cause is thrown, not what follows from it.
    EXPECT_THROW(group.run(workers, pass), std::runtime_error);
    for (size_t context = 0; context < 3; ++context) {
      if (context == thrower) continue;
      EXPECT_EQ(errors[context],
                "[op bn1] sums over 3 contexts, but context " + std::to_string(thrower) + " has failed: no memory");
    }
  }
  group.run(workers, [&](size_t) {
    std::array<double, 1> values = {1};
    sum_over_contexts("[op bn1]", values);
    EXPECT_EQ(values[0], 3);
  });
}

TEST(SumGroup, EndsThoseThatWaitForAContextThatDoesNotCome) {
  Workers workers(2, 2);
  SumGroup group(titles(2));
  const auto pass = [&](size_t context) {
    std::array<double, 1> values = {1};
    if (context == 0) sum_over_contexts("[op bn1]", values);
  };
  EXPECT_TRUE(fails_with([&] { group.run(workers, pass); }, "[op bn1]", "context 1 has ended its pass without it"));
}

TEST(SumGroup, NamesContextsThatSumDifferentThings) {
  Workers workers(2, 2);
  SumGroup group(titles(2));
  const auto other_keys = [&](size_t context) {
    std::array<double, 1> values = {1};
    sum_over_contexts(context == 0 ? "[op bn1]" : "[op bn2]", values);
  };
  EXPECT_TRUE(fails_with([&] { group.run(workers, other_keys); }, "[op bn1]", "[op bn2]", "context 0", "context 1"));
  const auto other_sizes = [&](size_t context) {
    std::vector<double> values(context + 4, 1);
    sum_over_contexts("[op bn1]", values);
  };
  EXPECT_TRUE(fails_with([&] { group.run(workers, other_sizes); }, "[op bn1]", "4 values", "5 values"));
}

TEST(SumGroup, PassesTheSumOfTheContextsOnToTheWorkers) {
  Workers workers(2, 2);
  SumGroup group(titles(2));
  std::vector<std::string> keys;
  const auto over_workers = [&](const std::string& key, std::span<double> values) {
    keys.push_back(key);
    for (double& value : values) value *= 10;
  };
  set_worker_sum(std::make_shared<const WorkerSum>(over_workers));
  EXPECT_TRUE(sums_over_contexts());
  group.run(workers, [&](size_t context) {
    std::array<double, 1> values = {static_cast<double>(context + 1)};
    sum_over_contexts("[op a]", values);
    EXPECT_EQ(values[0], 30);
  });
  std::array<double, 1> alone = {4};
  sum_over_contexts("[op b]", alone);
  EXPECT_EQ(alone[0], 40);
  EXPECT_EQ(keys, (std::vector<std::string>{"[op a]", "[op b]"}));
  set_worker_sum(nullptr);
  EXPECT_FALSE(sums_over_contexts());
}

TEST(SumGroup, ThrowsWhatTheSumOverTheWorkersThrows) {
  Workers workers(3, 2);
  SumGroup group(titles(3));
  const InSumScope scope({.over_workers = std::make_shared<const WorkerSum>([](const std::string&, std::span<double>) {
                            throw std::runtime_error("worker 2 is lost");
                          })});
  std::atomic<int> failed = 0;
  const auto pass = [&](size_t) {
    std::array<double, 1> values = {1};
    try {
      sum_over_contexts("[op]", values);
    } catch (...) {
      ++failed;
      throw;
    }
  };
  EXPECT_THROW(group.run(workers, pass), std::runtime_error);
  EXPECT_EQ(failed, 3);
}

TEST(SumGroup, CanBeInterrupted) {
  Workers workers(2, 2);
  SumGroup group(titles(2));
  std::atomic<bool> stopped = false;
  const auto before = set_interrupt_check([&] {
    stopped = true;
    throw std::runtime_error("stop");
  });
  const auto pass = [&](size_t context) {
    std::array<double, 1> values = {1};
    if (context == 0) return sum_over_contexts("[op]", values);
    while (!stopped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  EXPECT_THROW(group.run(workers, pass), std::runtime_error);
  set_interrupt_check(before);
}

// One that was interrupted while it waited is counted as one that came, but its pass is over.
TEST(SumGroup, FailsForThoseThatComeAfterAnInterrupt) {
  Workers workers(2, 2);
  SumGroup group(titles(2));
  std::atomic<bool> stopped = false;
  const auto before = set_interrupt_check([&] {
    stopped = true;
    throw std::runtime_error("stop");
  });
  std::string error;
  const auto pass = [&](size_t context) {
    std::array<double, 1> values = {1};
    if (context == 0) return sum_over_contexts("[op]", values);
    while (!stopped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // context 0 ends its pass
    error = error_of([&] { sum_over_contexts("[op]", values); });
  };
  EXPECT_THROW(group.run(workers, pass), std::runtime_error);
  set_interrupt_check(before);
  EXPECT_EQ(error, "[op] sums over 2 contexts, but context 0 has failed: stop");
}

TEST(SumGroup, CanBeInterruptedWhileOtherWorkersAreWaitedFor) {
  Workers workers(2, 2);
  SumGroup group(titles(2));
  std::atomic<bool> checked = false;
  const auto before = set_interrupt_check([&] { checked = true; });
  bool checked_meanwhile = false;
  const auto over_workers = [&](const std::string&, std::span<double>) {
    checked = false;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!checked && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    checked_meanwhile = checked;
  };
  {
    const InSumScope scope({.over_workers = std::make_shared<const WorkerSum>(over_workers)});
    group.run(workers, [&](size_t) {
      std::array<double, 1> values = {1};
      sum_over_contexts("[op]", values);
      EXPECT_EQ(values[0], 2);
    });
  }
  set_interrupt_check(before);
  EXPECT_TRUE(checked_meanwhile);
}

TEST(SumGroup, RefusesASecondSumOfAContextThatWaits) {
  Workers workers(2, 2);
  SumGroup group(titles(2));
  std::atomic<bool> waits = false, refused = false;
  const auto before = set_interrupt_check([&] { waits = true; });  // called by those that wait
  const auto until = [](const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  std::string error;
  std::thread second([&] {
    until(waits);
    const InSumScope scope({.group = &group, .context = 0});
    std::array<double, 1> values = {1};
    error = error_of([&] { sum_over_contexts("[op b]", values); });
    refused = true;
  });
  group.run(workers, [&](size_t context) {
    std::array<double, 1> values = {1};
    if (context == 1) until(refused);
    sum_over_contexts("[op a]", values);
    EXPECT_EQ(values[0], 2);
  });
  second.join();
  set_interrupt_check(before);
  EXPECT_EQ(error, "[op b] is summed on context 0 while it waits for [op a]");
}

TEST(SumGroup, FailsInAForkedProcessWhoseContextsRunOneAfterTheOther) {
  if (!forked_child_may_use_threads) GTEST_SKIP() << "the thread sanitizer cannot follow";
  auto workers = std::make_unique<Workers>(2, 2);
  SumGroup group(titles(2));
  group.run(*workers, [](size_t) {});
  const pid_t child = ::fork();
  if (child == 0) {
    const bool failed(fails_with(
        [&] {
          group.run(*workers, [&](size_t) {
            std::array<double, 1> values = {1};
            sum_over_contexts("[op]", values);
          });
        },
        "[op]", "forked"));
    workers.reset();
    ::_exit(failed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace symbind::testing
