// Folds of rows of floats against plain loops in the same order.
#include "symbind/backend/cpu/float_folds.h"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/folds.h"

namespace symbind::cpu_backend {
namespace {

constexpr size_t lanes = 32;

template <class F>
double in_lanes(const float* row, size_t length) {
  std::vector<double> parts(lanes, F::start());
  for (size_t i = 0; i < length; ++i) parts[i % lanes] = F::take(parts[i % lanes], row[i]);
  for (size_t half = lanes / 2; half > 0; half /= 2)
    for (size_t j = 0; j < half; ++j) parts[j] = F::join(parts[j], parts[j + half]);
  return parts[0];
}

template <class F>
void check(Fold fold, const std::vector<float>& numbers) {
  const FloatFold fold_floats = instruction_set() >= InstructionSet::avx2 ? avx2_float_fold(fold) : nullptr;
  if (!fold_floats) GTEST_SKIP() << "the processor has no vectors for it";
  for (size_t length = 1; length + 3 <= numbers.size(); length += length < 200 ? 1 : 61)
    for (size_t first = 0; first < 3; ++first) {  // aligned or not
      const double folded = fold_floats(numbers.data() + first, static_cast<int64_t>(length));
      const double expected = in_lanes<F>(numbers.data() + first, length);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(folded)) << length << " numbers: " << folded;
      else
        EXPECT_EQ(std::bit_cast<uint64_t>(folded), std::bit_cast<uint64_t>(expected))
            << length << " numbers: " << folded << ", expected " << expected;
    }
}

void check_all(const std::vector<float>& numbers) {
  check<folds::Product<float, false>>(Fold::product, numbers);
  check<folds::Product<float, true>>(Fold::product_of_numbers, numbers);
  check<folds::NormOf<float, 1>>(Fold::norm1, numbers);
  // The square root comes after the last stage.
  check<folds::NormOf<float, 2>>(Fold::norm2, numbers);
}

TEST(FloatFolds, HaveTheBitsOfAPlainLoop) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(1500);
  for (float& number : numbers) number = std::ldexp(normal(random), static_cast<int>(random() % 60) - 30);
  check_all(numbers);
}

TEST(FloatFolds, TreatZerosInfinitiesAndNaNAsAPlainLoopDoes) {
  std::mt19937 random(2);
  const float special[] = {0, -0.0f, INFINITY, -INFINITY, NAN};
  for (const unsigned rarity : {2, 20, 200})
    for (const unsigned kinds : {1, 2, 4, 5}) {
      std::vector<float> numbers(700);
      for (float& number : numbers)
        number = random() % rarity == 0 ? special[random() % kinds] : static_cast<float>(random() % 7) - 3.5f;
      check_all(numbers);
    }
  for (const float number : special) check_all(std::vector<float>(200, number));
}

TEST(FloatFolds, AreForFoldsInDouble) {
  if (instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "the processor has no vectors for them";
  EXPECT_EQ(avx2_float_fold(Fold::max), nullptr);
  EXPECT_EQ(avx2_float_fold(Fold::min), nullptr);
}

}  // namespace
}  // namespace symbind::cpu_backend
