#include "symbind/data/batch_pipeline.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbind/core/error.h"

#include "tests/support/memory.h"

namespace symbind {
namespace {

struct Job : BatchJob {
  int number = 0;
  std::vector<int> made;  // by sample
  bool finished = false;
};

// Epochs of `batches` batches with four samples. What goes wrong is said by `failing_batch` and `what_fails`.
class Maker : public BatchMaker {
 public:
  std::unique_ptr<BatchJob> plan() override {
    EXPECT_FALSE(planning_.exchange(true));
    auto job = std::make_unique<Job>();
    job->number = planned++;
    job->samples = 4;
    job->made.resize(4);
    planning_ = false;
    fail_if(*job, "plan");
    return job->number < batches ? std::move(job) : nullptr;
  }
  void make(BatchJob& job, size_t sample, size_t worker) override {
    ASSERT_LT(worker, 3U);
    ++static_cast<Job&>(job).made.at(sample);
    if (sample == 2) fail_if(job, "make");
  }
  void finish(BatchJob& job) override {
    for (const int times : static_cast<Job&>(job).made) EXPECT_EQ(times, 1);
    EXPECT_FALSE(std::exchange(static_cast<Job&>(job).finished, true));
    fail_if(job, "finish");
  }

  std::atomic<int> planned = 0;
  int batches = 20;
  int failing_batch = -1;
  std::string what_fails;

 private:
  void fail_if(const BatchJob& job, const std::string& what) const {
    if (static_cast<const Job&>(job).number == failing_batch && what == what_fails) fail(what, " failed");
  }
  std::atomic<bool> planning_ = false;
};

// Takes all that is left of an epoch; returns how many batches, in order and whole.
int rest_of_epoch(BatchPipeline& pipeline, int first) {
  int number = first;
  while (const auto job = pipeline.take()) {
    EXPECT_EQ(static_cast<Job&>(*job).number, number++);
    EXPECT_TRUE(static_cast<Job&>(*job).finished);
    EXPECT_EQ(static_cast<Job&>(*job).made, std::vector<int>(4, 1));
  }
  return number - first;
}

void begin_again(Maker& maker, BatchPipeline& pipeline) {
  pipeline.stop();
  maker.planned = 0;
  pipeline.start();
}

TEST(BatchPipelines, GiveEveryBatchInOrderWhenAllItsSamplesAreMade) {
  Maker maker;
  BatchPipeline pipeline(maker, 3, 2, "Test");
  EXPECT_EQ(maker.planned, 0);
  pipeline.start();
  EXPECT_EQ(rest_of_epoch(pipeline, 0), 20);
  EXPECT_EQ(pipeline.take(), nullptr);
  for (int epoch = 0; epoch < 3; ++epoch) {
    begin_again(maker, pipeline);
    EXPECT_EQ(rest_of_epoch(pipeline, 0), 20);
  }
}

TEST(BatchPipelines, MakeAsManyBatchesAheadAsTheyMayAndNoMore) {
  Maker maker;
  BatchPipeline pipeline(maker, 2, 3, "Test");
  pipeline.start();
  for (int taken = 0; taken < 5; ++taken) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (maker.planned < taken + 3 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // in which a fourth would be planned
    EXPECT_EQ(maker.planned, taken + 3);
    EXPECT_EQ(static_cast<Job&>(*pipeline.take()).number, taken);
  }
}

TEST(BatchPipelines, ThrowAwayWhatIsReadyWhenStopped) {
  Maker maker;
  BatchPipeline pipeline(maker, 3, 4, "Test");
  pipeline.start();
  EXPECT_EQ(static_cast<Job&>(*pipeline.take()).number, 0);
  pipeline.stop();
  const int planned = maker.planned;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(maker.planned, planned);
  pipeline.start();
  EXPECT_EQ(rest_of_epoch(pipeline, planned), 20 - planned);
}

TEST(BatchPipelines, ThrowWhatAMakerThrowsUntilTheyAreStopped) {
  for (const char* const what : {"plan", "make", "finish"}) {
    SCOPED_TRACE(what);
    Maker maker;
    maker.failing_batch = 2;
    maker.what_fails = what;
    BatchPipeline pipeline(maker, 3, 3, "Test");
    pipeline.start();
    for (int number = 0; number < 2; ++number) EXPECT_EQ(static_cast<Job&>(*pipeline.take()).number, number);
    for (int time = 0; time < 2; ++time) EXPECT_THROW(pipeline.take(), Error);
    pipeline.stop();
    maker.planned = 3;
    pipeline.start();
    EXPECT_EQ(rest_of_epoch(pipeline, 3), 17);
  }
}

TEST(BatchPipelines, RefuseToWorkInAForkedProcess) {
  if (!testing::forked_child_may_use_threads) GTEST_SKIP() << "the thread sanitizer cannot follow";
  Maker maker;
  BatchPipeline pipeline(maker, 2, 2, "Test");
  pipeline.start();
  EXPECT_TRUE(pipeline.in_this_process());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a call that waits for the threads of the other process would never return
    int refused = pipeline.in_this_process() ? 0 : 1;
    for (const auto call : {+[](BatchPipeline& each) { each.start(); }, +[](BatchPipeline& each) { each.stop(); },
                            +[](BatchPipeline& each) { each.take(); }}) {
      try {
        call(pipeline);
      } catch (const Error&) {
        ++refused;
      }
    }
    ::_exit(refused);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 4);
}

}  // namespace
}  // namespace symbind
