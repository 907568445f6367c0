// A GPU as a device and as a target: memory, copies, errors, captured plans, steps on the host. Skipped where there is
// no GPU; the operators are compared in cuda_ops_test.cc.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numeric>

#include <gtest/gtest.h>
#include <unistd.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/custom.h"
#include "symbind/ops/dropout.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/loss.h"
#include "symbind/passes/target.h"

#include "tests/support/arrays.h"
#include "tests/support/doubled_op.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

TEST(Gpu, AMissingOneIsNamedWithTheReason) {
  EXPECT_TRUE(fails_with([] { Device::get(gpu(97)); }, "gpu(97) is not available"));
}

using Cuda = GpuTest;
using CudaDeathTest = GpuTest;

// ---- Memory ---------------------------------------------------------------------------------------------------------

TEST_F(Cuda, TheAllocatorCountsWhatIsLiveAndKeepsWhatComesBack) {
  Device& device = Device::get(gpu(0));
  device.synchronize();
  device.empty_pool();
  const int64_t before = device.memory().live;
  device.reset_peak();
  EXPECT_EQ(device.memory().pooled, 0);

  void* first = device.allocate(1000);
  void* second = device.allocate(5'000'000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(device.memory().live, before + 5'001'000);
  device.release(second, 5'000'000);
  EXPECT_EQ(device.memory().live, before + 1000);
  EXPECT_EQ(device.memory().peak, before + 5'001'000);
  EXPECT_GE(device.memory().pooled, 5'000'000);
  EXPECT_LE(device.memory().pooled, 5'000'000 * 9 / 8);

  EXPECT_EQ(device.allocate(5'000'000), second);
  EXPECT_EQ(device.memory().pooled, 0);
  device.release(second, 5'000'000);
  device.release(first, 1000);
  device.empty_pool();
  EXPECT_EQ(device.memory().pooled, 0);
  EXPECT_EQ(device.memory().live, before);
}

TEST_F(Cuda, TooLargeAnArraySaysHowMuchThereIs) {
  Device& device = Device::get(gpu(0));
  EXPECT_TRUE(fails_with([&] { device.allocate(size_t{1} << 46); }, "out of memory on gpu(0)", "70368744177664 bytes",
                         "in use", "free"));
  NDArray still_works = ones({3}, gpu(0));
  EXPECT_EQ(still_works.to_vector<double>(), std::vector<double>(3, 1.0));
}

// Working memory, arrays and results of operators: each error names who asked, and the next call works.
TEST_F(Cuda, OutOfMemorySaysWhichNodeAskedAndTheProcessGoesOn) {
  const Shape huge{1 << 19, 1 << 19};  // 1 TiB
  const Symbol large = apply("broadcast_to", {var("x")}, {{"shape", join(huge)}}, "enlarge");
  const Symbol net = apply("sum", large, {}, "total");
  const auto executor = simple_bind(net, gpu(0), {{"x", {1, 1}}}, {.grad_req = "null", .options = {.fuse = false}});
  EXPECT_TRUE(fails_with([&] { executor->forward(); }, "[broadcast_to enlarge]", "out of memory on gpu(0)",
                         "bytes were asked for", "free on the GPU"));
  EXPECT_TRUE(fails_with([&] { simple_bind(var("y") + 1, gpu(0), {{"y", huge}}); }, "'y'", "out of memory on gpu(0)"));
  EXPECT_TRUE(fails_with(
      [&] {
        invoke("broadcast_to", {ones({1, 1}, gpu(0))}, {{"shape", join(huge)}});
      },
      "[broadcast_to]", "out of memory on gpu(0)"));
  EXPECT_EQ((ones({3}, gpu(0)) + 1).to_vector<double>(), std::vector<double>(3, 2.0));
  const auto small = simple_bind(fc(var("data"), 2, "fc"), gpu(0), {{"data", {3, 4}}});
  small->forward(true);
  EXPECT_EQ(small->outputs()[0].to_vector<double>(), std::vector<double>(6, 0.0));
}

TEST_F(Cuda, ManyAllocationsOfChangingSizesStayWithinTheirPool) {
  Device& device = Device::get(gpu(0));
  const auto round = [] {
    for (int64_t i = 1; i <= 200; ++i) NDArray array({i * 37}, gpu(0));
  };
  round();
  const int64_t pooled = device.memory().pooled;
  for (int again = 0; again < 20; ++again) round();
  EXPECT_EQ(device.memory().pooled, pooled);
}

// ---- Copies ---------------------------------------------------------------------------------------------------------

TEST_F(Cuda, TheSourceOfACopyMayChangeImmediately) {
  // Larger than all staging buffers together, and odd.
  std::vector<int32_t> values(5'000'003);
  std::iota(values.begin(), values.end(), 0);
  NDArray array({static_cast<int64_t>(values.size())}, gpu(0), DType::int32);
  for (int round = 0; round < 3; ++round) {
    array.copy_from(values);
    std::fill(values.begin(), values.end(), -1);
    values = array.to_vector<int32_t>();
    for (size_t i : {size_t{0}, size_t{262'143}, size_t{262'144}, values.size() / 2, values.size() - 1})
      ASSERT_EQ(values[i], static_cast<int32_t>(i)) << "round " << round;
  }
}

TEST_F(Cuda, ManySmallCopiesKeepTheirOrder) {
  std::vector<NDArray> arrays;
  for (int i = 0; i < 100; ++i) {
    std::vector<float> value(17, static_cast<float>(i));
    arrays.push_back(NDArray({17}, gpu(0)));
    arrays.back().copy_from(value);
    std::fill(value.begin(), value.end(), -1.0f);
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(arrays[static_cast<size_t>(i)].to_vector<float>(), std::vector<float>(17, static_cast<float>(i)));
}

TEST_F(Cuda, OverlappingBytesAreCopiedAsIfAtOnce) {
  Device& device = Device::get(gpu(0));
  NDArray array = counted({1000}, DType::int32, gpu(0));
  auto* data = static_cast<std::byte*>(array.mutable_data());
  device.copy_within(data + 4, data, 3000);
  const auto values = array.to_vector<int32_t>();
  EXPECT_EQ(values[0], 1);
  for (size_t i = 1; i <= 750; ++i) ASSERT_EQ(values[i], static_cast<int32_t>(i)) << i;
}

TEST_F(Cuda, FillsAndCastsInEveryType) {
  for (const DType to : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8, DType::int8,
                         DType::int32, DType::int64, DType::boolean}) {
    EXPECT_EQ(full({1001}, 3, gpu(0), to).to_vector<double>(), full({1001}, 3, cpu(), to).to_vector<double>()) << to;
    for (const DType from :
         {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int32, DType::int64}) {
      const NDArray values = random_array({1001}, 3, -300, 300, from);
      EXPECT_TRUE(same_bits(values.as_copy_in(gpu(0)).astype(to), values.astype(to))) << from << " to " << to;
    }
  }
}

TEST_F(Cuda, HalfPrecisionRoundsAsOnTheCpu) {
  std::vector<float> values;
  for (int i = 0; i < 200'000; ++i)
    values.push_back(std::ldexp(1.0f + static_cast<float>(i % 8192) / 8192.0f, i % 45 - 28));
  const NDArray on_cpu = array(values, {static_cast<int64_t>(values.size())});
  for (const DType to : {DType::float16, DType::bfloat16})
    EXPECT_TRUE(same_bits(on_cpu.as_copy_in(gpu(0)).astype(to), on_cpu.astype(to))) << to;
}

// ---- Errors ---------------------------------------------------------------------------------------------------------

// Such an error stays with the process, so it happens in one of its own.
TEST_F(CudaDeathTest, WhatGoesWrongInTheQueueIsThrownByTheNextWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Device& device = Device::get(gpu(0));
        try {
          device.fill(reinterpret_cast<void*>(uintptr_t{0x1000}), DType::float32, 10, 1);
          device.synchronize();
          std::cerr << "nothing was thrown\n";
        } catch (const Error& error) {
          std::cerr << error.what() << "\n";
          _exit(3);
        }
        _exit(1);
      },
      ::testing::ExitedWithCode(3), "gpu.0.. .*illegal memory access.*queued last: .fill.*no more work");
}

