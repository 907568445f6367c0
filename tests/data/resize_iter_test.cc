#include "symbind/data/resize_iter.h"

#include <gtest/gtest.h>

#include "symbind/data/ndarray_iter.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;

TEST(ResizeIter, DescribesWhatItWraps) {
  NDArrayIter inner(zeros({6, 2}), zeros({6}), {.batch_size = 3});
  const ResizeIter iter(inner, 5);
  EXPECT_EQ(iter.provide_data(), inner.provide_data());
  EXPECT_EQ(iter.provide_label(), inner.provide_label());
  EXPECT_EQ(iter.batch_size(), 3);
}

TEST(ResizeIter, OwnsWhatItIsGivenToKeep) {
  ResizeIter iter(std::make_shared<NDArrayIter>(arange(0, 4), NDArrayIterOptions{.batch_size = 2}), 3);
  int batches = 0;
  while (iter.next()) EXPECT_EQ(iter.cur(), ++batches);
  EXPECT_EQ(batches, 3);
  iter.reset();
  EXPECT_EQ(iter.cur(), 0);
}

TEST(ResizeIter, EndsWhenThereAreNoBatchesAtAll) {
  NDArrayIter inner(NDArray(Shape{0, 2}), {.batch_size = 3});
  ResizeIter iter(inner, 5);
  EXPECT_FALSE(iter.next());
  EXPECT_FALSE(ResizeIter(inner, 0).next());
}

TEST(ResizeIter, WrongArgumentsAreRefused) {
  NDArrayIter inner(zeros({6, 2}));
  EXPECT_TRUE(fails_with([&] { ResizeIter(inner, -1); }, "[ResizeIter]", "size", ": -1"));
  EXPECT_TRUE(fails_with([&] { ResizeIter(std::shared_ptr<DataIter>(), 1); }, "[ResizeIter]", "iterator"));
}

}  // namespace
}  // namespace symbind
