// Work that follows forward and backward: who takes it, and how a captured plan with it gets other work. (On a GPU:
// tests/backend/cuda_step_test.cc.)
#include "symbind/exec/following_work.h"

#include <gtest/gtest.h>

#include "symbind/exec/followed_capture.h"

namespace symbind::testing {
namespace {

class Nothing : public FollowingWork {
 public:
  void queue() const override {}
  void mark_written() const override {}
};
class BesideBackward final : public Nothing {
 public:
  bool follows_forward() const override { return true; }
};
FollowingWorkPtr work() { return std::make_shared<Nothing>(); }

TEST(FollowedBy, IsClaimedOnceByTheCallingThread) {
  EXPECT_EQ(FollowedBy::claim(), nullptr);
  FollowedBy outer([] { return std::vector<FollowingWorkPtr>{work()}; });
  {
    FollowedBy inner([] { return std::vector<FollowingWorkPtr>(); });
    EXPECT_EQ(FollowedBy::claim(), &inner);
    EXPECT_EQ(FollowedBy::claim(), nullptr) << "the runs inside of that run are not followed by it";
    EXPECT_TRUE(inner.take().empty());
    EXPECT_FALSE(inner.is_taken());
  }
  EXPECT_EQ(FollowedBy::claim(), &outer);
  EXPECT_FALSE(outer.is_taken());
  EXPECT_EQ(outer.take().size(), 1u);
  EXPECT_TRUE(outer.is_taken());
}

// Replaces following work while `accepts`.
struct Log {
  int captures = 0;
  std::vector<size_t> replaced;
  bool accepts = true, can_capture = true;
};
class Recorded final : public Captured {
 public:
  explicit Recorded(Log& log) : log_(log) {}
  void launch() override {}
  bool replace_following(size_t index, const QueueWork& work) override {
    work();
    if (log_.accepts) log_.replaced.push_back(index);
    return log_.accepts;
  }

