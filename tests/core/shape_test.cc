#include "symbind/core/shape.h"

#include <thread>

#include <gtest/gtest.h>

#include "symbind/core/error.h"
#include "symbind/core/shape_convention.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;
using Dims = std::vector<int64_t>;

TEST(Shape, KnowsNothingByDefault) {
  const Shape shape;
  EXPECT_FALSE(shape.rank_known());
  EXPECT_FALSE(shape.known());
  EXPECT_EQ(shape.str(), "?");
}

TEST(Shape, OfAScalarHasOneElement) {
  EXPECT_EQ(Shape::scalar().rank(), 0);
  EXPECT_TRUE(Shape::scalar().known());
  EXPECT_EQ(Shape::scalar().size(), 1);
  EXPECT_EQ(Shape::scalar(), Shape(Dims{}));
}

TEST(Shape, CountsElements) {
  EXPECT_EQ((Shape{2, 3, 4}).size(), 24);
  EXPECT_EQ((Shape{2, 3, 4}).size(1, 3), 12);
  EXPECT_EQ((Shape{2, 0, 4}).size(), 0);
  EXPECT_TRUE((Shape{2, 0, 4}).known());
}

TEST(Shape, IsARangeOfItsDimensionsNotOfElements) {
  const Shape shape{2, 3, 4};
  const std::span<const int64_t> dims(shape);
  EXPECT_EQ(Dims(dims.begin(), dims.end()), (Dims{2, 3, 4}));
  EXPECT_EQ(std::ranges::size(shape), 3u);
}

TEST(Shape, SaysWhatIsUnknown) {
  const Shape shape{32, unknown_dim, 5};
  EXPECT_TRUE(shape.rank_known());
  EXPECT_FALSE(shape.known());
  EXPECT_EQ(shape.str(), "(32,?,5)");
  EXPECT_TRUE(fails_with([&] { shape.size(); }, "not fully known", "(32,?,5)"));
}

TEST(Shape, PrintsLikeATuple) {
  EXPECT_EQ((Shape{7}).str(), "(7,)");
  EXPECT_EQ((Shape{2, 3}).str(), "(2,3)");
  EXPECT_EQ(Shape::scalar().str(), "()");
}

TEST(Shape, ReadsZeroAsUnknownFromThePublicInterface) {
  const Shape shape = Shape::from_public(Dims{0, 3});
  EXPECT_EQ(shape[0], unknown_dim);
  EXPECT_EQ(shape.to_public(), (Dims{0, 3}));
  EXPECT_FALSE(Shape::from_public(Dims{}).rank_known());
}

TEST(Shape, RefusesNegativeDimensionsAndTooManyOfThem) {
  EXPECT_TRUE(fails_with([] { Shape{2, -3}; }, "-3"));
  EXPECT_TRUE(fails_with([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }, "at most 8"));
}

TEST(Shape, RefusesToOverflow) {
  const int64_t huge = int64_t{1} << 40;
  EXPECT_TRUE(fails_with([&] { (Shape{huge, huge}).size(); }, "more elements than can be counted"));
  EXPECT_TRUE(fails_with([&] { (Shape{huge, int64_t{1} << 22}).size(); }, "too large"));
  EXPECT_EQ((Shape{huge, 0}).size(), 0);
}

TEST(Shape, CountsAxesFromBothEnds) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.axis(1, "[sum]"), 1);
  EXPECT_EQ(shape.axis(-1, "[sum]"), 2);
  EXPECT_TRUE(fails_with([&] { shape.axis(3, "[sum s0]"); }, "[sum s0]", "axis 3", "(2,3,4)"));
  EXPECT_TRUE(fails_with([&] { shape.axis(-4, "[sum s0]"); }, "axis -4"));
}

TEST(Shape, HasRowMajorStrides) {
  const auto strides = (Shape{2, 3, 4}).strides();
  EXPECT_EQ(strides[0], 12);
  EXPECT_EQ(strides[1], 4);
  EXPECT_EQ(strides[2], 1);
}

TEST(Shape, IsCutAndChanged) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.slice(1, 3), (Shape{3, 4}));
  EXPECT_EQ(shape.slice(1, 1), Shape::scalar());
  EXPECT_EQ(shape.with(0, 9), (Shape{9, 3, 4}));
}

TEST(Unify, TakesFromEitherWhatTheOtherLacks) {
  Shape a{2, unknown_dim}, b;
  EXPECT_TRUE(unify(b, a));
  EXPECT_EQ(a, b);
  EXPECT_TRUE(unify(a, Shape{unknown_dim, 5}));
  EXPECT_EQ(a, (Shape{2, 5}));
}

TEST(Unify, LeavesAShapeAloneWhenTheOtherContradicts) {
  Shape a{2, unknown_dim, 4};
  EXPECT_FALSE(unify(a, Shape{unknown_dim, 3, 5}));
  EXPECT_EQ(a, (Shape{2, unknown_dim, 4}));
  EXPECT_FALSE(unify(a, Shape{2, 3}));
}

TEST(Shape, MeansWhatItDoesInNumPyWhereAThreadAsksForThat) {
  EXPECT_FALSE(use_numpy_shapes(true));
  std::thread([] { EXPECT_FALSE(uses_numpy_shapes()); }).join();
  EXPECT_EQ(Shape::from_public(Dims{0, -1}), (Shape{0, unknown_dim}));
  EXPECT_EQ((Shape{0, unknown_dim}).to_public(), (Dims{0, -1}));
  EXPECT_EQ(Shape::from_public(Dims{}), Shape::scalar());
  EXPECT_TRUE(use_numpy_shapes(false));
  EXPECT_FALSE(Shape::from_public(Dims{0}).known());
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast(Shape{3, 1}, Shape{1, 4}, ""), (Shape{3, 4}));
  EXPECT_EQ(broadcast(Shape{2, 3, 4}, Shape{4}, ""), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast(Shape::scalar(), Shape{5}, ""), (Shape{5}));
  EXPECT_EQ(broadcast(Shape{0, 1}, Shape{1, 3}, ""), (Shape{0, 3}));
  EXPECT_TRUE(fails_with(
      [] {
        broadcast(Shape{2, 3}, Shape{2, 4}, "[broadcast_add a]");
      },
      "[broadcast_add a]", "(2,3)", "(2,4)"));
}

TEST(Shape, IndicesAreCheckedAndCountFromTheEnd) {
  Shape shape{2, 3, 4};
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[-3], 2);
  shape[-2] = 5;
  EXPECT_EQ(shape, (Shape{2, 5, 4}));
  EXPECT_TRUE(fails_with([&] { static_cast<void>(shape[3]); }, "axis 3", "(2,5,4)"));
  EXPECT_TRUE(fails_with([&] { static_cast<void>(shape[-4]); }, "axis -4", "(2,5,4)"));
  EXPECT_TRUE(fails_with([] { static_cast<void>(Shape()[0]); }, "unknown rank"));
  EXPECT_TRUE(fails_with([] { static_cast<void>(Shape::scalar()[-1]); }, "axis -1"));
}

}  // namespace
}  // namespace symbind
