#include "symbind/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/optim/updater.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

constexpr Tolerance close{.relative = 1e-6, .absolute = 1e-7};

TEST(Optimizer, IsMadeByNameInAnyCase) {
  EXPECT_EQ(Optimizer::create("Adam")->name(), "adam");
  EXPECT_EQ(Optimizer::create("ccSGD")->name(), "sgd");
  EXPECT_DOUBLE_EQ(Optimizer::create("adam")->learning_rate(), 0.001);
  EXPECT_DOUBLE_EQ(Optimizer::create("sgd")->learning_rate(), 0.01);
  EXPECT_DOUBLE_EQ(Optimizer::create("ftrl", {{"learning_rate", "0.5"}})->learning_rate(), 0.5);
}

TEST(Optimizer, UnknownNameListsThoseThereAre) {
  EXPECT_TRUE(fails_with([] { Optimizer::create("sdg"); }, "sdg", "sgd", "adam", "lbsgd"));
}

TEST(Optimizer, MisspeltArgumentListsTheRightOnes) {
  EXPECT_TRUE(fails_with(
      [] {
        Optimizer::create("sgd", {{"momentun", 0.9}});
      },
      "[sgd]", "momentun", "momentum", "learning_rate", "clip_gradient"));
  for (const std::string& name : list_optimizers())
    EXPECT_TRUE(fails_with([&] { Optimizer::create(name, {{"lr", 0.9}}); }, "learning_rate")) << name;
}

TEST(Optimizer, ArgumentOfTheWrongKindIsNamed) {
  EXPECT_TRUE(fails_with([] { Optimizer::create("sgd", {{"momentum", "much"}}); }, "momentum", "number", "much"));
  EXPECT_TRUE(fails_with([] { Optimizer::create("rmsprop", {{"centered", "perhaps"}}); }, "centered", "perhaps"));
  EXPECT_TRUE(fails_with([] { Optimizer::create("sgd", {{"lr_scheduler", 0.1}}); }, "lr_scheduler", "schedule"));
}

TEST(Optimizer, TruthMayBeAWordInEitherSpelling) {
  for (const auto& [word, truth] :
       std::map<std::string, bool>{{"True", true}, {"true", true}, {"False", false}, {"false", false}}) {
    const auto optimizer = Optimizer::create("rmsprop", {{"centered", word}});
    EXPECT_EQ(std::get<bool>(optimizer->argument("centered").get()), truth) << word;
  }
}

// The momentum follows the rate, but not from a rate of zero.
TEST(Optimizer, LarsGoesOnBehindARateOfZero) {
  const auto optimizer = Optimizer::create("lars", {{"learning_rate", 0.5}, {"momentum", 0.5}});
  Updater updater(optimizer);
  const auto weight = array({1, 2}), grad = array({0.5, 0.25});
  updater(0, grad, weight);
  optimizer->set_learning_rate(0);
  updater(0, grad, weight);
  const auto before = weight.to_vector<double>(), momentum = updater.states().at(0).array.to_vector<double>();
  optimizer->set_learning_rate(0.5);
  updater(0, zeros({2}), weight);
  EXPECT_TRUE(
      all_close(weight.to_vector<double>(), {before[0] + 0.5 * momentum[0], before[1] + 0.5 * momentum[1]}, close));
}

TEST(Optimizer, SetLearningRateFailsUnderASchedule) {
  const auto optimizer = Optimizer::create("sgd", {{"lr_scheduler", factor_scheduler({.step = 10})}});
  EXPECT_TRUE(fails_with([&] { optimizer->set_learning_rate(1); }, "schedule"));
  const auto free = Optimizer::create("sgd");
  free->set_learning_rate(0.5);
  EXPECT_DOUBLE_EQ(free->learning_rate(), 0.5);
}

// A gradient of zero leaves lr · wd · weight as the step.
double decay_of(Optimizer& optimizer, const ParamKey& key) {
  const auto weight = array({1});
  StateTree state = optimizer.create_state(key, weight);
  optimizer.update({key, weight, array({0}), &state});
  return 1 - weight.item();
}

