// Conversions between element types, and what becomes of numbers that do not fit.
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/core/ndarray.h"

namespace symbind::cpu_backend {
namespace {

TEST(Convert, EveryHalfGoesToFloatAndBack) {
  std::vector<float16> halves(65536), back(65536);
  std::vector<float> floats(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<uint16_t>(i);
  convert_array(floats.data(), DType::float32, halves.data(), DType::float16, 65536);
  convert_array(back.data(), DType::float16, floats.data(), DType::float32, 65536);
  for (size_t i = 0; i < halves.size(); ++i) {
    const float expected = halves[i];
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(floats[i])) << i;
      ASSERT_TRUE(std::isnan(static_cast<float>(back[i]))) << i;
    } else {
      ASSERT_EQ(floats[i], expected) << i;
      ASSERT_EQ(back[i].bits, halves[i].bits) << i;
    }
  }
}

TEST(Convert, FloatsRoundToTheNearestHalf) {
  std::vector<float> floats;
  for (uint32_t bits = 0; bits < 0xfff00000u; bits += 8191) floats.push_back(std::bit_cast<float>(bits));
  std::vector<float16> halves(floats.size());
  convert_array(halves.data(), DType::float16, floats.data(), DType::float32, static_cast<int64_t>(floats.size()));
  for (size_t i = 0; i < floats.size(); ++i)
    ASSERT_TRUE(std::isnan(floats[i]) || halves[i].bits == float16(floats[i]).bits) << floats[i];
}

TEST(Convert, NotANumberKeepsOnlyItsSignInVectorsToo) {
  constexpr uint32_t bits[] = {0x7f800001u, 0xff800001u, 0x7fc00000u, 0xffc12345u, 0x7fffffffu, 0xffffffffu};
  std::vector<float> floats;
  for (int i = 0; i < 19; ++i) floats.push_back(std::bit_cast<float>(bits[i % 6]));
  std::vector<float16> halves(floats.size());
  convert_array(halves.data(), DType::float16, floats.data(), DType::float32, static_cast<int64_t>(floats.size()));
  for (size_t i = 0; i < floats.size(); ++i) EXPECT_EQ(halves[i].bits, bits[i % 6] >> 31 ? 0xfe00 : 0x7e00) << i;
}

TEST(Convert, NumbersThatDoNotFitBecomeTheLeastInteger) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(convert<int32_t>(infinity), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(convert<int32_t>(-infinity), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(convert<int32_t>(NAN), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(convert<int32_t>(-2147483648.0), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(convert<int32_t>(2147483647.0), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(convert<int64_t>(1e30), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert<uint8_t>(300.5f), 44);
  EXPECT_EQ(convert<int8_t>(-1.9f), -1);
  EXPECT_EQ(convert<uint8_t>(NAN), 0);
  EXPECT_TRUE(convert<bool>(NAN));
}

}  // namespace
}  // namespace symbind::cpu_backend
