// Updates as work that training steps repeat: the numbers of Updater::operator(), and the same object as long as they
// are the same.
#include "symbind/optim/repeated_update.h"

#include <gtest/gtest.h>

#include "symbind/optim/updater.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// The optimizers whose updates can be repeated.
std::vector<std::string> repeating() {
  std::vector<std::string> names;
  for (const std::string& name : list_update_rules())
    if (Optimizer::create(name)->repeats_updates()) names.push_back(name);
  return names;
}

class Parameters {
 public:
  explicit Parameters(const OptimizerPtr& optimizer) : updater_(optimizer) {
    for (int64_t i = 0; i < 3; ++i) {
      const NDArray weight = random_array({5, 2 + i}, static_cast<uint64_t>(i));
      items_.push_back({i, zeros(weight.shape()), weight});
    }
  }
  const std::vector<Updater::Item>& items(uint64_t step) {
    for (Updater::Item& item : items_) random_array(item.grad.shape(), 10 + step).copyto(item.grad);
    return items_;
  }
  Updater& updater() { return updater_; }
  Optimizer& optimizer() { return *updater_.optimizer(); }
  void expect_same(const Parameters& expected) const {
    for (size_t i = 0; i < items_.size(); ++i)
      EXPECT_TRUE(same_bits(items_[i].weight, expected.items_[i].weight)) << "parameter " << i;
    EXPECT_EQ(updater_.get_states(true), expected.updater_.get_states(true));
  }

 private:
  Updater updater_;
  std::vector<Updater::Item> items_;
};

TEST(RepeatedUpdate, ChangesWhatAnUpdateChanges) {
  ASSERT_FALSE(repeating().empty());
  for (const std::string& name : repeating()) {
    SCOPED_TRACE(name);
    const auto made = [&] {
      const LRSchedulerPtr schedule =
          std::make_shared<FactorScheduler>(FactorSchedule{.step = 2, .factor = 0.5, .base_lr = 0.1});
      return Optimizer::create(name, {{"lr_scheduler", schedule}, {"wd", 0.01}});
    };
    Parameters plain(made()), repeated(made());
    FollowingWorkPtr last;
    for (uint64_t step = 0; step < 6; ++step) {
      plain.updater()(plain.items(step));
      last = repeated.updater().repeated(repeated.items(step), last);
      last->queue();
      repeated.expect_same(plain);
    }
  }
}

TEST(RepeatedUpdate, IsTheSameObjectUntilANumberOrAnArrayChanges) {
  const LRSchedulerPtr schedule =
      std::make_shared<FactorScheduler>(FactorSchedule{.step = 100, .factor = 0.5, .base_lr = 0.1});
  Parameters parameters(Optimizer::create("sgd", {{"lr_scheduler", schedule}, {"momentum", 0.9}}));
  Optimizer& optimizer = parameters.optimizer();
  std::vector<Updater::Item> items = parameters.items(0);
  FollowingWorkPtr last;
  const auto is_new = [&] { return last != std::exchange(last, parameters.updater().repeated(items, last)); };
  EXPECT_TRUE(is_new());
  EXPECT_FALSE(is_new());
  EXPECT_EQ(optimizer.num_update(), 2) << "each is counted";
  schedule->set_base_lr(0.05);
  EXPECT_TRUE(is_new());
  optimizer.rescale_grad = 0.5;
  EXPECT_TRUE(is_new());
  optimizer.clip_gradient = 1;
  EXPECT_TRUE(is_new());
  optimizer.set_argument("momentum", 0.5);
  EXPECT_TRUE(is_new());
  optimizer.set_wd_mult({{1, 2.0}});
  EXPECT_FALSE(is_new()) << "the decay is 0";
  optimizer.wd = 0.1;
  EXPECT_TRUE(is_new());
  items[1].grad = zeros(items[1].grad.shape());
  EXPECT_TRUE(is_new());
  parameters.updater().set_state(1, zeros(items[1].weight.shape()));
  EXPECT_TRUE(is_new());
  items.pop_back();
  EXPECT_TRUE(is_new());
  EXPECT_FALSE(is_new());
}

TEST(RepeatedUpdate, DependsOnTheCountWhereItsRuleSaysSo) {
  Parameters parameters(Optimizer::create("adam"));
  EXPECT_TRUE(parameters.optimizer().update_depends_on_count());
  const FollowingWorkPtr first = parameters.updater().repeated(parameters.items(0), nullptr);
  EXPECT_NE(parameters.updater().repeated(parameters.items(0), first), first);
  EXPECT_FALSE(Optimizer::create("sgd")->update_depends_on_count());
}

TEST(RepeatedUpdate, WithAConditionIsCountedByTheCaller) {
  Parameters parameters(Optimizer::create("sgd"));
  const NDArray condition = ones({1}), other = ones({1});
  const FollowingWorkPtr first = parameters.updater().repeated(parameters.items(0), nullptr, condition);
  EXPECT_EQ(parameters.updater().repeated(parameters.items(0), first, condition), first);
  EXPECT_NE(parameters.updater().repeated(parameters.items(0), first, other), first);
  EXPECT_EQ(parameters.optimizer().num_update(), 0);
  Parameters adam(Optimizer::create("adam"));
  EXPECT_TRUE(fails_with([&] { adam.updater().repeated(adam.items(0), nullptr, condition); }, "[adam]"));
}

TEST(RepeatedUpdate, MarksWhatALaunchHasWritten) {
  Parameters parameters(Optimizer::create("sgd", {{"momentum", 0.9}}));
  const std::vector<Updater::Item>& items = parameters.items(0);
  const FollowingWorkPtr work = parameters.updater().repeated(items, nullptr);
  const NDArray momentum = parameters.updater().states().at(0).array;
  const uint64_t weight_before = items[0].weight.storage().version(), momentum_before = momentum.storage().version();
  work->mark_written();
  EXPECT_GT(items[0].weight.storage().version(), weight_before);
  EXPECT_GT(momentum.storage().version(), momentum_before);
}

TEST(RepeatedUpdate, IsRefusedByOptimizersThatDoNotRepeat) {
  Parameters parameters(Optimizer::create("nadam"));
  EXPECT_FALSE(parameters.optimizer().repeats_updates());
  EXPECT_TRUE(fails_with([&] { parameters.updater().repeated(parameters.items(0), nullptr); }, "[nadam]"));
  EXPECT_FALSE(Optimizer::create("sgd", {{"clip_global_norm", 1.0}})->repeats_updates()) << "the host reads the norm";
}

}  // namespace
}  // namespace symbind::testing
