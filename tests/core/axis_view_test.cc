#include "symbind/core/axis_view.h"

#include <vector>

#include <gtest/gtest.h>

namespace symbind {
namespace {

TEST(AxisView, CountsTheAxesBeforeAndAfterTogether) {
  const AxisView middle = view_along({2, 3, 4, 5}, 2);
  EXPECT_EQ(middle.outer, 6);
  EXPECT_EQ(middle.length, 4);
  EXPECT_EQ(middle.inner, 5);
  EXPECT_EQ(middle.size(), 120);
  EXPECT_EQ(view_along({2, 3}, 0).outer, 1);
  EXPECT_EQ(view_along({2, 3}, 1).inner, 1);
}

TEST(AxisView, RowsBeginWhereTheAxisIsZero) {
  const AxisView view = view_along({2, 3, 2}, 1);
  std::vector<int64_t> starts;
  for (int64_t row = 0; row < view.row_count(); ++row) starts.push_back(view.row_start(row));
  EXPECT_EQ(starts, (std::vector<int64_t>{0, 1, 6, 7}));
}

TEST(AxisView, AnEmptyArrayHasNoElements) {
  EXPECT_EQ(view_along({2, 0, 3}, 1).size(), 0);
  EXPECT_EQ(view_along({2, 0, 3}, 1).row_count(), 6);
  EXPECT_EQ(view_along({0, 4}, 1).row_count(), 0);
}

}  // namespace
}  // namespace symbind
