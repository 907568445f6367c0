#include "symbind/backend/pooled_size.h"

#include <gtest/gtest.h>

namespace symbind {
namespace {

constexpr size_t mib = size_t{1} << 20;

TEST(PooledSize, WastesLittle) {
  for (size_t bytes = 1; bytes < 200'000'000'000; bytes += bytes / 7 + 1) {
    const size_t size = pooled_size(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_EQ(size % 512, 0U) << bytes;
    ASSERT_LT(size - bytes, 32 * mib) << bytes;
    if (bytes >= 4096) {
      ASSERT_LT(size - bytes, bytes / 8) << bytes;
    }
    ASSERT_EQ(pooled_size(size), size) << bytes;
  }
}

TEST(PooledSize, IsTheSameForSimilarSizes) {
  EXPECT_EQ(pooled_size(0), 512U);
  EXPECT_EQ(pooled_size(1), pooled_size(512));
  EXPECT_EQ(pooled_size(100 * mib - 1'000), pooled_size(97 * mib));
  EXPECT_EQ(pooled_size(7'443 * mib), 7'456 * mib);
}

}  // namespace
}  // namespace symbind
