#include "symbind/exec/arithmetic.h"

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::all_devices;
using testing::counted;
using testing::fails_with;
using Floats = std::vector<float>;

TEST(Arithmetic, OfArraysIsElementByElement) {
  for (const Context context : all_devices()) {
    const NDArray a = array({1, 2, 3}, context), b = array({4, 5, 8}, context);
    EXPECT_EQ((a + b).to_vector<float>(), (Floats{5, 7, 11}));
    EXPECT_EQ((a - b).to_vector<float>(), (Floats{-3, -3, -5}));
    EXPECT_EQ((a * b).to_vector<float>(), (Floats{4, 10, 24}));
    EXPECT_EQ((b / a).to_vector<float>(), (Floats{4, 2.5, 8.0f / 3}));
    EXPECT_EQ((-a).to_vector<float>(), (Floats{-1, -2, -3}));
    EXPECT_TRUE(testing::all_close(pow(a, b), array({1, 32, 6561}, context)));
    EXPECT_EQ((a + b).context(), context);
  }
}

TEST(Arithmetic, WithNumbersGoesBothWays) {
  const NDArray a = array({1, 2, 4});
  EXPECT_EQ((a + 1).to_vector<float>(), (Floats{2, 3, 5}));
  EXPECT_EQ((1 + a).to_vector<float>(), (Floats{2, 3, 5}));
  EXPECT_EQ((a - 1).to_vector<float>(), (Floats{0, 1, 3}));
  EXPECT_EQ((1 - a).to_vector<float>(), (Floats{0, -1, -3}));
  EXPECT_EQ((a * 2).to_vector<float>(), (Floats{2, 4, 8}));
  EXPECT_EQ((2 * a).to_vector<float>(), (Floats{2, 4, 8}));
  EXPECT_EQ((a / 2).to_vector<float>(), (Floats{0.5, 1, 2}));
  EXPECT_EQ((4 / a).to_vector<float>(), (Floats{4, 2, 1}));
  EXPECT_EQ(pow(a, 2).to_vector<float>(), (Floats{1, 4, 16}));
  EXPECT_EQ(pow(2, a).to_vector<float>(), (Floats{2, 4, 16}));
}

TEST(Arithmetic, Broadcasts) {
  for (const Context context : all_devices()) {
    const NDArray column = counted({3, 1}, DType::float32, context), row = counted({1, 2}, DType::float32, context);
    const NDArray sum = column + row;
    EXPECT_EQ(sum.shape(), (Shape{3, 2}));
    EXPECT_EQ(sum.to_vector<float>(), (Floats{2, 3, 3, 4, 4, 5}));
    EXPECT_EQ((column * row).to_vector<float>(), (Floats{1, 2, 2, 4, 3, 6}));
    const NDArray one = full({1}, 10, context);
    EXPECT_EQ((counted({4}, DType::float32, context) + one).to_vector<float>(), (Floats{11, 12, 13, 14}));
  }
}

TEST(Arithmetic, OfShapesThatDoNotFitSaysBoth) {
  EXPECT_TRUE(fails_with([] { zeros({2, 3}) + zeros({2, 4}); }, "(2,3)", "(2,4)"));
}

TEST(Arithmetic, ComparisonsAnswerInTheOperandsType) {
  const NDArray a = array({1, 2, 3}), b = array({3, 2, 1});
  EXPECT_EQ((a < b).to_vector<float>(), (Floats{1, 0, 0}));
  EXPECT_EQ((a <= b).to_vector<float>(), (Floats{1, 1, 0}));
  EXPECT_EQ((a > b).to_vector<float>(), (Floats{0, 0, 1}));
  EXPECT_EQ((a >= b).to_vector<float>(), (Floats{0, 1, 1}));
  EXPECT_EQ((a == b).to_vector<float>(), (Floats{0, 1, 0}));
  EXPECT_EQ((a != b).to_vector<float>(), (Floats{1, 0, 1}));
  EXPECT_EQ((a == 2).to_vector<float>(), (Floats{0, 1, 0}));
  EXPECT_EQ((a > 1.5).to_vector<float>(), (Floats{0, 1, 1}));
  EXPECT_EQ((a < b).dtype(), DType::float32);
  const NDArray whole = array(std::vector<int32_t>{1, 2}, {2}, cpu(), DType::int32);
  EXPECT_EQ((whole == whole).dtype(), DType::int32);
}

TEST(Arithmetic, InPlaceWritesIntoTheSameMemory) {
  NDArray a = array({1, 2, 3});
  const NDArray same = a;
  a += 1;
  a *= array({1, 2, 3});
  a -= array({1});
  a /= 2;
  EXPECT_EQ(same.to_vector<float>(), (Floats{0.5, 2.5, 5.5}));
  EXPECT_TRUE(a.same_memory(same));
}

TEST(Arithmetic, InPlaceWithItselfAndWithOverlappingViews) {
  NDArray a = array({1, 2, 3});
  a *= a;
  EXPECT_EQ(a.to_vector<float>(), (Floats{1, 4, 9}));
  NDArray all = counted({5});
  NDArray front = all.slice(0, 4);
  front += all.slice(1, 5);
  EXPECT_EQ(all.to_vector<float>(), (Floats{3, 5, 7, 9, 5})) << "as if the right side had been read first";
  NDArray back = all.slice(1, 5);
  back += all.slice(0, 4);
  EXPECT_EQ(all.to_vector<float>(), (Floats{3, 8, 12, 16, 14}));
}

TEST(Arithmetic, InPlaceMayNotGrowTheLeftSide) {
  NDArray a = zeros({1, 3});
  EXPECT_THROW(a += zeros({2, 3}), Error);
}

TEST(Arithmetic, KeepsTheTypeOfItsOperands) {
  for (const DType dtype :
       {DType::float64, DType::float16, DType::bfloat16, DType::int32, DType::int64, DType::uint8, DType::int8}) {
    const NDArray a = counted({3}, dtype);
    EXPECT_EQ((a + a).dtype(), dtype);
    EXPECT_EQ((a * 2).dtype(), dtype);
    EXPECT_EQ((a * 2 + a).to_vector<int64_t>(), (std::vector<int64_t>{3, 6, 9})) << dtype;
  }
  EXPECT_THROW(counted({3}, DType::float64) + counted({3}), Error) << "types do not mix";
}

TEST(Arithmetic, OfArraysWithoutElements) {
  const NDArray nothing = zeros({0, 3});
  EXPECT_EQ((nothing + nothing).shape(), (Shape{0, 3}));
  EXPECT_EQ((nothing * 2).shape(), (Shape{0, 3}));
  EXPECT_EQ((nothing + zeros({1, 3})).shape(), (Shape{0, 3}));
}

TEST(Arithmetic, BetweenContextsIsAnError) {
  EXPECT_TRUE(fails_with([] { zeros({2}, cpu(0)) + zeros({2}, cpu(1)); }, "cpu(0)", "cpu(1)"));
}

}  // namespace
}  // namespace symbind
