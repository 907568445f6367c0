#include "symbind/kvstore/message.h"

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<int64_t>;

TEST(Message, IsReadAsItWasWritten) {
  MessageWriter out;
  out << 7 << true << -2.5 << std::string("key w") << std::string() << Texts{"a", "", "bc"} << Numbers{3, -4} << Texts{}
      << Numbers{};
  const std::vector<std::byte> written = out.take();
  MessageReader in(written);
  EXPECT_EQ(in.number<int>(), 7);
  EXPECT_TRUE(in.number<bool>());
  EXPECT_EQ(in.number<double>(), -2.5);
  EXPECT_EQ(in.text(), "key w");
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.texts(), (Texts{"a", "", "bc"}));
  EXPECT_EQ(in.numbers<int64_t>(), (Numbers{3, -4}));
  EXPECT_EQ(in.texts(), Texts{});
  EXPECT_EQ(in.numbers<int64_t>(), Numbers{});
  EXPECT_TRUE(in.rest().empty());
}

TEST(Message, ThatEndsEarlyIsRefused) {
  MessageWriter out;
  out << Texts{"a", "bc"} << Numbers{3, -4};
  const std::vector<std::byte> written = out.take();
  for (size_t length = 0; length < written.size(); ++length) {
    SCOPED_TRACE(length);
    MessageReader in(std::span<const std::byte>(written).first(length));
    EXPECT_TRUE(fails_with(
        [&] {
          in.texts();
          in.numbers<int64_t>();
        },
        "ends early", "same version"));
  }
}

// A message of another version may have anything where the number of items is read.
TEST(Message, WithMoreItemsThanItHasSpaceForIsRefused) {
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 40, ~uint64_t{0}}) {
    MessageWriter out;
    out << count << uint64_t{0} << uint64_t{0};
    const std::vector<std::byte> written = out.take();
    EXPECT_TRUE(fails_with([&] { MessageReader(written).texts(); }, "ends early"));
    EXPECT_TRUE(fails_with([&] { MessageReader(written).numbers<int64_t>(); }, "ends early"));
  }
}

}  // namespace
}  // namespace symbind::testing
