// Several GPUs, or one that two contexts use (SYMBIND_GPUS): copies between them in the order of both queues, errors of
// the source, and training over both. Skipped where there is no GPU.
#include <algorithm>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

using CudaSeveral = GpuTest;

constexpr int64_t many = int64_t{1} << 24;  // elements, so that work on them takes longer than queueing it

void expect_all(const NDArray& array, float value) {
  const std::vector<float> values = array.to_vector<float>();
  EXPECT_EQ(std::count(values.begin(), values.end(), value), static_cast<int64_t>(values.size())) << value;
}

// The array is written right before the copy and right after it, and so is the copy.
TEST_F(CudaSeveral, CopiesAreInTheOrderOfBothQueues) {
  for (const auto& [from, to] : {std::pair(gpu(0), gpu(1)), std::pair(gpu(1), gpu(0))}) {
    SCOPED_TRACE(join(from, " to ", to));
    NDArray source = zeros({many}, from), target = full({many}, -5, to);
    for (int round = 1; round <= 10; ++round) {
      for (int i = 0; i < 5; ++i) target *= 2;
      for (int i = 0; i < 5; ++i) source += 1;
      source.copyto(target);
      source.fill(100.0 * round);
      const NDArray kept = target + 0.5;
      target.fill(-5);
      expect_all(kept, static_cast<float>(100 * (round - 1)) + 5.5f);
    }
    expect_all(target, -5);
  }
}

TEST_F(CudaSeveral, CopiesOfEmptyArraysAndOfOtherTypes) {
  EXPECT_EQ(zeros({0, 3}, gpu(0)).as_copy_in(gpu(1)).shape(), Shape({0, 3}));
  const NDArray halves = full({7}, 1.5, gpu(0), DType::float16), target = zeros({7}, gpu(1));
  halves.copyto(target);
  expect_all(target, 1.5);
}

TEST_F(CudaSeveral, ThreadsCopyInOppositeDirections) {
  std::vector<std::thread> threads;
  for (const int here : {0, 1, 0, 1})
    threads.emplace_back([here] {
      try {
        NDArray array = full({1000}, here + 1, gpu(here));
        for (int i = 0; i < 300; ++i) array = array.as_copy_in(gpu((here + i + 1) % 2)) + 1;
        expect_all(array, static_cast<float>(here + 1 + 300));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// The program waits for gpu(1) alone, and learns of an index that was invalid on gpu(0).
TEST_F(CudaSeveral, FaultsAreThrownWhereTheResultGoes) {
  const NDArray table = full({3, 2}, 1, gpu(0)), index = full({1}, 7, gpu(0));
  const NDArray taken = invoke("take", {table, index}, {{"mode", "raise"}})[0].as_copy_in(gpu(1));
  EXPECT_TRUE(fails_with([&] { taken.to_vector<float>(); }, "index 7"));
  expect_all(full({3}, 2, gpu(1)), 2);  // once
}

TEST_F(CudaSeveral, TrainAsOneListedTwice) {
  for (const std::string store : {"device", "local", "nccl"}) {
    SCOPED_TRACE(store);
    const NamedArrays expected = trained_on({gpu(0), gpu(0)}, store);
    for (const std::vector<Context>& contexts : {std::vector{gpu(0), gpu(1)}, std::vector{gpu(1), gpu(0)}})
      expect_same_bits(trained_on(contexts, store), expected);
  }
}

}  // namespace
}  // namespace symbind::testing
