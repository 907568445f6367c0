#include "symbind/core/dtype.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind {
namespace {

constexpr DType all_types[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8,
                               DType::int8,    DType::int32,   DType::int64,   DType::boolean};

TEST(DType, NamesAreReadBack) {
  for (const DType dtype : all_types) EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
}

TEST(DType, OfAnUnknownNameIsAnErrorThatListsTheRightOnes) {
  EXPECT_TRUE(testing::fails_with([] { dtype_from_name("float23"); }, "float23", "float32", "bfloat16"));
}

TEST(DType, SizesAreThoseOfTheirCTypes) {
  for (const DType dtype : all_types)
    visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
      EXPECT_EQ(size_of(dtype), sizeof(T)) << dtype;
      EXPECT_EQ(dtype_of<T>(), dtype);
    });
}

TEST(DType, NumbersAreThoseOfFiles) {
  EXPECT_EQ(static_cast<int>(DType::float32), 0);
  EXPECT_EQ(static_cast<int>(DType::float64), 1);
  EXPECT_EQ(static_cast<int>(DType::float16), 2);
  EXPECT_EQ(static_cast<int>(DType::uint8), 3);
  EXPECT_EQ(static_cast<int>(DType::int32), 4);
  EXPECT_EQ(static_cast<int>(DType::int8), 5);
  EXPECT_EQ(static_cast<int>(DType::int64), 6);
  EXPECT_EQ(static_cast<int>(DType::boolean), 7);
  EXPECT_EQ(static_cast<int>(DType::bfloat16), 12);
}

TEST(DType, VisitingFloatingTypesRefusesOthers) {
  const auto nothing = []<class T>(std::type_identity<T>) {};
  EXPECT_NO_THROW(visit_floating(DType::bfloat16, nothing));
  EXPECT_TRUE(testing::fails_with([&] { visit_floating(DType::int32, nothing); }, "int32"));
}

// ---- half precision ------------------------------------------------------------------------------------------------

bool is_nan_half(uint16_t bits) { return (bits & 0x7c00u) == 0x7c00u && (bits & 0x3ffu) != 0; }

float16 half_of(uint16_t bits) {
  float16 half;
  half.bits = bits;
  return half;
}

// The value of a half by its definition.
double value_by_definition(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  const double sign = bits & 0x8000u ? -1 : 1;
  if (exponent == 31) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Float16, EveryBitPatternHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const float16 half = half_of(static_cast<uint16_t>(bits));
    const auto value = static_cast<float>(half);
    if (is_nan_half(half.bits)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(is_nan_half(float16(value).bits)) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), value_by_definition(half.bits)) << bits;
    ASSERT_EQ(float16(value).bits, half.bits) << bits;
  }
}

TEST(Float16, RoundsEveryMiddleToEvenAndItsNeighboursToTheNearest) {
  for (uint32_t bits = 0; bits < 0x7bffu; ++bits) {  // all finite positive halves but the largest
    const auto lower = static_cast<uint16_t>(bits), upper = static_cast<uint16_t>(bits + 1);
    const auto middle = static_cast<float>((value_by_definition(lower) + value_by_definition(upper)) / 2);
    const uint16_t even = lower & 1u ? upper : lower;
    ASSERT_EQ(float16(middle).bits, even) << middle;
    ASSERT_EQ(float16(std::nextafter(middle, 0.0f)).bits, lower) << middle;
    ASSERT_EQ(float16(std::nextafter(middle, 1e9f)).bits, upper) << middle;
    ASSERT_EQ(float16(-middle).bits, even | 0x8000u) << middle;
  }
}

TEST(Float16, OverflowsToInfinityWhereItShould) {
  EXPECT_EQ(float16(65504.0f).bits, 0x7bffu);
  EXPECT_EQ(float16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bffu);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00u);
  EXPECT_EQ(float16(-std::numeric_limits<float>::infinity()).bits, 0xfc00u);
}

TEST(Bfloat16, EveryBitPatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    bfloat16 value;
    value.bits = static_cast<uint16_t>(bits);
    const auto wide = static_cast<float>(value);
    if (std::isnan(wide))
      ASSERT_TRUE(std::isnan(static_cast<float>(bfloat16(wide))));
    else
      ASSERT_EQ(bfloat16(wide).bits, value.bits);
  }
}

TEST(Bfloat16, RoundsToTheNearestAndMiddlesToEven) {
  for (uint32_t bits = 0; bits < 0x7f7fu; ++bits) {
    const float middle = std::bit_cast<float>((bits << 16) | 0x8000u);
    ASSERT_EQ(bfloat16(middle).bits, bits & 1u ? bits + 1 : bits);
    ASSERT_EQ(bfloat16(std::bit_cast<float>((bits << 16) | 0x7fffu)).bits, bits);
    ASSERT_EQ(bfloat16(std::bit_cast<float>((bits << 16) | 0x8001u)).bits, bits + 1);
  }
}

TEST(Float16, RandomFloatsRoundToTheNearest) {
  std::mt19937 engine(1);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    if (!std::isfinite(value) || std::abs(value) > 65504) continue;
    const float16 half(value);
    const double error = std::abs(value_by_definition(half.bits) - static_cast<double>(value));
    for (const int step : {-1, 1}) {
      const auto neighbour = static_cast<uint16_t>(half.bits + step);
      if (is_nan_half(neighbour) || (half.bits & 0x7fffu) == 0) continue;
      ASSERT_LE(error, std::abs(value_by_definition(neighbour) - static_cast<double>(value))) << value;
    }
  }
}

}  // namespace
}  // namespace symbind
