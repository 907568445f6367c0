#include "symbind/optim/rule_optimizer.h"

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/files/states.h"
#include "symbind/optim/updater.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// Notes the steps it is given; its state is a number of updates.
class Recorder : public UpdateRule {
 public:
  std::string name() const override { return "recorder"; }
  std::vector<Argument> arguments() override { return {{"size", &size_}, {"bound", &bound_}}; }
  void check_arguments() const override { require(size_ > 0, "[recorder] size must be positive: ", size_); }
  std::optional<double> default_learning_rate() const override { return 0.125; }
  bool decays(const std::string& parameter) const override { return parameter == "b"; }
  bool joint() const override { return joint_; }
  Counting counting() const override { return counting_; }

  StateTree create_state(const std::string& name, const NDArray& weight) const override {
    created_.push_back(name);
    return zeros(weight.shape(), weight.context(), weight.dtype());
  }
  void update(const Step& step, const StepOptions& options) override {
    steps_.push_back(step);
    options_ = options;
  }
  void update_many(std::span<const Step> steps, const StepOptions& options) override {
    ++passes_;
    UpdateRule::update_many(steps, options);
  }
  void save(ResumeState& state) const override { state.numbers["passes"] = passes_; }
  void restore(const ResumeState& state) override { passes_ = static_cast<int>(state.numbers.at("passes")); }

  int64_t size_ = 4;
  std::optional<double> bound_;
  bool joint_ = false;
  Counting counting_ = Counting::before_rate;
  mutable std::vector<std::string> created_;
  std::vector<Step> steps_;
  StepOptions options_;
  int passes_ = 0;
};

struct Recording {
  explicit Recording(const OptimizerParams& params = {})
      : owned(std::make_unique<Recorder>()), rule(*owned), optimizer(std::move(owned), params) {}
  std::unique_ptr<Recorder> owned;
  Recorder& rule;
  RuleOptimizer optimizer;
};

// A rate of a tenth of the number of updates.
LRSchedulerPtr growing() {
  class Growing final : public LRScheduler {
   public:
    Growing() : LRScheduler(0.1, {}) {}

   protected:
    double after_warm_up(int64_t num_update) override { return 0.1 * static_cast<double>(num_update); }
  };
  return std::make_shared<Growing>();
}

TEST(RuleOptimizer, GivesEachStepItsRateDecayAndCount) {
  Recording made({{"learning_rate", 0.5}, {"wd", 0.25}, {"rescale_grad", 2}, {"clip_gradient", 3}});
  made.optimizer.set_names({{0, "a"}, {1, "b"}}, {});
  made.optimizer.set_lr_mult({{"a", 2.0}});
  NDArray weight = zeros({2});
  StateTree state = made.optimizer.create_state(0, weight);
  made.optimizer.update({0, weight, ones({2}), &state});
  made.optimizer.update({1, weight, ones({2}), &state});
  made.optimizer.update({0, weight, ones({2}), &state});
  EXPECT_EQ(made.rule.created_, std::vector<std::string>{"a"});
  const auto& steps = made.rule.steps_;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].name, "a");
  EXPECT_EQ(steps[0].learning_rate, 0.5);
  EXPECT_EQ(steps[0].lr, 1.0);
  EXPECT_EQ(steps[0].wd, 0) << "the rule says that a does not decay";
  EXPECT_EQ(steps[1].lr, 0.5);
  EXPECT_EQ(steps[1].wd, 0.25);
  EXPECT_EQ(steps[2].count, 2);
  EXPECT_EQ(steps[2].state, &state);
  EXPECT_EQ(made.rule.options_.rescale_grad, 2);
  EXPECT_EQ(made.rule.options_.clip_gradient, 3);
  EXPECT_EQ(made.optimizer.num_update(), 2);
}

TEST(RuleOptimizer, CountsWhenItsRuleSays) {
  using Counting = UpdateRule::Counting;
  const auto rates = [](Counting counting) {
    Recording made({{"lr_scheduler", growing()}});
    made.rule.counting_ = counting;
    StateTree state;
    for (int i = 0; i < 2; ++i) made.optimizer.update({0, zeros({1}), zeros({1}), &state});
    EXPECT_EQ(made.optimizer.num_update(), counting == Counting::never ? 0 : 2);
    return std::vector<double>{made.rule.steps_[0].lr, made.rule.steps_[1].lr};
  };
  EXPECT_EQ(rates(Counting::before_rate), (std::vector<double>{0.1, 0.2}));
  EXPECT_EQ(rates(Counting::after_rate), (std::vector<double>{0, 0.1}));
  EXPECT_EQ(rates(Counting::never), (std::vector<double>{0, 0}));
  EXPECT_EQ(rates(Counting::without_rate), (std::vector<double>{0, 0}));
}

