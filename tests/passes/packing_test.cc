#include "symbind/passes/packing.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace symbind {
namespace {

void expect_apart(const std::vector<Lifetime>& lifetimes, size_t bytes) {
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& a = lifetimes[i];
    EXPECT_LE(a.offset + a.bytes, bytes);
    for (size_t k = 0; k < i; ++k) {
      const Lifetime& b = lifetimes[k];
      if (a.first > b.last || b.first > a.last) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << i << " and " << k;
    }
  }
}

TEST(Packing, WhatIsNeverAliveTogetherSharesItsOffset) {
  std::vector<Lifetime> lifetimes{{0, 1, 128}, {2, 3, 64}, {4, 9, 128}};
  EXPECT_EQ(pack(lifetimes), 128u);
  expect_apart(lifetimes, 128);
}

TEST(Packing, BothEndsOfALifeCount) {
  std::vector<Lifetime> lifetimes{{0, 1, 64}, {1, 2, 64}, {2, 3, 64}};
  EXPECT_EQ(peak_live_bytes(lifetimes), 128u);
  EXPECT_EQ(pack(lifetimes), 128u);
  expect_apart(lifetimes, 128);
}

TEST(Packing, NothingNeedsNothing) {
  std::vector<Lifetime> none;
  EXPECT_EQ(peak_live_bytes(none), 0u);
  EXPECT_EQ(pack(none), 0u);
}

// The order of time leaves a gap here that nothing fits into.
TEST(Packing, SmallOnesDoNotStandInTheWayOfLargeOnes) {
  std::vector<Lifetime> lifetimes{{0, 1, 192}, {0, 4, 64}, {2, 4, 256}};
  EXPECT_EQ(pack(lifetimes), 320u);
  expect_apart(lifetimes, 320);
}

// As in training: buffers that are allocated first are released last; others have short lifetimes.
std::vector<Lifetime> like_training(uint32_t seed, int layers) {
  std::mt19937 engine(seed);
  std::vector<Lifetime> lifetimes;
  const int end = 4 * layers;
  for (int i = 0; i < layers; ++i) {
    const size_t bytes = 64 * (1 + engine() % 64);
    lifetimes.push_back({i, end - 2 * i, bytes});
    lifetimes.push_back({i, i, 64 * (1 + engine() % 8)});
    lifetimes.push_back({end - 2 * i - 1, end - 2 * i + 1, bytes});
  }
  return lifetimes;
}

TEST(Packing, IsRightAndTightForWhatTrainingNeeds) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<Lifetime> lifetimes = like_training(seed, 100);
    const size_t bytes = pack(lifetimes);
    expect_apart(lifetimes, bytes);
    EXPECT_LE(static_cast<double>(bytes), 1.03 * static_cast<double>(peak_live_bytes(lifetimes))) << seed;
  }
}

TEST(Packing, IsRightForRandomLives) {
  std::mt19937 engine(1);
  for (int round = 0; round < 30; ++round) {
    std::vector<Lifetime> lifetimes;
    for (int i = 0; i < 200; ++i) {
      const int first = static_cast<int>(engine() % 300), last = first + static_cast<int>(engine() % 60);
      lifetimes.push_back({first, last, 64 * (1 + engine() % 100)});
    }
    const size_t bytes = pack(lifetimes);
    expect_apart(lifetimes, bytes);
    EXPECT_GE(bytes, peak_live_bytes(lifetimes));
    EXPECT_LE(static_cast<double>(bytes), 1.12 * static_cast<double>(peak_live_bytes(lifetimes))) << round;
  }
}

}  // namespace
}  // namespace symbind
