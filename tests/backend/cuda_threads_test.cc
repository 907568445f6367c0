// One GPU used by several threads: the same context listed twice, executors and predictors on threads of their own.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"
#include "tests/support/training.h"

namespace symbind {

using namespace symbind::testing;

namespace {

using CudaThreadsTest = GpuTest;

// The second and later runs of a plan record and launch CUDA graphs, on two threads over one stream.
TEST_F(CudaThreadsTest, TheSameGpuListedTwiceTrainsAsOneDoes) {
  const NamedArrays one = trained_on({gpu(0)}, "device");
  for (const std::string store : {"device", "local"})
    for (int round = 0; round < 3; ++round) expect_equal(trained_on({gpu(0), gpu(0)}, store), one, {1e-4, 1e-4});
  expect_equal(trained_on({gpu(0), gpu(0), gpu(0), gpu(0)}, "device"), one, {1e-4, 1e-4});
}

TEST_F(CudaThreadsTest, ConvolutionsTrainOnTheSameGpuTwice) {
  const Network network = batch_norm_net();
  const auto train = [&](Context context) {
    auto executor = bind_with_values(network, context);
    return testing::train(*executor, network.inputs, 5);
  };
  const std::vector<NDArray> expected = train(gpu(0));
  std::vector<std::vector<NDArray>> results(3);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = train(gpu(0)); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < result.size(); ++i) EXPECT_TRUE(all_close(result[i], expected[i], {1e-3, 1e-3})) << i;
  }
}

TEST_F(CudaThreadsTest, APredictorServesThreads) {
  const Network network = lenet();
  auto executor = bind_with_values(network, gpu(0));
  NamedArrays params;
  for (const auto& [name, array] : executor->arg_dict())
    if (!network.inputs.count(name)) params[name] = array;
  const Predictor predict(network.symbol, params, {}, {.context = gpu(0), .max_concurrent = 3});
  std::vector<NDArray> inputs, expected;
  for (int64_t batch = 1; batch <= 3; ++batch) {
    inputs.push_back(full(network.inputs.at("data").with(0, batch), 0.1 * static_cast<double>(batch)));
    expected.push_back(predict(inputs.back())[0].as_in_context(cpu()));
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      for (size_t i = 0; i < 30; ++i) {
        const size_t which = (seed + i) % inputs.size();
        if (!all_close(predict(inputs[which])[0].as_in_context(cpu()), expected[which], {1e-4, 1e-4})) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Allocation, copies and arithmetic of one thread while another records plans.
TEST_F(CudaThreadsTest, ArraysAreUsedWhilePlansAreRecorded) {
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::thread arithmetic([&] {
    for (int i = 1; !stop; ++i) {
      const NDArray a = full({100}, i, gpu(0));
      if ((a + a).to_vector<float>()[99] != static_cast<float>(2 * i)) ++wrong;
      if (i % 100 == 0) waitall();
      if (i > 100000) i = 1;
    }
  });
  for (int round = 0; round < 10; ++round) {
    auto executor = bind_with_values(mlp(), gpu(0));
    for (int i = 0; i < 4; ++i) {
      executor->forward(true);
      executor->backward();
    }
  }
  stop = true;
  arithmetic.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace symbind