TEST(RuleOptimizer, CountsAllParametersOfAJointUpdateFirst) {
  const auto rate_of_first = [](bool joint) {
    Recording made({{"lr_scheduler", growing()}});
    made.rule.joint_ = joint;
    StateTree state;
    made.optimizer.update({1, zeros({1}), zeros({1}), &state});  // parameter 1 is ahead by one
    made.rule.steps_.clear();
    const Update updates[] = {{0, zeros({1}), zeros({1}), &state}, {1, zeros({1}), zeros({1}), &state}};
    made.optimizer.update_many(updates);
    EXPECT_EQ(made.rule.passes_, joint ? 2 : 3);
    EXPECT_EQ(made.rule.steps_.size(), 2u);
    return made.rule.steps_[0].lr;
  };
  EXPECT_EQ(rate_of_first(false), 0.1);
  EXPECT_EQ(rate_of_first(true), 0.2);
}

// An update that a device leaves out, and what is asked about it: `made` counts its calls.
class ConditionalUpdates : public ::testing::Test {
 protected:
  void update(bool is_made) {
    ResumeState before = optimizer.resume_state();
    StateTree state;
    optimizer.update({"a", zeros({1}), zeros({1}), &state});
    optimizer.count_if(
        [this, is_made] {
          ++asked;
          return is_made;
        },
        std::move(before));
  }

  // The rate is halved after every second update.
  LRSchedulerPtr schedule = std::make_shared<FactorScheduler>(FactorSchedule{.step = 2, .factor = 0.5, .base_lr = 0.5});
  Recording made{{{"learning_rate", 0.5}, {"lr_scheduler", schedule}}};
  Optimizer& optimizer = made.optimizer;
  int asked = 0;
};

TEST_F(ConditionalUpdates, AreCountedIfTheyWereMade) {
  for (int i = 0; i < 4; ++i) {
    update(true);
    EXPECT_EQ(asked, i) << "the result of the last update is not needed yet";
  }
  EXPECT_EQ(optimizer.num_update(), 4);
  EXPECT_EQ(optimizer.count_of("a"), 4);
  EXPECT_EQ(asked, 4) << "once for each update";
  EXPECT_EQ(made.rule.steps_.back().lr, 0.25);
}

TEST_F(ConditionalUpdates, LeaveNoTraceIfTheyWereNotMade) {
  update(true);
  update(true);
  const ResumeState before = optimizer.resume_state();
  update(false);
  EXPECT_EQ(made.rule.steps_.back().count, 3);
  EXPECT_EQ(made.rule.steps_.back().lr, 0.25);
  EXPECT_EQ(optimizer.learning_rate(), 0.5) << "that of the second update";
  const ResumeState after = optimizer.resume_state();
  EXPECT_EQ(after.num_update, before.num_update);
  EXPECT_EQ(after.index_update_count, before.index_update_count);
  EXPECT_EQ(after.numbers, before.numbers) << "of the schedule and the rule";
  update(true);
  EXPECT_EQ(made.rule.steps_.back().count, 3);
  EXPECT_EQ(made.rule.steps_.back().lr, 0.25);
}

TEST_F(ConditionalUpdates, AreAskedAboutAgainAfterAFaultOfTheDevice) {
  for (const bool is_made : {true, false}) {
    const int64_t before = optimizer.num_update();
    ResumeState state_before = optimizer.resume_state();
    optimizer.update_count("a");
    optimizer.count_if(
        [&, faults = 0]() mutable -> bool {
          if (faults++ == 0) throw Error("a fault");
          return is_made;
        },
        std::move(state_before));
    EXPECT_TRUE(fails_with([&] { optimizer.num_update(); }, "a fault"));
    EXPECT_EQ(optimizer.num_update(), before + is_made);
  }
}

TEST_F(ConditionalUpdates, OfAParameterThatHadNoneLeaveItUncounted) {
  update(false);
  EXPECT_TRUE(optimizer.resume_state().index_update_count.empty());
  EXPECT_EQ(optimizer.count_of("a"), 0);
}

TEST_F(ConditionalUpdates, KeepAScheduleThatTheUserHasChangedMeanwhile) {
  update(true);
  update(false);
  schedule->set_base_lr(0.125);
  EXPECT_EQ(optimizer.num_update(), 1);
  EXPECT_EQ(optimizer.learning_rate(), 0.125);
}

TEST_F(ConditionalUpdates, AreForgottenWhenStatesAreRestored) {
  update(true);
  const ResumeState first = optimizer.resume_state();
  update(false);
  optimizer.restore(first);
  EXPECT_EQ(optimizer.num_update(), 1);
  update(true);
  optimizer.restore(first);
  EXPECT_EQ(optimizer.num_update(), 1);
}

