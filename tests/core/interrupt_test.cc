#include "symbind/core/interrupt.h"

#include <gtest/gtest.h>

#include "symbind/core/error.h"

namespace symbind {
namespace {

TEST(Interrupt, AsksWhoeverOwnsTheProcess) {
  check_interrupt();  // no check is set
  int asked = 0;
  EXPECT_FALSE(set_interrupt_check([&] { ++asked; }));
  check_interrupt();
  EXPECT_EQ(asked, 1);

  const auto before = set_interrupt_check([] { fail("stop"); });
  ASSERT_TRUE(before);
  EXPECT_THROW(check_interrupt(), Error);
  before();
  EXPECT_EQ(asked, 2);

  set_interrupt_check({});
  check_interrupt();
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace symbind