// ---- Plans ----------------------------------------------------------------------------------------------------------

std::vector<NDArray> trained(const Network& network, Context context, bool capture, int steps) {
  seed(3);
  auto executor = bind_with_values(network, context, {.options = {.capture = capture}});
  return train(*executor, network.inputs, steps);
}

void expect_close(const std::vector<NDArray>& actual, const std::vector<NDArray>& expected, Tolerance tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(all_close(actual[i], expected[i], tolerance)) << "array " << i;
}

TEST_F(Cuda, AnMlpTrainsAsOnTheCpu) {
  const auto expected = trained(mlp(), cpu(), true, 20);
  for (const bool capture : {false, true}) {
    SCOPED_TRACE(capture ? "captured" : "step by step");
    expect_close(trained(mlp(), gpu(0), capture, 20), expected, {1e-4, 1e-5, 1e-5});
  }
}

TEST_F(Cuda, ACapturedPlanGivesTheSameBitsAsItsSteps) {
  const auto expected = trained(mlp(), gpu(0), false, 5), actual = trained(mlp(), gpu(0), true, 5);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(same_bits(actual[i], expected[i])) << "array " << i;
}

TEST_F(Cuda, WithTf32AnMlpTrainsNearlyAsOnTheCpu) {
  setenv("SYMBIND_TF32", "1", 1);
  const auto actual = trained(mlp(), gpu(0), true, 20);
  setenv("SYMBIND_TF32", "0", 1);
  expect_close(actual, trained(mlp(), cpu(), true, 20), {2e-2, 1e-2, 1e-2});
}

