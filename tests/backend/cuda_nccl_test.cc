// Sums and copies between GPUs by NCCL (kvstore/nccl), beside the sums of the device store.
#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/kvstore/gpu_group.h"
#include "symbind/kvstore/kvstore.h"

#include "tests/support/arrays.h"
#include "tests/support/gpu_test.h"
#include "tests/support/training.h"

namespace symbind {

using namespace symbind::testing;

namespace {

class CudaNcclTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (const std::string problem = nccl_problem(); !problem.empty()) GTEST_SKIP() << problem;
  }
};

std::vector<Context> all_gpus() {
  std::vector<Context> gpus;
  for (int id = 0; id < num_gpus(); ++id) gpus.push_back(gpu(id));
  return gpus;
}

// On a machine with one GPU NCCL only copies, but every call is made.
TEST_F(CudaNcclTest, SumsAndCopiesArraysOfEveryType) {
  const std::vector<Context> gpus = all_gpus();
  const auto group = open_gpu_group(gpus);
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8, DType::int8,
                            DType::int32, DType::int64}) {
    ASSERT_TRUE(nccl_adds(dtype)) << dtype;
    const Shape shape{37, 11};
    GpuGroup::Sum sum{{}, zeros(shape, gpus.back(), dtype)};
    GpuGroup::Copy copy{sum.to, {}};
    NDArray expected = zeros(shape, cpu(), dtype);
    for (size_t i = 0; i < gpus.size(); ++i) {
      sum.from.push_back(random_array(shape, i, 0, 4, dtype, gpus[i]));  // exact in every type
      expected += sum.from.back().as_in_context(cpu());
      copy.to.push_back(zeros(shape, gpus[i], dtype));
    }
    group->reduce(std::span(&sum, 1));
    group->broadcast(std::span(&copy, 1));
    EXPECT_TRUE(same_bits(sum.to.as_in_context(cpu()), expected)) << dtype;
    for (const NDArray& to : copy.to) EXPECT_TRUE(same_bits(to.as_in_context(cpu()), expected)) << to.context();
  }
  EXPECT_FALSE(nccl_adds(DType::boolean));
}

TEST_F(CudaNcclTest, TakesMoreArraysThanNcclDoesInOneCall) {
  const std::vector<Context> gpus = all_gpus();
  const auto group = open_gpu_group(gpus);
  std::vector<GpuGroup::Sum> sums;
  std::vector<GpuGroup::Copy> copies;
  for (int key = 0; key < 5000; ++key) {
    GpuGroup::Sum& sum = sums.emplace_back();
    sum.to = zeros({3}, gpus[0]);
    GpuGroup::Copy& copy = copies.emplace_back();
    copy.from = sum.to;
    for (const Context gpu : gpus) {
      sum.from.push_back(full({3}, key, gpu));
      copy.to.push_back(zeros({3}, gpu));
    }
  }
  for (int round = 0; round < 3; ++round) {
    group->reduce(sums);
    group->broadcast(copies);
  }
  for (size_t key = 0; key < sums.size(); ++key)
    for (const NDArray& to : copies[key].to)
      ASSERT_EQ(to.to_vector<float>(), std::vector<float>(3, static_cast<float>(key * gpus.size()))) << key;
}

NamedArrays trained(const std::vector<Context>& contexts, const std::string& store) {
  NDArrayIter data = batches(40, 8);
  Module module(small_network(), {.context = contexts});
  module.fit(data, {.kvstore = store,
                    .optimizer_params = {{"learning_rate", 0.1}, {"momentum", 0.9}},
                    .arg_params = first_values(),
                    .num_epoch = 4});
  return module.get_params().arg_params;
}

void expect_the_bits_of_device(const std::vector<Context>& contexts) {
  const NamedArrays expected = trained(contexts, "device");
  for (const auto& [name, array] : trained(contexts, "nccl")) EXPECT_TRUE(same_bits(array, expected.at(name))) << name;
}

TEST_F(CudaNcclTest, TheStoreSumsOneGpuAsDeviceDoes) {
  expect_the_bits_of_device({gpu(0)});
  expect_the_bits_of_device({gpu(0), gpu(0)});  // NCCL would refuse it
}

TEST_F(CudaNcclTest, TheStoreAgreesWithDeviceOnSeveralGpus) {
  if (num_gpus() < 2) GTEST_SKIP() << "there is one GPU here";
  expect_the_bits_of_device({gpu(0), gpu(1)});  // a sum of two numbers has one order
  expect_equal(trained(all_gpus(), "nccl"), trained(all_gpus(), "device"), {1e-5, 1e-5});
}

}  // namespace
}  // namespace symbind
