#include "symbind/data/iterator.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "symbind/data/sharding.h"
#include "symbind/data/shuffle.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;

TEST(DataDesc, BatchAxisIsWhereTheLayoutHasN) {
  EXPECT_EQ(DataDesc::get_batch_axis(std::nullopt), 0);
  EXPECT_EQ(DataDesc::get_batch_axis("NCHW"), 0);
  EXPECT_EQ(DataDesc::get_batch_axis("TNC"), 1);
  EXPECT_EQ(DataDesc::get_batch_axis("CHW"), -1);
  EXPECT_EQ(DataDesc::get_batch_axis(""), -1);
}

class Described : public DataIter {
 public:
  explicit Described(std::vector<DataDesc> data) : data_(std::move(data)) {}
  std::vector<DataDesc> provide_data() const override { return data_; }
  std::vector<DataDesc> provide_label() const override { return {}; }
  void reset() override {}
  std::optional<DataBatch> next() override { return std::nullopt; }

 private:
  std::vector<DataDesc> data_;
};

TEST(DataIter, BatchSizeIsThatOfTheFirstInput) {
  EXPECT_EQ(Described({{"data", {32, 3, 8, 8}}, {"more", {5}}}).batch_size(), 32);
  EXPECT_EQ(Described({{"data", {7, 32, 3}, DType::float32, "TNC"}}).batch_size(), 32);
  EXPECT_EQ(Described({{"data", {7, 3}, DType::float32, "HW"}}).batch_size(), 7);
  EXPECT_TRUE(fails_with([] { Described({}).batch_size(); }, "no inputs"));
  EXPECT_TRUE(fails_with([] { Described({{"x", {7}, DType::float32, "TNC"}}).batch_size(); }, "x", "TNC", "(7,)"));
}

TEST(Sharding, PartsCoverEverySampleOnceAndDifferByOneAtMost) {
  for (const int64_t count : {0, 1, 5, 360, 1437})
    for (const int64_t parts : {1, 2, 3, 7, 400}) {
      int64_t end = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const Shard shard = shard_of(count, parts, part, "test");
        EXPECT_EQ(shard.begin, end);
        EXPECT_GE(shard.size(), count / parts);
        EXPECT_LE(shard.size(), count / parts + 1);
        end = shard.end;
      }
      EXPECT_EQ(end, count);
    }
}

TEST(Sharding, PartsThatAreNotThereAreRefused) {
  EXPECT_TRUE(fails_with([] { shard_of(10, 0, 0, "CSVIter"); }, "[CSVIter]", "num_parts", ": 0"));
  EXPECT_TRUE(fails_with([] { shard_of(10, 2, 2, "CSVIter"); }, "part_index", "between 0 and 1", ": 2"));
  EXPECT_TRUE(fails_with([] { shard_of(10, 2, -1, "CSVIter"); }, "part_index", ": -1"));
}

TEST(Shuffle, EverySampleComesOnce) {
  for (const int64_t count : {0, 1, 2, 3, 1000})
    for (std::vector<int64_t> order : {random_order(count), seeded_order(count, 3)}) {
      std::ranges::sort(order);
      ASSERT_EQ(order.size(), static_cast<size_t>(count));
      for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int64_t>(i));
    }
}

TEST(Shuffle, SeedRepeatsIt) {
  seed(7);
  const auto first = random_order(100), second = random_order(100);
  EXPECT_NE(first, second);
  seed(7);
  EXPECT_EQ(random_order(100), first);
  EXPECT_EQ(random_order(100), second);
}

TEST(Shuffle, EveryOrderIsAboutAsLikely) {
  seed(11);
  std::map<std::vector<int64_t>, int> times;
  for (int i = 0; i < 24000; ++i) ++times[random_order(4)];
  EXPECT_EQ(times.size(), 24u);
  for (const auto& [order, count] : times) EXPECT_NEAR(count, 1000, 160);  // five standard deviations
}

}  // namespace
}  // namespace symbind