 private:
  Log& log_;
};

class FollowedCaptureTest : public ::testing::Test {
 protected:
  bool finds(const std::vector<FollowingWorkPtr>& work) {
    return captures_.find(work, [&](const auto&) -> std::unique_ptr<Captured> {
      ++log_.captures;
      return log_.can_capture ? std::make_unique<Recorded>(log_) : nullptr;
    }) != nullptr;
  }
  Log log_;
  FollowedCapture captures_;
};

TEST_F(FollowedCaptureTest, TheSameWorkIsCapturedOnce) {
  const std::vector<FollowingWorkPtr> both{work(), work()};
  for (int run = 0; run < 5; ++run) EXPECT_TRUE(finds(both));
  EXPECT_EQ(log_.captures, 1);
  EXPECT_TRUE(log_.replaced.empty());
}

TEST_F(FollowedCaptureTest, OtherWorkOfTheSameFormIsReplaced) {
  const FollowingWorkPtr first = work(), second = work();
  EXPECT_TRUE(finds({first, work()}));
  EXPECT_TRUE(finds({first, second}));
  EXPECT_TRUE(finds({work(), second}));
  EXPECT_EQ(log_.captures, 1);
  EXPECT_EQ(log_.replaced, (std::vector<size_t>{1, 0}));
}

TEST_F(FollowedCaptureTest, WorkOfAnotherFormIsCapturedMoreAndMoreRarely) {
  log_.accepts = false;
  std::vector<int> runs;
  for (int run = 0; run < 40; ++run) {
    const int before = log_.captures;
    const bool found = finds({work()});
    EXPECT_EQ(found, log_.captures > before);
    if (found) runs.push_back(run);
  }
  EXPECT_EQ(runs, (std::vector<int>{0, 2, 6, 14, 30}));
}

TEST_F(FollowedCaptureTest, OneRunWithWorkOfAnotherFormLeavesTheCaptureForTheNext) {
  const FollowingWorkPtr usual = work();
  EXPECT_TRUE(finds({usual}));
  for (int epoch = 0; epoch < 10; ++epoch) {
    log_.accepts = false;
    EXPECT_FALSE(finds({work()}));
    log_.accepts = true;
    EXPECT_TRUE(finds({usual}));
  }
  EXPECT_EQ(log_.captures, 1);
  EXPECT_EQ(log_.replaced.size(), 10u) << "it is not known what a refused replacement left";
}

TEST_F(FollowedCaptureTest, MorePiecesAreCapturedAgain) {
  const FollowingWorkPtr first = work();
  EXPECT_TRUE(finds({first}));
  EXPECT_FALSE(finds({first, work()}));
  EXPECT_TRUE(finds({first, work()}));
  EXPECT_EQ(log_.captures, 2);
}

// Beside backward an update would write what backward still reads.
TEST_F(FollowedCaptureTest, WorkOfAnotherPlaceIsCapturedAgain) {
  const FollowingWorkPtr metric = std::make_shared<BesideBackward>(), other = std::make_shared<BesideBackward>();
  EXPECT_TRUE(finds({metric, other}));
  EXPECT_TRUE(finds({metric, std::make_shared<BesideBackward>()}));
  EXPECT_EQ(log_.replaced, std::vector<size_t>{1});
  const FollowingWorkPtr update = work();
  EXPECT_FALSE(finds({update, metric}));
  EXPECT_TRUE(finds({update, metric}));
  EXPECT_EQ(log_.captures, 2);
  EXPECT_EQ(log_.replaced, std::vector<size_t>{1});
  EXPECT_FALSE(finds({metric, update}));
}

TEST_F(FollowedCaptureTest, ADeviceThatCannotRecordItIsAskedOnceForTheseSteps) {
  log_.can_capture = false;
  for (int run = 0; run < 5; ++run) EXPECT_FALSE(finds({work()}));
  EXPECT_EQ(log_.captures, 1);
  log_.can_capture = true;
  captures_.forget();
  EXPECT_TRUE(finds({work()}));
}

TEST_F(FollowedCaptureTest, ForgottenStepsAreCapturedAtOnceHoweverOftenTheyWereBefore) {
  for (int burst = 0; burst < 5; ++burst) {
    EXPECT_TRUE(finds({work()}));
    captures_.forget();
  }
  EXPECT_EQ(log_.captures, 5);
}

TEST_F(FollowedCaptureTest, WorkThatFollowsNoMoreIsReleased) {
  FollowingWorkPtr first = work();
  const std::weak_ptr<const FollowingWork> held = first;
  EXPECT_TRUE(finds({first}));
  first = nullptr;
  EXPECT_FALSE(held.expired());
  captures_.release();
  EXPECT_TRUE(held.expired());
  EXPECT_FALSE(finds({work()})) << "captured again, but more rarely if captures are soon of no use";
  EXPECT_TRUE(finds({work()}));

  log_.can_capture = false;
  FollowingWorkPtr last = work(), refused = work();
  const std::weak_ptr<const FollowingWork> of_the_last{last}, of_none{refused};
  EXPECT_TRUE(finds({last}));
  for (int run = 0; run < 8; ++run) EXPECT_FALSE(finds({refused, work()}));
  EXPECT_EQ(log_.captures, 3);
  last = refused = nullptr;
  EXPECT_TRUE(of_the_last.expired() && of_none.expired()) << "nothing uses their arrays";
}

TEST_F(FollowedCaptureTest, WorkThatWasOftenLaunchedIsCapturedAgainAtOnce) {
  const FollowingWorkPtr usual = work();
  for (int epoch = 0; epoch < 10; ++epoch) {
    for (int run = 0; run < 200; ++run) EXPECT_TRUE(finds({usual})) << epoch << " " << run;
    captures_.release();
  }
  EXPECT_EQ(log_.captures, 10);
}

}  // namespace
}  // namespace symbind::testing
