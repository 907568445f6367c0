#include "symbind/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/optim/clip_global_norm.h"
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
TEST(Optimizer, LarsContinuesAfterARateOfZero) {
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

TEST(Optimizer, SetLearningRateWarnsUnderAScheduleAndChangesNothing) {
  const auto optimizer = Optimizer::create("sgd", {{"lr_scheduler", factor_scheduler({.step = 10})}});
  std::string warned;
  set_log_sink([&](LogLevel, std::string_view text) { warned += text; });
  const double before = optimizer->learning_rate();
  optimizer->set_learning_rate(1);
  set_log_sink({});
  EXPECT_NE(warned.find("schedule"), std::string::npos);
  EXPECT_EQ(optimizer->learning_rate(), before);
  const auto free = Optimizer::create("sgd");
  free->set_learning_rate(0.5);
  EXPECT_DOUBLE_EQ(free->learning_rate(), 0.5);
}

TEST(Optimizer, RefusesRatesThatAreNotFinite) {
  const double nan = std::nan(""), infinity = HUGE_VAL;
  for (const double rate : {nan, infinity, -infinity}) {
    for (const char* name : {"sgd", "adam"})
      EXPECT_TRUE(fails_with([&] { Optimizer::create(name, {{"learning_rate", rate}}); }, "learning_rate", "finite"));
    const auto optimizer = Optimizer::create("sgd");
    EXPECT_TRUE(fails_with([&] { optimizer->set_learning_rate(rate); }, "[sgd]", "learning rate", "finite"));
    EXPECT_TRUE(fails_with([&] { optimizer->set_own_lr(rate); }, "learning rate", "finite"));
    EXPECT_DOUBLE_EQ(optimizer->learning_rate(), 0.01);
    optimizer->set_lr_mult({{"w", rate}});
    EXPECT_TRUE(fails_with([&] { optimizer->lr_of("w"); }, "multiplier", "w", "finite"));
  }
  // A custom schedule.
  class Diverging final : public LRScheduler {
   public:
    Diverging() : LRScheduler(0.1, {}) {}

   protected:
    double after_warm_up(int64_t num_update) override { return num_update < 2 ? 0.1 : HUGE_VAL; }
  };
  const auto optimizer = Optimizer::create("sgd", {{"lr_scheduler", LRSchedulerPtr(std::make_shared<Diverging>())}});
  optimizer->update_count("w");
  EXPECT_DOUBLE_EQ(optimizer->lr_of("w"), 0.1);
  optimizer->update_count("w");
  EXPECT_TRUE(fails_with([&] { optimizer->lr_of("w"); }, "schedule", "update 2", "finite"));
}

TEST(Optimizer, TakesItsArgumentsAsAStruct) {
  const auto sgd = Optimizer::create(optim::Sgd{.learning_rate = 0.5, .momentum = 0.9, .wd = 1e-4, .clip_gradient = 2});
  EXPECT_EQ(sgd->name(), "sgd");
  EXPECT_DOUBLE_EQ(sgd->learning_rate(), 0.5);
  EXPECT_DOUBLE_EQ(std::get<double>(sgd->argument("momentum").get()), 0.9);
  EXPECT_DOUBLE_EQ(sgd->wd, 1e-4);
  EXPECT_EQ(sgd->clip_gradient, 2);
  EXPECT_DOUBLE_EQ(Optimizer::create(optim::Adam{})->learning_rate(), 0.001);
  // The schedule decides, as it does with the map.
  const auto scheduled = Optimizer::create(optim::Sgd{.lr_scheduler = factor_scheduler({.step = 10, .base_lr = 0.3})});
  EXPECT_DOUBLE_EQ(scheduled->learning_rate(), 0.3);
  EXPECT_DOUBLE_EQ(Optimizer::create(optim::Sgd{})->learning_rate(), 0.01);
}

template <class... Kinds>
std::map<std::string, OptimizerParams> defaults_of() {
  return {{Kinds::name, params_of(Kinds{})}...};
}

// A struct as it is gives the optimizer that its name gives, with the same values of its own.
TEST(Optimizer, StructsHaveTheDefaultsOfTheNames) {
  using namespace optim;
  const auto all = defaults_of<Sgd, Nag, Sgld, Dcasgd, Signum, SignSgd, Lars, Lbsgd, Adam, AdamW, Adamax, Nadam, Lamb,
                               AdaGrad, GroupAdaGrad, RmsProp, AdaDelta, Ftrl, Ftml>();
  for (const std::string& name : list_optimizers()) {
    if (name == "ccsgd" || name == "test" || name == "halver") continue;  // sgd, for tests, and of another test
    ASSERT_TRUE(all.contains(name)) << name << " has no struct in optim/options.h";
  }
  for (const auto& [name, params] : all) {
    const auto named = Optimizer::create(name), typed = Optimizer::create(name, params);
    EXPECT_EQ(typed->learning_rate(), named->learning_rate()) << name;
    for (const std::string& argument : named->argument_names()) {
      const auto expected = named->argument(argument), actual = typed->argument(argument);
      if (const auto* number = std::get_if<double>(&expected.get())) {
        EXPECT_EQ(std::get<double>(actual.get()), *number) << name << " " << argument;
      }
    }
  }
}

// Three steps of MXNet 1.9.1's adamw_update with lr = the correction of the means and eta = the learning rate.
TEST(Optimizer, AdamWDecaysTheWeightBesideTheStep) {
  const auto run = [](const optim::AdamW& options) {
    const auto optimizer = Optimizer::create(options);
    NDArray weight = array({1, -2, 3});
    StateTree state = optimizer->create_state(0, weight);
    for (const std::vector<float>& grad :
         {std::vector<float>{.5f, -1, 2}, std::vector<float>{1, .25f, -3}, std::vector<float>{-2, .5f, .125f}})
      optimizer->update({0, weight, array(grad, {3}), &state});
    return weight;
  };
  EXPECT_TRUE(all_close(run({.learning_rate = 0.05, .wd = 0.1, .clip_gradient = 0.8, .rescale_grad = 0.5}),
                        array(std::vector<float>{0.89239228f, -1.894925f, 2.9086113f}, {3}), close));
  EXPECT_TRUE(all_close(run({.correct_bias = false}),
                        array(std::vector<float>{0.99369574f, -1.994608f, 2.998728f}, {3}), close));
}

TEST(Optimizer, AdamaxMovesNoWeightBeforeItsFirstGradient) {
  const auto optimizer = Optimizer::create(optim::Adamax{.learning_rate = 0.5});
  const NDArray weight = array({1, 1, 1});
  StateTree state = optimizer->create_state(0, weight);
  optimizer->update({0, weight, array({0, 1, 0}), &state});
  EXPECT_TRUE(all_close(weight, array({1, 0.5, 1}), close));
  optimizer->update({0, weight, array({1, 0, std::nan("")}), &state});
  const auto after = weight.to_vector<double>();
  const double rate = 0.5 / (1 - 0.9 * 0.9);
  EXPECT_NEAR(after[0], 1 - rate * 0.1, 1e-6);
  EXPECT_NEAR(after[1], 0.5 - rate * 0.09 / 0.999, 1e-6);
  EXPECT_TRUE(std::isnan(after[2])) << "a gradient that is not a number shows";
}

TEST(ClipGlobalNorm, ScalesAllArraysAlike) {
  const NDArray a = array({3, 0}), b = array({0, 4});
  EXPECT_DOUBLE_EQ(global_norm({a, b}), 5);
  EXPECT_DOUBLE_EQ(clip_global_norm({a, b}, 10), 5);
  EXPECT_TRUE(same_bits(a, array({3, 0})));
  EXPECT_DOUBLE_EQ(clip_global_norm({a, b}, 1), 5);
  EXPECT_TRUE(all_close(a, array(std::vector<float>{0.6f, 0}, {2}), close));
  EXPECT_TRUE(all_close(b, array(std::vector<float>{0, 0.8f}, {2}), close));
  // Of several devices and types.
  const NDArray half = array({3}).astype(DType::float16), other = array({4}).as_in_context(cpu(1));
  EXPECT_DOUBLE_EQ(clip_global_norm({half, other}, 2.5), 5);
  EXPECT_EQ(half.to_vector<double>()[0], 1.5);
  EXPECT_EQ(other.to_vector<double>()[0], 2);
}

TEST(ClipGlobalNorm, LeavesWhatIsNotFiniteAndSaysSo) {
  std::string warning;
  set_log_sink([&](LogLevel, std::string_view message) { warning = message; });
  const NDArray a = array(std::vector<double>{1, std::nan("")}, {2});
  EXPECT_TRUE(std::isnan(clip_global_norm({a}, 0.5)));
  EXPECT_NE(warning.find("nan"), std::string::npos);
  EXPECT_EQ(a.to_vector<double>()[0], 1);
  set_log_sink({});
  EXPECT_TRUE(fails_with([&] { clip_global_norm({}, 1); }, "no arrays"));
  EXPECT_TRUE(fails_with([&] { clip_global_norm({a}, 0); }, "max_norm", "positive"));
  EXPECT_TRUE(fails_with([&] { Optimizer::create(optim::Sgd{.clip_global_norm = -1}); }, "clip_global_norm", "-1"));
}

TEST(ClipGlobalNorm, OfAnOptimizerWritesNoGradient) {
  Updater updater(Optimizer::create(optim::Sgd{.learning_rate = 1, .clip_global_norm = 1, .rescale_grad = 0.5}));
  const NDArray grads[] = {array({6}), array({8})}, weights[] = {array({0}), array({0})};
  updater({{0, grads[0], weights[0]}, {1, grads[1], weights[1]}});  // of norm 5 once rescaled
  EXPECT_NEAR(weights[0].item(), -0.6, 1e-6);
  EXPECT_NEAR(weights[1].item(), -0.8, 1e-6);
  EXPECT_EQ(grads[0].item(), 6);
  EXPECT_EQ(updater.optimizer()->rescale_grad, 0.5);
}

TEST(ClipGlobalNorm, OfAnOptimizerLetsWhatIsNotFiniteThroughAndSaysSoOnce) {
  Updater updater(Optimizer::create(optim::Sgd{.learning_rate = 1, .clip_global_norm = 1, .rescale_grad = 1}));
  int warnings = 0;
  set_log_sink([&](LogLevel, std::string_view message) { warnings += message.find("inf") != std::string_view::npos; });
  const NDArray weight = array({0}), other = array({0});
  const NDArray infinite = array(std::vector<double>{std::numeric_limits<double>::infinity()}, {1});
  for (int step = 0; step < 3; ++step) updater({{0, infinite, weight}, {1, array({8}), other}});
  set_log_sink({});
  EXPECT_EQ(other.item(), -24) << "unscaled";
  EXPECT_EQ(warnings, 1);
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
  EXPECT_NEAR(decay_of(*optimizer, "other_bias"), 0.125, 1e-6) << "a name without a multiplier";
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

}  // namespace
}  // namespace symbind::testing