TEST(Optimizer, DecaysWeightsAndGammasUnlessToldOtherwise) {
  const auto optimizer = Optimizer::create("sgd", {{"learning_rate", 1}, {"wd", 0.125}});
  EXPECT_NEAR(decay_of(*optimizer, 7), 0.125, 1e-6) << "a parameter without a name";
  optimizer->set_names({{0, "fc_weight"}, {1, "fc_bias"}, {2, "bn_gamma"}, {3, "bn_beta"}},
                       {{"bn_beta", {{"__wd_mult__", "2"}}}, {"fc_weight", {{"__lr_mult__", "0.5"}}}});
  EXPECT_NEAR(decay_of(*optimizer, 0), 0.0625, 1e-6);
  EXPECT_NEAR(decay_of(*optimizer, 1), 0, 1e-6);
  EXPECT_NEAR(decay_of(*optimizer, 2), 0.125, 1e-6);
  EXPECT_NEAR(decay_of(*optimizer, 3), 0.25, 1e-6);
  EXPECT_NEAR(decay_of(*optimizer, "fc_bias"), 0, 1e-6) << "by name";
  EXPECT_NEAR(decay_of(*optimizer, "other_bias"), 0.125, 1e-6) << "a name nobody spoke of";
  optimizer->set_names({{0, "fc_weight"}, {1, "fc_bias"}, {2, "bn_gamma"}},
                       {{"bn_gamma", {{"__wd_mult__", "None"}, {"__lr_mult__", "None"}}}});
  EXPECT_NEAR(decay_of(*optimizer, 2), 0.125, 1e-6) << "None is no multiplier";
  optimizer->set_lr_mult({{"fc_weight", 4}});
  optimizer->set_wd_mult({{1, 0.5}, {"bn_gamma", 0}});
  EXPECT_NEAR(decay_of(*optimizer, 0), 0.5, 1e-6);
  EXPECT_NEAR(decay_of(*optimizer, 1), 0.0625, 1e-6);
  EXPECT_NEAR(decay_of(*optimizer, 2), 0, 1e-6);
  optimizer->set_names({{0, "fc_weight"}}, {{"fc_weight", {{"__wd_mult__", "much"}}}});
  EXPECT_TRUE(fails_with([&] { decay_of(*optimizer, 0); }, "__wd_mult__", "fc_weight", "much"));
}

TEST(Optimizer, ManyArraysInOnePassAreUpdatedAsOneByOne) {
  const std::vector<Shape> shapes{{64, 3, 7, 7}, {64}, {1}, {1000, 512}, {0, 4}, {3, 5}};
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    for (const double momentum : {0.0, 0.9})
      for (const bool multi_precision : {false, true}) {
        SCOPED_TRACE(join(dtype, " momentum ", momentum, " multi_precision ", multi_precision));
        const LogSink before = set_log_sink([](LogLevel, std::string_view) {});
        const OptimizerParams params{{"learning_rate", 0.1}, {"momentum", momentum},
                                     {"wd", 0.01},           {"clip_gradient", 0.5},
                                     {"rescale_grad", 0.5},  {"multi_precision", multi_precision}};
        Updater one(Optimizer::create("sgd", params)), all(Optimizer::create("sgd", params));
        std::vector<NDArray> first, second;
        for (size_t i = 0; i < shapes.size(); ++i) {
          first.push_back(random_array(shapes[i], i, -1, 1, dtype));
          second.push_back(first.back().copy());
        }
        for (uint64_t step = 0; step < 3; ++step) {
          std::vector<Updater::Item> items;
          for (size_t i = 0; i < shapes.size(); ++i) {
            const NDArray grad = random_array(shapes[i], 100 * step + i, -2, 2, dtype);
            one(i, grad, first[i]);
            items.push_back({i, grad, second[i]});
          }
          all(items);
        }
        for (size_t i = 0; i < shapes.size(); ++i) EXPECT_TRUE(same_bits(second[i], first[i])) << "array " << i;
        set_log_sink(before);
      }
}

TEST(Optimizer, HalfWeightsWithoutACopyAreWarnedAbout) {
  std::string said;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view message) { said += message; });
  Updater(Optimizer::create("sgd"))(0, zeros({2}, cpu(), DType::float16), zeros({2}, cpu(), DType::float16));
  set_log_sink(before);
  EXPECT_NE(said.find("multi_precision"), std::string::npos) << said;
}

TEST(Optimizer, DcasgdHasAMomentum) {
  const auto weight = array({1}), grad = array({0.5});
  Updater updater(
      Optimizer::create("dcasgd", {{"learning_rate", 0.1}, {"momentum", 0.5}, {"lamda", 0.5}, {"wd", 0.25}}));
  updater(0, grad, weight);
  EXPECT_NEAR(weight.item(), 1 - 0.1 * (0.5 + 0.25), 1e-6);
  const double step = -0.5 * 0.075 - 0.1 * (0.5 + 0.25 * 0.925 + 0.5 * 0.25 * (0.925 - 1));
  updater(0, grad, weight);
  EXPECT_NEAR(weight.item(), 0.925 + step, 1e-6);
}