TEST_F(Cuda, OperatorsWithoutAnImplementationRunOnTheHostInsideACapturedPlan) {
  register_custom_op("doubled", [](const Attributes&) { return std::make_shared<testing::DoubledProp>(); });
  Symbol net = custom(fully_connected(Symbol::variable("data"), {.num_hidden = 12}, "fc1"), {.op_type = "doubled"});
  net = softmax_output(fully_connected(net, {.num_hidden = 4}, "fc2"), {}, "softmax");
  const Network network{"doubled", net, {{"data", {6, 9}}, {"softmax_label", {6}}}, 4};
  const auto expected = trained(network, cpu(), true, 4);
  for (const bool capture : {false, true}) {
    SCOPED_TRACE(capture ? "captured" : "step by step");
    expect_close(trained(network, gpu(0), capture, 4), expected, {2e-3, 1e-4, 1e-4});
  }
}

TEST_F(Cuda, DropoutDrawsTheSameNumbersAtEveryReplay) {
  Symbol net = fully_connected(Symbol::variable("data"), {.num_hidden = 40}, "fc1");
  net = dropout(activation(net, {.act_type = "relu"}), {.p = 0.4}, "drop1");
  net = fully_connected(dropout(net, {.p = 0.2}, "drop2"), {.num_hidden = 5}, "fc2");
  const Network network{"dropout", softmax_output(net, {}, "softmax"), {{"data", {8, 20}}, {"softmax_label", {8}}}, 5};
  const auto expected = trained(network, cpu(), true, 6);
  for (const bool capture : {false, true}) {
    SCOPED_TRACE(capture ? "captured" : "step by step");
    expect_close(trained(network, gpu(0), capture, 6), expected, {1e-4, 1e-5, 1e-5});
  }
}

