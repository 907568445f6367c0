#include "symbind/core/random.h"

#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/core/device.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::same_bits;

// The published known answers of Philox 4x32-10: counter words c0 c1 are the position, c2 c3 the draw.
TEST(Philox, GivesThePublishedAnswers) {
  const auto zero = philox(0, 0, 0);
  EXPECT_EQ(zero.words[0], 0x6627e8d5u);
  EXPECT_EQ(zero.words[1], 0xe169c58du);
  EXPECT_EQ(zero.words[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.words[3], 0x9b00dbd8u);

  const auto ones = philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0});
  EXPECT_EQ(ones.words[0], 0x408f276du);
  EXPECT_EQ(ones.words[1], 0x41c83b0eu);
  EXPECT_EQ(ones.words[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.words[3], 0x6d5451fdu);

  const auto pi = philox(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u);
  EXPECT_EQ(pi.words[0], 0xd16cfe09u);
  EXPECT_EQ(pi.words[1], 0x94fdccebu);
  EXPECT_EQ(pi.words[2], 0x5001e420u);
  EXPECT_EQ(pi.words[3], 0x24126ea1u);
}

TEST(UnitNumbers, LieInTheHalfOpenInterval) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_LT(unit_float(~0u), 1.0f);
  EXPECT_EQ(unit_double(0, 0), 0.0);
  EXPECT_LT(unit_double(~0u, ~0u), 1.0);
}

TEST(RandomState, TakesDrawsOneAfterTheOther) {
  RandomState state(0);
  state.seed(3);
  const RandomCursor first = state.take(5), second = state.take(1);
  EXPECT_EQ(first.key, second.key);
  EXPECT_EQ(second.draw, first.draw + 5);
  state.seed(3);
  EXPECT_EQ(state.take(1).draw, first.draw);
}

TEST(RandomState, GivesEachDrawToOneThread) {
  RandomState state(0);
  const uint64_t first = state.peek().draw;
  constexpr uint64_t each = 2000;
  std::vector<std::vector<uint64_t>> taken(4);
  std::vector<std::thread> threads;
  for (auto& mine : taken)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < each; ++i) mine.push_back(state.take(1).draw);
    });
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> draws;
  for (const auto& mine : taken) draws.insert(mine.begin(), mine.end());
  EXPECT_EQ(draws.size(), 4 * each);
  EXPECT_EQ(state.peek().draw, first + 4 * each);
}

TEST(RandomState, DiffersBetweenDevicesAndSeeds) {
  std::set<uint64_t> keys;
  for (int device = 0; device < 8; ++device) {
    RandomState state(device);
    for (uint64_t seed = 0; seed < 16; ++seed) {
      state.seed(seed);
      EXPECT_TRUE(keys.insert(state.peek().key).second) << "device " << device << " seed " << seed;
    }
  }
}

NDArray draw(const std::string& op, const Shape& shape, Context context = cpu(), DType dtype = DType::float32) {
  std::string dims = "(";
  for (const int64_t dim : shape) dims += std::to_string(dim) + ",";
  return invoke(op, {}, {{"shape", dims + ")"}, {"dtype", std::string(name_of(dtype))}}, {.context = context}).front();
}

TEST(Seed, MakesSamplersRepeatThemselves) {
  for (const std::string op : {"_random_uniform", "_random_normal"}) {
    seed(42);
    const NDArray first = draw(op, {1000}), second = draw(op, {1000});
    seed(42);
    EXPECT_TRUE(same_bits(draw(op, {1000}), first)) << op;
    EXPECT_TRUE(same_bits(draw(op, {1000}), second)) << op;
    EXPECT_FALSE(same_bits(first, second)) << op;
    seed(43);
    EXPECT_FALSE(same_bits(draw(op, {1000}), first)) << op;
  }
}

TEST(Seed, ReachesDevicesThatAreUsedLater) {
  seed(7);
  const NDArray first = draw("_random_uniform", {100}, cpu(5));
  seed(7);
  EXPECT_TRUE(same_bits(draw("_random_uniform", {100}, cpu(5)), first));
}

TEST(Samplers, DoNotDependOnTheNumberOfElements) {
  seed(1);
  const NDArray many = draw("_random_uniform", {300001});
  seed(1);
  const NDArray few = draw("_random_uniform", {1001});
  EXPECT_TRUE(same_bits(many.slice(0, 1001), few));
}

TEST(Samplers, HaveTheRightMoments) {
  seed(11);
  const auto uniform = draw("_random_uniform", {200000}).to_vector<double>();
  const auto normal = draw("_random_normal", {200000}).to_vector<double>();
  const auto moments = [](const std::vector<double>& values) {
    double sum = 0, squares = 0;
    for (const double value : values) sum += value, squares += value * value;
    const auto count = static_cast<double>(values.size());
    return std::pair(sum / count, squares / count - sum / count * (sum / count));
  };
  const auto [uniform_mean, uniform_variance] = moments(uniform);
  EXPECT_NEAR(uniform_mean, 0.5, 0.005);
  EXPECT_NEAR(uniform_variance, 1.0 / 12, 0.002);
  const auto [normal_mean, normal_variance] = moments(normal);
  EXPECT_NEAR(normal_mean, 0, 0.01);
  EXPECT_NEAR(normal_variance, 1, 0.02);
}

TEST(Samplers, GiveTheSameOnEveryKindOfDevice) {
  for (const Context context : testing::all_devices()) {
    seed(3);
    const NDArray here = draw("_random_uniform", {999}, cpu(0));
    seed(3);
    EXPECT_TRUE(testing::all_close(draw("_random_uniform", {999}, context), here)) << context;
  }
}

TEST(Samplers, OnDifferentContextsMayDrawAtTheSameTime) {
  seed(21);
  std::vector<NDArray> alone, together(4);
  for (int i = 0; i < 4; ++i) alone.push_back(draw("_random_normal", {5000}, cpu(i)));
  seed(21);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { together[static_cast<size_t>(i)] = draw("_random_normal", {5000}, cpu(i)); });
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(together[i], alone[i])) << "cpu(" << i << ")";
}

}  // namespace
}  // namespace symbind
