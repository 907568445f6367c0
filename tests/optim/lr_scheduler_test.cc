#include "symbind/optim/lr_scheduler.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/core/error.h"
#include "symbind/core/log.h"

#include "tests/optim/recorded_schedules.h"
#include "tests/support/arrays.h"
#include "tests/support/oracle.h"

namespace symbind::testing {
namespace {

TEST(Schedule, RunsAlongTheRecordedCurves) {
  const auto recorded = read_recorded("optimizers.json.gz");
  ASSERT_GT(recorded["schedules"].size(), 50u);
  for (const auto& curve : recorded["schedules"]) {
    SCOPED_TRACE(curve["id"].get<std::string>());
    const LRSchedulerPtr schedule = recorded_schedule(curve["schedule"], curve["warm_up"]);
    ASSERT_NE(schedule, nullptr);
    for (size_t i = 0; i < curve["calls"].size(); ++i) {
      const double wanted = curve["rates"][i];
      EXPECT_NEAR((*schedule)(curve["calls"][i].get<int64_t>()), wanted, 1e-12 * wanted)
          << "update " << curve["calls"][i];
    }
  }
}

TEST(Schedule, GoesOnFromItsState) {
  for (const char* name : {"factor", "factor_stops", "multi_factor", "poly", "cosine"}) {
    SCOPED_TRACE(name);
    const LRSchedulerPtr whole = recorded_schedule(name, "warm_linear");
    for (int64_t update = 1; update <= 22; ++update) (*whole)(update);
    const LRSchedulerPtr resumed = recorded_schedule(name, "warm_linear");
    resumed->restore(whole->state());
    for (int64_t update = 23; update <= 30; ++update) EXPECT_EQ((*resumed)(update), (*whole)(update));
  }
}

TEST(Schedule, SaysWhenTheRateChanges) {
  std::vector<std::string> said;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view message) { said.emplace_back(message); });
  const LRSchedulerPtr schedule = factor_scheduler({.step = 2, .factor = 0.1, .stop_factor_lr = 5e-4});
  for (int64_t update = 1; update <= 9; ++update) (*schedule)(update);
  set_log_sink(before);
  EXPECT_EQ(said, (std::vector<std::string>{"Update[3]: Change learning rate to 1.00000e-03",
                                            "Update[5]: Change learning rate to 5.00000e-04"}));
}

TEST(Schedule, RefusesRatesThatAreNotFinite) {
  for (const double rate : {std::nan(""), HUGE_VAL}) {
    EXPECT_TRUE(fails_with([&] { factor_scheduler({.base_lr = rate}); }, "base_lr", "finite"));
    EXPECT_TRUE(fails_with([&] { factor_scheduler({.stop_factor_lr = rate}); }, "stop_factor_lr", "finite"));
    EXPECT_TRUE(fails_with([&] { multi_factor_scheduler({.step = {1}, .base_lr = rate}); }, "base_lr", "finite"));
    EXPECT_TRUE(fails_with([&] { poly_scheduler({.max_update = 9, .final_lr = rate}); }, "final_lr", "finite"));
    EXPECT_TRUE(fails_with([&] { cosine_scheduler({.max_update = 9, .base_lr = rate}); }, "base_lr", "finite"));
    EXPECT_TRUE(fails_with([&] { factor_scheduler({.warm_up = {.steps = 2, .begin_lr = rate}}); }, "begin_lr"));
    const auto schedule = factor_scheduler({});
    EXPECT_TRUE(fails_with([&] { schedule->set_base_lr(rate); }, "base_lr", "finite"));
  }
  EXPECT_TRUE(fails_with([] { factor_scheduler({.factor = -HUGE_VAL}); }, "factor", "finite"));
}

TEST(Schedule, AStepMayBeAPartOfAnEpochAndAPowerAnyNumber) {
  const LRSchedulerPtr halving = factor_scheduler({.step = 2.5, .factor = 0.5, .base_lr = 8});
  std::vector<double> rates;
  for (int64_t update = 0; update < 12; ++update) rates.push_back((*halving)(update));
  EXPECT_EQ(rates, (std::vector<double>{8, 8, 8, 4, 4, 4, 2, 2, 1, 1, 1, 0.5}));
  const LRSchedulerPtr root = poly_scheduler({.max_update = 4, .base_lr = 1, .pwr = 0.5});
  EXPECT_DOUBLE_EQ((*root)(3), 0.5);
  EXPECT_TRUE(fails_with([] { poly_scheduler({.max_update = 4, .pwr = NAN}); }, "pwr", "finite"));
}

TEST(Schedule, SaysWhatIsWrong) {
  EXPECT_TRUE(fails_with([] { factor_scheduler({.step = 0}); }, "step", "0"));
  EXPECT_TRUE(fails_with([] { factor_scheduler({.factor = 1.5}); }, "factor", "1.5"));
  EXPECT_TRUE(fails_with([] { multi_factor_scheduler({.step = {5, 3}}); }, "step", "5, 3"));
  EXPECT_TRUE(fails_with([] { multi_factor_scheduler({}); }, "step"));
  EXPECT_TRUE(fails_with([] { poly_scheduler({}); }, "max_update"));
  EXPECT_TRUE(fails_with([] { cosine_scheduler({.max_update = 5, .warm_up = {.steps = 5}}); }, "max_update", "5"));
  EXPECT_TRUE(fails_with([] { factor_scheduler({.base_lr = 0.1, .warm_up = {.begin_lr = 0.2}}); }, "0.2", "0.1"));
  EXPECT_TRUE(fails_with([] { factor_scheduler({.warm_up = {.mode = "slow"}}); }, "linear", "slow"));
}

}  // namespace
}  // namespace symbind::testing
