#include "symbind/optim/updater.h"

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/core/random_cursors.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

OptimizerParams params_for(const std::string& name) {
  if (name == "sgd" || name == "nag" || name == "lars")
    return {{"momentum", 0.9}, {"lr_scheduler", factor_scheduler({.step = 3, .factor = 0.5, .base_lr = 0.1})}};
  return {};
}

void step(Updater& updater, const std::vector<NDArray>& weights, uint64_t number) {
  for (size_t i = 0; i < weights.size(); ++i) updater(i, random_array(weights[i].shape(), 10 * number + i), weights[i]);
}

std::vector<NDArray> copies(const std::vector<NDArray>& arrays) {
  std::vector<NDArray> result;
  for (const NDArray& each : arrays) result.push_back(each.copy());
  return result;
}

TEST(Updater, GoesOnFromItsStatesBitForBit) {
  for (const std::string& name : list_optimizers()) {
    if (name == "halver") continue;
    SCOPED_TRACE(name);
    seed(3);
    std::vector<NDArray> weights{random_array({4, 3}, 1), random_array({5, 1}, 2)};
    Updater whole(Optimizer::create(name, params_for(name)));
    for (uint64_t number = 0; number < 5; ++number) step(whole, weights, number);
    const std::string saved = whole.get_states();
    const std::vector<NDArray> resumed_weights = copies(weights);
    for (uint64_t number = 5; number < 10; ++number) step(whole, weights, number);

    seed(99);
    Updater resumed(Optimizer::create(name, params_for(name)));
    resumed.set_states(saved);
    EXPECT_EQ(resumed.optimizer()->num_update(), name == "test" ? 0 : 5);
    for (uint64_t number = 5; number < 10; ++number) step(resumed, resumed_weights, number);
    for (size_t i = 0; i < weights.size(); ++i) EXPECT_TRUE(same_bits(resumed_weights[i], weights[i]));
  }
}

TEST(Updater, StatesOfAnotherOptimizerFailAndChangeNothing) {
  const auto weight = random_array({3}, 1), grad = random_array({3}, 2);
  Updater adam(Optimizer::create("adam")), sgd(Optimizer::create("sgd", {{"momentum", 0.9}}));
  adam(0, grad, weight);
  sgd(0, grad, weight);
  const NDArray momentum = sgd.states().at(0).array.copy();
  EXPECT_TRUE(fails_with([&] { sgd.set_states(adam.get_states(), "digits-0003.states"); }, "digits-0003.states", "adam",
                         "sgd"));
  EXPECT_TRUE(same_bits(sgd.states().at(0).array, momentum));
  Updater nag(Optimizer::create("nag", {{"momentum", 0.9}}));
  EXPECT_TRUE(fails_with([&] { nag.set_states(sgd.get_states()); }, "sgd", "nag"));
  EXPECT_TRUE(nag.states().empty());
  // Without a trailer the form of the states tells.
  SavedStates foreign;
  foreign.states.emplace_back("fc_weight", StateTree::of({zeros({3}), zeros({3})}));
  EXPECT_TRUE(fails_with([&] { sgd.set_states(foreign); }, "fc_weight", "(array, array)", "sgd"));
  foreign.states.clear();
  foreign.optimizer = PickledObject{"mxnet.optimizer.optimizer", "FTML", {}};
  EXPECT_TRUE(fails_with([&] { sgd.set_states(foreign); }, "ftml", "sgd"));
}

TEST(Updater, AnotherScheduleStartsFromTheCountOfUpdates) {
  const auto make = [](double base_lr) {
    return Optimizer::create("sgd",
                             {{"lr_scheduler", factor_scheduler({.step = 2, .factor = 0.5, .base_lr = base_lr})}});
  };
  const auto weight = array({1}), grad = array({0});
  Updater first(make(0.4));
  for (int i = 0; i < 5; ++i) first(0, grad, weight);
  EXPECT_DOUBLE_EQ(first.optimizer()->learning_rate(), 0.1);
  Updater second(make(0.8));
  second.set_states(first.get_states());
  EXPECT_DOUBLE_EQ(second.optimizer()->learning_rate(), 0.2);
}

TEST(Updater, StatesMoveToTheirWeightsDevice) {
  const auto weight = random_array({3}, 1), grad = random_array({3}, 2);
  Updater first(Optimizer::create("adam"));
  first(0, grad, weight);
  Updater second(Optimizer::create("adam"));
  second.set_states(first.get_states());
  const Context other = cpu(1);
  const NDArray there = weight.as_in_context(other);
  second(0, grad.as_in_context(other), there);
  EXPECT_EQ(second.states().at(0).tuple[0].array.context(), other);
  first(0, grad, weight);
  EXPECT_TRUE(same_bits(there.as_in_context(cpu()), weight));
}

TEST(Updater, DumpsTheOptimizerToo) {
  const auto weight = random_array({3}, 1), grad = random_array({3}, 2);
  Updater first(Optimizer::create("adam", {{"wd", 0.5}, {"learning_rate", 0.25}, {"clip_gradient", 2}}));
  first(0, grad, weight);
  Updater same(Optimizer::create("adam")), other(Optimizer::create("adam"));
  same.set_states(first.get_states(true));
  EXPECT_EQ(same.optimizer()->num_update(), 1);
  EXPECT_EQ(same.optimizer()->wd, 0.5);
  EXPECT_EQ(same.optimizer()->learning_rate(), 0.25);
  EXPECT_EQ(same.optimizer()->clip_gradient, 2);
  other.set_states(first.get_states());
  EXPECT_EQ(other.optimizer()->wd, 0);
  EXPECT_EQ(other.optimizer()->learning_rate(), 0.001);
}

TEST(Updater, TakesOverFromMXNetsOptimizer) {
  SavedStates theirs;
  theirs.states.emplace_back(0, StateTree(zeros({3})));
  theirs.optimizer = PickledObject{
      "mxnet.optimizer.optimizer", "SGD", {{"num_update", int64_t{7}}, {"lr", 0.5}, {"wd", 0.25}, {"momentum", 0.9}}};
  Updater updater(Optimizer::create("sgd", {{"momentum", 0.9}}));
  updater.set_states(theirs);
  EXPECT_EQ(updater.optimizer()->num_update(), 7);
  EXPECT_EQ(updater.optimizer()->learning_rate(), 0.5);
  updater(0, random_array({3}, 1), random_array({3}, 2));
  EXPECT_EQ(updater.optimizer()->num_update(), 8);
  theirs.optimizer->name = "ccSGD";  // an older name of it
  EXPECT_NO_THROW(updater.set_states(theirs));
  EXPECT_EQ(updater.optimizer()->num_update(), 7);
}

}  // namespace
}  // namespace symbind::testing