TEST(Optimizer, SgldAddsNoiseOfTheRatesVariance) {
  seed(7);
  const int64_t count = 200000;
  const double lr = 0.04, wd = 0.5;
  const NDArray weight = full({count}, 2), grad = full({count}, 3);
  Updater updater(
      Optimizer::create("sgld", {{"learning_rate", lr}, {"wd", wd}, {"rescale_grad", 2}, {"clip_gradient", 4}}));
  updater(0, grad, weight);
  const auto values = weight.to_vector<double>();
  double mean = 0, variance = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) variance += (value - mean) * (value - mean) / count;
  const double deviation = std::sqrt(lr);
  EXPECT_NEAR(mean, 2 - lr / 2 * (4 + wd * 2), 5 * deviation / std::sqrt(count));
  EXPECT_NEAR(variance, lr, 5 * lr * std::sqrt(2.0 / count));
  const NDArray again = full({count}, 2);
  seed(7);
  Updater(Optimizer::create("sgld", {{"learning_rate", lr}, {"wd", wd}, {"rescale_grad", 2}, {"clip_gradient", 4}}))(
      0, grad, again);
  EXPECT_TRUE(same_bits(again, weight));
}

TEST(Optimizer, SignSgdIsSignumWithoutMomentum) {
  const auto weight = array({1, 1, 1});
  Updater(Optimizer::create("signsgd", {{"learning_rate", 0.25}}))(0, array({0.5, -3, 0}), weight);
  EXPECT_TRUE(all_close(weight.to_vector<double>(), {0.75, 1.25, 1}, close));
}

class Halver : public Optimizer {
 public:
  explicit Halver(const OptimizerParams& params) : Optimizer(params) {}
  std::string name() const override { return "halver"; }
  StateTree create_state(const ParamKey&, const NDArray&) override { return {}; }
  void update(const Update& one) override { one.weight.fill(one.weight.item() / 2); }
};

TEST(Optimizer, OnesOfOnesOwnAreFoundByName) {
  register_optimizer("Halver", [](const OptimizerParams& params) { return std::make_shared<Halver>(params); });
  const auto names = list_optimizers();
  EXPECT_EQ(std::count(names.begin(), names.end(), "halver"), 1);
  const auto weight = array({4});
  Updater(Optimizer::create("halver"))(0, weight, weight);
  EXPECT_EQ(weight.item(), 2);
}

TEST(Optimizer, ArgumentsOfOneKindCanBeReadAndSet) {
  const auto rmsprop = Optimizer::create("rmsprop", {{"gamma1", 0.75}});
  EXPECT_EQ(comma_separated(rmsprop->argument_names()), "centered, clip_weights, epsilon, gamma1, gamma2");
  EXPECT_EQ(std::get<double>(rmsprop->argument("gamma1").get()), 0.75);
  EXPECT_EQ(std::get<std::string>(rmsprop->argument("clip_weights").get()), "None");
  rmsprop->set_argument("clip_weights", 2.5);
  EXPECT_EQ(std::get<double>(rmsprop->argument("clip_weights").get()), 2.5);
  rmsprop->set_argument("centered", true);
  EXPECT_EQ(rmsprop->create_state(0, zeros({2})).tuple.size(), 3u);
  EXPECT_THROW(rmsprop->argument("momentum"), Error);
  EXPECT_THROW(rmsprop->set_argument("gamma1", "much"), Error);
}

// An optimizer that leaves its arithmetic to another.
class Delegating final : public Optimizer {
 public:
  explicit Delegating(OptimizerPtr rule) : Optimizer({{"learning_rate", 0.5}, {"wd", 0.25}}), rule_(std::move(rule)) {
    rule_->serve(*this);
  }
  std::string name() const override { return "delegating"; }
  StateTree create_state(const ParamKey& key, const NDArray& weight) override {
    return rule_->create_state(key, weight);
  }
  void update(const Update& one) override { rule_->update(one); }
  ResumeState resume_state() const override { return rule_->resume_state(); }

 private:
  OptimizerPtr rule_;
};

TEST(Optimizer, OneThatServesAnotherUsesTheOthersRatesNamesAndCounts) {
  const auto rule = Optimizer::create("nadam", {{"learning_rate", 100}, {"wd", 100}});
  Delegating outer(rule);
  outer.set_names({{0, "fc_weight"}, {1, "fc_bias"}}, {});
  outer.set_lr_mult({{"fc_weight", 2.0}});
  const auto weight = array({1, 2});
  StateTree state = outer.create_state(0, weight);
  outer.update({0, weight, array({1, 1}), &state});
  EXPECT_EQ(outer.num_update(), 1);
  EXPECT_EQ(rule->count_of(0), 1);
  EXPECT_EQ(rule->lr_of(0), 1.0);
  EXPECT_EQ(rule->wd_of(0), 0.25);
  EXPECT_EQ(rule->wd_of(1), 0);
  const ResumeState saved = outer.resume_state();
  EXPECT_EQ(saved.num_update, 1);
  EXPECT_EQ(saved.numbers.count("optimizer:delegating"), 1u);
  EXPECT_EQ(saved.numbers.count("m_schedule"), 1u);
}

}  // namespace
}  // namespace symbind::testing
