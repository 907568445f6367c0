// A store that updates by an optimizer, and the optimizer's states in files.
#include <gtest/gtest.h>

#include "symbind/kvstore/kvstore.h"
#include "symbind/optim/updater.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind::testing {
namespace {

const KVStore::Keys keys{"fc1_weight", "fc1_bias", "fc2_weight"};
const std::vector<Shape> shapes{{4, 3}, {4}, {2, 4}};

OptimizerPtr momentum_sgd() { return Optimizer::create("sgd", {{"learning_rate", 0.1}, {"momentum", 0.9}}); }

std::vector<NDArray> weights() {
  std::vector<NDArray> result;
  for (size_t i = 0; i < shapes.size(); ++i) result.push_back(random_array(shapes[i], 10 + i));
  return result;
}

NDArray gradient(size_t parameter, int step, int device) {
  return random_array(shapes[parameter], 100 * static_cast<uint64_t>(step) + 10 * parameter, -1, 1, DType::float32,
                      cpu(device));
}

void push_step(KVStore& store, int step) {
  KVStore::Values values;
  for (size_t i = 0; i < keys.size(); ++i) values.push_back({gradient(i, step, 0), gradient(i, step, 1)});
  store.push(keys, values);
}

std::vector<NDArray> pulled(KVStore& store) {
  std::vector<NDArray> outs;
  KVStore::Values lists;
  for (const Shape& shape : shapes) {
    outs.push_back(zeros(shape));
    lists.push_back({outs.back()});
  }
  store.pull(keys, lists);
  return outs;
}

KVStorePtr started(const std::string& type) {
  auto store = KVStore::create(type);
  store->set_optimizer(momentum_sgd());
  store->init(keys, weights());
  return store;
}

TEST(StoreWithOptimizer, UpdatesAsAnUpdaterOutsideWould) {
  for (const char* type : {"local", "device"}) {
    const auto store = started(type);
    Updater outside(momentum_sgd());
    const std::vector<NDArray> expected = weights();
    for (int step = 0; step < 5; ++step) {
      push_step(*store, step);
      for (size_t i = 0; i < keys.size(); ++i) {
        NDArray sum = gradient(i, step, 0);
        sum.copy_from([&] {
          auto values = sum.to_vector<float>();
          for (float& value : values) value += value;  // both devices push the same
          return values;
        }());
        outside(keys[i], sum, expected[i]);
      }
    }
    const auto actual = pulled(*store);
    for (size_t i = 0; i < keys.size(); ++i) EXPECT_TRUE(same_bits(actual[i], expected[i])) << type << " " << keys[i];
  }
}

TEST(StoreWithOptimizer, GoesOnFromItsSavedStatesExactly) {
  const TempDir folder;
  const std::string path = folder.file("digits-0003.states");
  const auto whole = started("local");
  for (int step = 0; step < 3; ++step) push_step(*whole, step);
  whole->save_optimizer_states(path);

  const auto resumed = KVStore::create("device");
  resumed->set_optimizer(momentum_sgd());
  resumed->init(keys, pulled(*whole));
  resumed->load_optimizer_states(path);
  for (int step = 3; step < 6; ++step) {
    push_step(*whole, step);
    push_step(*resumed, step);
  }
  const auto expected = pulled(*whole), actual = pulled(*resumed);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_TRUE(same_bits(actual[i], expected[i])) << keys[i];
}

TEST(StoreWithOptimizer, SaysWhenThereIsNone) {
  const TempDir folder;
  const auto store = KVStore::create();
  EXPECT_TRUE(fails_with([&] { store->save_optimizer_states(folder.file("a.states")); }, "a.states", "set_optimizer"));
  started("local")->save_optimizer_states(folder.file("a.states"));
  EXPECT_TRUE(fails_with([&] { store->load_optimizer_states(folder.file("a.states")); }, "a.states", "set_optimizer"));
  EXPECT_TRUE(fails_with([&] { store->set_optimizer(nullptr); }, "no optimizer"));
  store->set_optimizer(momentum_sgd());
  EXPECT_TRUE(fails_with([&] { store->load_optimizer_states(folder.file("b.states")); }, "b.states"));
  write_file(folder.file("c.states"), "not a pickle");
  EXPECT_TRUE(fails_with([&] { store->load_optimizer_states(folder.file("c.states")); }, "c.states"));
}

}  // namespace
}  // namespace symbind::testing
