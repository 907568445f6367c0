#include "symbind/backend/divisor.h"

#include <random>

#include <gtest/gtest.h>

namespace symbind::testing {
namespace {

void expect_division(int64_t dividend, int64_t by) {
  const Divided result = Divisor(by).divide(dividend);
  EXPECT_EQ(result.quotient, dividend / by) << dividend << " / " << by;
  EXPECT_EQ(result.rest, dividend % by) << dividend << " / " << by;
}

TEST(Divisor, DividesSmallNumbers) {
  for (int64_t by = 1; by < 200; ++by)
    for (int64_t dividend = 0; dividend < 400; ++dividend) expect_division(dividend, by);
}

// Multiples and their neighbours are where a rounded multiplier would be wrong first.
TEST(Divisor, DividesNumbersOfEveryLength) {
  std::mt19937_64 random(1);
  for (int bits = 1; bits < 63; ++bits)
    for (int i = 0; i < 200; ++i) {
      const auto dividend = static_cast<int64_t>(random() >> (64 - bits));
      const auto by = static_cast<int64_t>(random() >> (2 + random() % 61)) + 1;
      expect_division(dividend, by);
      const int64_t multiple = dividend / by * by;
      expect_division(multiple, by);
      if (multiple > 0) expect_division(multiple - 1, by);
    }
}

TEST(Divisor, DividesAtTheEndOf31Bits) {
  const int64_t end = int64_t{1} << 31;
  for (const int64_t by : {int64_t{1}, int64_t{3}, int64_t{7}, int64_t{641}, end - 1, end, end + 1})
    for (const int64_t dividend : {end - 2, end - 1, end, end + 1}) expect_division(dividend, by);
}

}  // namespace
}  // namespace symbind::testing
