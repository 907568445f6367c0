// Which steps of a captured plan wait for which: where one writes what the other reads or writes, and nowhere else.
#include "symbind/exec/step_order.h"

#include <random>

#include <gtest/gtest.h>

namespace symbind {
namespace {

using Steps = std::vector<size_t>;

StepAccess step(std::vector<ByteRange> reads, std::vector<ByteRange> writes, bool alone = false) {
  return {cpu(), std::move(reads), std::move(writes), alone};
}

TEST(StepOrder, GradientsOfWeightsDoNotWaitForThoseOfData) {
  const ByteRange gradient{0, 0, 64}, data{0, 64, 128}, below{0, 128, 192}, weight{1, 0, 8}, bias{1, 8, 16};
  const auto waits = step_waits(std::vector{step({}, {gradient}), step({gradient}, {below}),
                                            step({gradient, data}, {weight}), step({gradient}, {bias})});
  EXPECT_EQ(waits, (std::vector<Steps>{{}, {0}, {0}, {0}}));
  EXPECT_EQ(longest_chain(waits), 2u);
}

TEST(StepOrder, WhoOverwritesMemoryWaitsForAllItsReaders) {
  const ByteRange shared{0, 0, 64}, part{0, 16, 32}, a{1, 0, 8}, b{1, 8, 16};
  const auto waits =
      step_waits(std::vector{step({}, {shared}), step({shared}, {a}), step({shared}, {b}), step({}, {part})});
  EXPECT_EQ(waits[3], (Steps{1, 2})) << "and they for the first writer";
}

TEST(StepOrder, WorkInPlaceWaitsForWhoWroteIt) {
  const ByteRange array{0, 0, 64};
  const auto waits = step_waits(std::vector{step({}, {array}), step({array}, {array}), step({array}, {array})});
  EXPECT_EQ(waits, (std::vector<Steps>{{}, {0}, {1}}));
  EXPECT_EQ(longest_chain(waits), 3u);
}

TEST(StepOrder, NeighboursAndOtherSpacesAreIndependent) {
  const auto waits = step_waits(std::vector{step({}, {{0, 0, 64}}), step({{0, 64, 128}}, {{1, 0, 64}}),
                                            step({{ByteRange::outside, 0, 64}}, {{2, 0, 64}})});
  EXPECT_EQ(waits, (std::vector<Steps>{{}, {}, {}}));
}

TEST(StepOrder, AStepThatRunsAloneIsBetweenAllOthers) {
  const auto at = [](uintptr_t begin) { return ByteRange{0, begin, begin + 8}; };
  const auto waits = step_waits(std::vector{step({}, {at(0)}), step({}, {at(8)}), step({}, {at(16)}, true),
                                            step({}, {at(24)}), step({at(0)}, {at(32)}), step({}, {at(40)}, true)});
  EXPECT_EQ(waits, (std::vector<Steps>{{}, {}, {0, 1}, {2}, {2}, {3, 4}}));
}

// Reachability over the waits against every pair of accesses.
TEST(StepOrder, RandomStepsWaitDirectlyOrThroughOthersForAllTheyNeed) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t end) { return random() % end; };
  const auto overlap = [](const std::vector<ByteRange>& some, const std::vector<ByteRange>& others) {
    for (const ByteRange& a : some)
      for (const ByteRange& b : others)
        if (a.space == b.space && a.begin < b.end && b.begin < a.end) return true;
    return false;
  };
  for (int round = 0; round < 50; ++round) {
    std::vector<StepAccess> steps;
    const auto ranges = [&](uint32_t most) {
      std::vector<ByteRange> all;
      for (uint32_t count = below(most + 1); count > 0; --count) {
        const uintptr_t begin = below(60);
        all.push_back({static_cast<int>(below(2)), begin, begin + 1 + below(12)});
      }
      return all;
    };
    for (int i = 0; i < 40; ++i) steps.push_back(step(ranges(3), ranges(2), below(20) == 0));
    const auto waits = step_waits(steps);
    std::vector<std::vector<bool>> after(steps.size(), std::vector<bool>(steps.size(), false));
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const size_t each : waits[i]) {
        ASSERT_LT(each, i);
        after[i][each] = true;
        for (size_t k = 0; k < each; ++k) after[i][k] = after[i][k] || after[each][k];
      }
      // A step needs those it conflicts with, and what they need.
      std::vector<bool> needed(steps.size(), false);
      for (size_t k = 0; k < i; ++k) {
        if (!steps[i].alone && !steps[k].alone && !overlap(steps[i].writes, steps[k].writes) &&
            !overlap(steps[i].writes, steps[k].reads) && !overlap(steps[i].reads, steps[k].writes))
          continue;
        needed[k] = true;
        for (size_t j = 0; j < k; ++j) needed[j] = needed[j] || after[k][j];
      }
      EXPECT_EQ(after[i], needed) << "step " << i << " of round " << round;
    }
  }
}

}  // namespace
}  // namespace symbind
