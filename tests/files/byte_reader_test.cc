#include "symbind/files/byte_reader.h"

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;

constexpr uint64_t gib = uint64_t{1} << 30;

TEST(ByteReader, LimitsWhatAllArraysOfAFileUnpackToTogether) {
  ByteReader small("a few bytes", "small");
  EXPECT_FALSE(small.may_unpack(gib + 1));
  EXPECT_TRUE(small.may_unpack(gib / 2 + 1)) << "what was refused does not count";
  EXPECT_FALSE(small.may_unpack(gib / 2)) << "one byte too many with what came before";
  EXPECT_TRUE(small.may_unpack(gib / 2 - 1));
  EXPECT_TRUE(small.may_unpack(0));
  EXPECT_FALSE(small.may_unpack(1));
  EXPECT_FALSE(small.may_unpack(~uint64_t{0}));
}

TEST(ByteReader, LetsALargeFileUnpackToAThousandTimesItsSize) {
  const std::string bytes(size_t{2} << 20, '\0');
  ByteReader large(bytes, "large", 100);  // where it begins in its source does not count
  EXPECT_FALSE(large.may_unpack(2 * gib + 1));
  EXPECT_TRUE(large.may_unpack(2 * gib));
  EXPECT_FALSE(large.may_unpack(1));
}

TEST(ByteReader, ReadsUpToTheEndAndNoFurther) {
  ByteReader in("abcdef", "letters", 10);
  EXPECT_EQ(in.offset(), 10u);
  EXPECT_EQ(in.remaining(), 6u);
  EXPECT_EQ(in.read<uint16_t>("two letters"), 'a' + 256 * 'b');
  EXPECT_EQ(in.offset(), 12u);
  EXPECT_TRUE(fails_with([&] { in.read<uint64_t>("eight letters"); }, "[letters] at offset 12", "eight letters",
                         "8 bytes", "at 16"));
  EXPECT_EQ(in.read<uint32_t>("the others"), uint32_t{'c'} | 'd' << 8 | 'e' << 16 | 'f' << 24);
  EXPECT_EQ(in.remaining(), 0u);
}

}  // namespace
}  // namespace symbind
