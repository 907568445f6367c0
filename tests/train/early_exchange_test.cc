// Training over workers in fit(), which exchanges gradients while backward computes others and prepares the next batch
// meanwhile: the bits of the same steps one by one. (On a GPU: tests/backend/cuda_gradient_watch_test.cc.)
#include "symbind/train/early_exchange.h"

#include <gtest/gtest.h>

#include "tests/kvstore/thread_transport.h"
#include "tests/support/training.h"
#include "tests/support/wide_network.h"

namespace symbind::testing {
namespace {

NamedArrays initial_values() {
  NamedArrays values;
  uint64_t number = 1;
  for (const std::string name : {"fc1", "fc2", "fc3", "fc4"}) {
    const int64_t outputs = name == "fc4" ? 3 : wide;
    values[name + "_weight"] = random_array({outputs, wide}, number++, -0.05, 0.05);
    values[name + "_bias"] = random_array({outputs}, number++, -0.05, 0.05);
  }
  return values;
}

const optim::Sgd momentum{.learning_rate = 0.05, .momentum = 0.9};

// After every batch the parameters are those of all updates so far.
std::vector<std::vector<float>> trained(const Worker& worker, const std::string& type, bool in_fit) {
  std::vector<std::vector<float>> after_batches;
  NDArrayIter data(random_array({24, wide}, 70 + static_cast<uint64_t>(worker.rank)), labels_of(24), {.batch_size = 8});
  Module module(wide_network());
  const auto look = [&] {
    after_batches.push_back(module.get_params().arg_params.at("fc2_weight").to_vector<float>());
  };
  if (in_fit) {
    module.fit(data, {.batch_end_callback = {[&](const BatchEndParam&) { look(); }},
                      .kvstore = worker.store(type),
                      .optimizer = momentum,
                      .arg_params = initial_values(),
                      .num_epoch = 2});
    return after_batches;
  }
  module.bind(data.provide_data(), data.provide_label());
  module.init_params({.arg_params = initial_values()});
  module.init_optimizer({.kvstore = worker.store(type), .optimizer = momentum});
  for (int epoch = 0; epoch < 2; ++epoch) {
    data.reset();
    while (const auto batch = data.next()) {
      module.forward_backward(*batch);
      module.update();
      look();
    }
  }
  return after_batches;
}

TEST(EarlyExchange, GivesTheBitsOfStepsWithoutIt) {
  const Quiet quiet;
  for (const std::string type : {"dist_sync", "horovod"}) {
    const auto thrown = run_job(2, [&](Worker& worker) {
      const auto expected = trained(worker, type, false);
      EXPECT_EQ(trained(worker, type, true), expected) << type << ", worker " << worker.rank;
      EXPECT_EQ(expected.size(), 6u);
    });
    EXPECT_EQ(thrown, std::vector<std::string>(2)) << type;
  }
}

TEST(EarlyExchange, IsForStoresThatTakeSingleGradientsOfOneContext) {
  const auto thrown = run_job(1, [&](Worker& worker) {
    const KVStorePtr store = worker.store(), local = KVStore::create("local");
    EXPECT_NE(store_for_early_exchange(store.get(), 1), nullptr);
    EXPECT_EQ(store_for_early_exchange(store.get(), 2), nullptr) << "their sums need both";
    store->set_optimizer(Optimizer::create("lars", {}));
    EXPECT_EQ(store_for_early_exchange(store.get(), 1), nullptr) << "an update of the whole step";
    EXPECT_EQ(store_for_early_exchange(local.get(), 1), nullptr);
    EXPECT_EQ(store_for_early_exchange(nullptr, 1), nullptr);
  });
  EXPECT_EQ(thrown, std::vector<std::string>(1));
}

}  // namespace
}  // namespace symbind::testing
