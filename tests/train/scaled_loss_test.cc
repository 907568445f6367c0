// Modules in float16 over several workers, which are threads here: a step that overflows in one of them is left out by
// all that are in step with it.
#include "symbind/train/scaled_loss.h"

#include <gtest/gtest.h>

#include "symbind/ops/all.h"
#include "symbind/train/module.h"

#include "tests/kvstore/thread_transport.h"
#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Floats = std::vector<float>;

// A label of 1e30 makes gradients overflow.
Symbol regression() {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 16}, "fc1");
  net = activation(net, {.act_type = act_type::relu});
  return linear_regression_output(fully_connected(net, {.num_hidden = 1}, "fc2"), {}, "out");
}

// Bound, with parameters, for batches of two rows.
std::unique_ptr<Module> make_module() {
  auto module = std::make_unique<Module>(regression(),
                                         ModuleOptions{.label_names = {"out_label"}, .compute_dtype = DType::float16});
  module->bind({{"data", {2, 4}}}, {{"out_label", {2, 1}}});
  module->init_params({.initializer = std::make_shared<init::Uniform>(0.1)});
  return module;
}

void step(Module& module, const NDArray& data, double label) {
  module.forward_backward({.data = {data}, .label = {full({2, 1}, label)}});
  module.update();
}

// What a worker has after each step.
struct Step {
  double scale;
  Floats weight;
  friend bool operator==(const Step&, const Step&) = default;
};
using Steps = std::vector<Step>;

// At first the scale is too large for all. Later a batch of worker 1 overflows.
constexpr int steps = 12, overflow_at = 9;

Steps train(Worker& worker, const std::string& type) {
  const std::unique_ptr<Module> module = make_module();
  module->init_optimizer({.kvstore = worker.store(type), .optimizer_params = {{"learning_rate", 0.1}}});
  Steps result;
  for (int i = 0; i < steps; ++i) {
    const bool overflows = i == overflow_at && worker.rank == 1;
    step(*module, random_array({2, 4}, static_cast<uint64_t>(10 * i + worker.rank)), overflows ? 1e30 : 1);
    result.push_back({module->loss_scale(), module->get_params().arg_params.at("fc1_weight").to_vector<float>()});
  }
  return result;
}

std::vector<Steps> train_all(int workers, const std::string& type) {
  std::vector<Steps> all(static_cast<size_t>(workers));
  const auto thrown =
      run_job(workers, [&](Worker& worker) { all[static_cast<size_t>(worker.rank)] = train(worker, type); });
  EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(workers)));
  return all;
}

TEST(ScaledLossOfWorkers, IsHalvedByAllWhereOneOverflows) {
  for (const std::string type : {"dist_sync", "horovod"})
    for (const int workers : {2, 4}) {
      const std::vector<Steps> all = train_all(workers, type);
      for (const Steps& each : all) EXPECT_TRUE(each == all[0]) << type << " with " << workers << " workers";
      const Steps& one = all[0];
      EXPECT_EQ(one[overflow_at].scale, one[overflow_at - 1].scale / 2);
      EXPECT_NE(one[overflow_at - 1].weight, one[overflow_at - 2].weight);
      EXPECT_EQ(one[overflow_at].weight, one[overflow_at - 1].weight);
      EXPECT_NE(one[steps - 1].weight, one[overflow_at].weight);
    }
}

TEST(ScaledLossOfWorkers, IsEachWorkersOwnInDistAsync) {
  const std::vector<Steps> all = train_all(2, "dist_async");
  EXPECT_EQ(all[0][overflow_at].scale, all[0][overflow_at - 1].scale);
  EXPECT_EQ(all[1][overflow_at].scale, all[1][overflow_at - 1].scale / 2);
  EXPECT_EQ(all[1][overflow_at].weight, all[1][overflow_at - 1].weight);
}

TEST(ScaledLossOfWorkers, BeginsWithOneScale) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const std::unique_ptr<Module> module = make_module();
    module->init_optimizer();
    step(*module, ones({2, 4}), worker.rank == 1 ? 1e30 : 0);
    EXPECT_EQ(module->loss_scale(), worker.rank == 1 ? LossScale::first / 2 : LossScale::first);
    module->init_optimizer({.kvstore = worker.store(), .force_init = true});
    EXPECT_EQ(module->loss_scale(), LossScale::first);
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

TEST(ScaledLossOfWorkers, NamesTheWorkerThatIsMissedAtTheCheck) {
  const auto thrown = run_job(2, [&](Worker& worker) {
    const std::unique_ptr<Module> module = make_module();
    module->init_optimizer({.kvstore = worker.store()});
    step(*module, ones({2, 4}), 1);
    if (worker.rank == 0) step(*module, ones({2, 4}), 1);
  });
  EXPECT_NE(thrown[0].find("worker 1 on host thread1 has ended, and is missed at the overflow check at step 2"),
            std::string::npos)
      << thrown[0];
}

}  // namespace
}  // namespace symbind::testing