TEST_F(Cuda, RandomArraysAreTheSameOnBothDevices) {
  for (const char* op : {"_random_uniform", "_random_normal"}) {
    seed(12);
    const NDArray first = invoke(op, {}, {{"shape", "(1000,)"}}, {.context = cpu()})[0];
    const NDArray second = invoke(op, {}, {{"shape", "(1000,)"}}, {.context = cpu()})[0];
    seed(12);
    EXPECT_TRUE(all_close(invoke(op, {}, {{"shape", "(1000,)"}}, {.context = gpu(0)})[0], first)) << op;
    EXPECT_TRUE(all_close(invoke(op, {}, {{"shape", "(1000,)"}}, {.context = gpu(0)})[0], second)) << op;
  }
  // The integers they come from: 2^24 times a float in [0, 1) is whole.
  seed(12);
  const auto expected = invoke("_random_uniform", {}, {{"shape", "(4099,)"}}, {.context = cpu()})[0].to_vector<float>();
  seed(12);
  EXPECT_EQ(invoke("_random_uniform", {}, {{"shape", "(4099,)"}}, {.context = gpu(0)})[0].to_vector<float>(), expected);
}

Symbol in_group(const char* group, const std::function<Symbol()>& make) {
  const AttrScope scope(Attributes{{"ctx_group", group}});
  return make();
}

// The outputs and all gradients, with the groups "near" and "far" on these contexts.
std::vector<NDArray> train_over(const Network& network, Context near, Context far) {
  auto executor = bind_with_values(network, near, {.group2ctx = {{"near", near}, {"far", far}}});
  std::vector<NDArray> results;
  for (int round = 0; round < 3; ++round) {
    executor->forward(true);
    executor->backward();
    results.push_back(executor->outputs()[0].as_copy_in(cpu()));
    for (const auto& [name, gradient] : executor->grad_dict())
      if (gradient) results.push_back(gradient.as_copy_in(cpu()));
  }
  return results;
}

TEST_F(Cuda, ANetworkMayLiePartlyOnTheCpu) {
  const Symbol hidden = in_group("near", [] {
    return activation(fully_connected(Symbol::variable("data"), {.num_hidden = 6}, "fc1"), {.act_type = "tanh"});
  });
  const Symbol net =
      in_group("far", [&] { return softmax_output(fully_connected(hidden, {.num_hidden = 3}, "fc2"), {}, "softmax"); });
  const Network network{"split", net, {{"data", {4, 5}}, {"softmax_label", {4}}}, 3};
  const auto expected = train_over(network, cpu(), cpu());
  expect_close(train_over(network, gpu(0), cpu()), expected, {1e-4, 1e-5, 1e-5});
  expect_close(train_over(network, cpu(), gpu(0)), expected, {1e-4, 1e-5, 1e-5});
}

TEST_F(Cuda, TowersOnTheCpuAndTheGpuGiveTheNumbersOfOneDevice) {
  const Symbol data = Symbol::variable("data");
  const auto tower = [&](const std::string& name) {
    Symbol net = data;
    for (int i = 0; i < 3; ++i)
      net = activation(fully_connected(net, {.num_hidden = 20}, join(name, i)), {.act_type = "tanh"});
    return net;
  };
  const Symbol here = in_group("near", [&] { return tower("near"); });
  const Symbol there = in_group("far", [&] { return tower("far"); });
  const Symbol net = in_group(
      "near", [&] { return softmax_output(fully_connected(here + there, {.num_hidden = 3}, "fc"), {}, "softmax"); });
  const Network network{"towers", net, {{"data", {8, 20}}, {"softmax_label", {8}}}, 3};
  const auto expected = train_over(network, cpu(), cpu());
  expect_close(train_over(network, gpu(0), cpu()), expected, {1e-4, 1e-5, 1e-5});
  expect_close(train_over(network, cpu(), gpu(0)), expected, {1e-4, 1e-5, 1e-5});
}

}  // namespace
}  // namespace symbind::testing