TEST(RuleOptimizer, IsConditionalWhereUpdatesAreElementwiseOperators) {
  const auto is_conditional = [](const std::string& name, const OptimizerParams& params = {}) {
    return Optimizer::create(name, params)->is_conditional();
  };
  for (const char* name : {"sgd", "nag", "adam", "adamw", "rmsprop", "ftrl", "signum"})
    EXPECT_TRUE(is_conditional(name)) << name;
  for (const char* name : {"lars", "lamb", "lbsgd", "nadam", "sgld", "groupadagrad", "test"})
    EXPECT_FALSE(is_conditional(name)) << name;
  EXPECT_FALSE(is_conditional("sgd", {{"clip_global_norm", 1.0}})) << "the host reads the norm";
  EXPECT_TRUE(is_conditional("sgd", {{"multi_precision", true}}));
  EXPECT_FALSE(is_conditional("adam", {{"multi_precision", true}})) << "the copy is written separately";
}

TEST(RuleOptimizer, UpdatesAFloat32CopyWhereTheRuleDoesNot) {
  Recording made({{"multi_precision", true}});
  Updater updater(std::shared_ptr<Optimizer>(&made.optimizer, [](Optimizer*) {}));
  const NDArray weight = ones({2}, cpu(), DType::float16), grad = ones({2}, cpu(), DType::float16);
  updater(0, grad, weight);
  const StateTree& state = updater.states().at(0);
  ASSERT_TRUE(state.is_tuple);
  EXPECT_EQ(state.tuple[0].array.dtype(), DType::float32);
  ASSERT_EQ(made.rule.steps_.size(), 1u);
  EXPECT_EQ(made.rule.steps_[0].weight.dtype(), DType::float32);
  EXPECT_EQ(made.rule.steps_[0].grad.dtype(), DType::float32);
}

TEST(RuleOptimizer, TakesTheArgumentsOfItsRule) {
  Recording made({{"size", 2}, {"bound", 0.5}});
  EXPECT_EQ(made.rule.size_, 2);
  EXPECT_EQ(made.optimizer.own_lr(), 0.125);
  EXPECT_EQ(made.optimizer.argument_names(), (std::vector<std::string>{"bound", "size"}));
  made.optimizer.set_argument("bound", "None");
  EXPECT_FALSE(made.rule.bound_.has_value());
  EXPECT_TRUE(fails_with([] { Recording({{"sizes", 2}}); }, "[recorder]", "sizes", "begin_num_update, bound"));
  EXPECT_TRUE(fails_with([] { Recording({{"size", 0}}); }, "[recorder] size must be positive: 0"));
  EXPECT_TRUE(fails_with([&] { made.optimizer.argument("sizes"); }, "[recorder]", "sizes", "bound, size"));
}

TEST(RuleOptimizer, SavesWhatItsRuleRemembers) {
  Recording made, other;
  made.rule.passes_ = 7;
  made.optimizer.update_count("a");
  const ResumeState saved = made.optimizer.resume_state();
  EXPECT_EQ(saved.numbers.count("optimizer:recorder"), 1u);
  other.optimizer.restore(saved);
  EXPECT_EQ(other.rule.passes_, 7);
  EXPECT_EQ(other.optimizer.count_of("a"), 1);
}

// One of the library's, with something of its own besides.
class Halving final : public RuleOptimizer {
 public:
  Halving() : RuleOptimizer(make_update_rule("sgd"), {{"learning_rate", 1}}) {}
  std::string name() const override { return "halving"; }
  void update(const Update& one) override { RuleOptimizer::update({one.key, one.weight, one.grad / 2, one.state}); }
};

TEST(RuleOptimizer, CanBeDerivedFrom) {
  Halving optimizer;
  const NDArray weight = array({4});
  StateTree state = optimizer.create_state(0, weight);
  optimizer.update({0, weight, array({2}), &state});
  EXPECT_EQ(weight.item(), 3);
  EXPECT_EQ(optimizer.num_update(), 1);
  EXPECT_EQ(optimizer.update_unit(), UpdateUnit::parameter) << "an override may look at whole parameters";
  EXPECT_FALSE(optimizer.is_conditional() || optimizer.repeats_updates()) << "a device cannot run the override alone";
}

TEST(RuleOptimizer, UpdatersCallWhatADerivedClassOverrides) {
  for (const DType dtype : {DType::float32, DType::float16}) {
    const auto halving = std::make_shared<Halving>();
    halving->multi_precision = true;
    Updater updater(halving);
    const std::vector<NDArray> weights{array({4}, cpu(), dtype), array({6}, cpu(), dtype)};
    updater({{0, array({2}, cpu(), dtype), weights[0]}, {1, array({4}, cpu(), dtype), weights[1]}});
    EXPECT_EQ(weights[0].item(), 3) << dtype;
    EXPECT_EQ(weights[1].item(), 4) << dtype;
  }
}

TEST(UpdateRules, AreKnownByNameAndStartWithTheirDefaults) {
  for (const std::string& name : list_update_rules()) EXPECT_FALSE(make_update_rule(name)->name().empty()) << name;
  EXPECT_TRUE(fails_with([] { make_update_rule("SGD"); }, "SGD", "sgd"));
}

}  // namespace
}  // namespace symbind::testing
