#include "symbind/data/ndarray_iter.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "symbind/core/log.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::counted;
using testing::fails_with;
using testing::same_bits;
using Numbers = std::vector<int64_t>;

// The samples of an epoch, one list per batch.
std::vector<Numbers> epoch(DataIter& iter) {
  std::vector<Numbers> batches;
  while (const auto batch = iter.next()) batches.push_back(batch->data[0].to_vector<int64_t>());
  return batches;
}

TEST(NDArrayIter, GoesOverItsPart) {
  std::vector<Numbers> parts;
  for (int64_t part = 0; part < 3; ++part) {
    NDArrayIter iter(arange(0, 10), arange(100, 110), {.batch_size = 2, .num_parts = 3, .part_index = part});
    Numbers samples;
    for (const Numbers& batch : epoch(iter)) samples.insert(samples.end(), batch.begin(), batch.end());
    samples.resize(static_cast<size_t>(iter.num_data()));  // without padding
    parts.push_back(samples);
  }
  EXPECT_EQ(parts, (std::vector<Numbers>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8, 9}}));
  EXPECT_TRUE(fails_with([] { NDArrayIter(arange(0, 10), {.num_parts = 3, .part_index = 3}); }, "part_index", "3"));
  EXPECT_TRUE(fails_with([] { NDArrayIter(arange(0, 2), {.num_parts = 3, .part_index = 0}); }, "2 samples", "part 0"));
}

TEST(NDArrayIter, BatchesThatLieWholeInTheArrayAreViews) {
  const NDArray data = counted({10, 3}), label = counted({10});
  NDArrayIter iter(data, label, {.batch_size = 4});
  const auto first = iter.next(), second = iter.next(), third = iter.next();
  EXPECT_TRUE(first->data[0].same_memory(data));
  EXPECT_TRUE(second->data[0].same_memory(data.slice(4, 8)));
  EXPECT_TRUE(second->label[0].same_memory(label.slice(4, 8)));
  EXPECT_NE(third->data[0].storage_ptr(), data.storage_ptr());
  EXPECT_EQ(third->data[0].shape(), Shape({4, 3}));
  EXPECT_EQ(third->pad, 2);
  EXPECT_EQ(third->index, Numbers({8, 9, 0, 1}));
  EXPECT_EQ(third->data[0].at(2).to_vector<int64_t>(), Numbers({1, 2, 3}));
  EXPECT_FALSE(iter.next());
  EXPECT_FALSE(iter.next());
}

TEST(NDArrayIter, EachEpochIsShuffledWithItsLabels) {
  seed(5);
  const NDArray data = arange(0, 50), label = arange(100, 150);
  NDArrayIter iter(data, label, {.batch_size = 7, .shuffle = true, .last_batch_handle = "roll_over"});
  std::vector<Numbers> epochs;
  for (int round = 0; round < 3; ++round, iter.reset()) {
    epochs.emplace_back();
    while (const auto batch = iter.next()) {
      const auto samples = batch->data[0].to_vector<int64_t>(), labels = batch->label[0].to_vector<int64_t>();
      EXPECT_EQ(samples, batch->index);
      for (size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(labels[i], samples[i] + 100);
      epochs.back().insert(epochs.back().end(), samples.begin(), samples.end());
    }
  }
  // 7 × 7, then the one left and 48 of 50, then the two left and 47.
  EXPECT_EQ(std::set(epochs[0].begin(), epochs[0].end()).size(), 49u);
  EXPECT_EQ(std::ranges::count(epochs[0], epochs[1][0]), 0);
  EXPECT_EQ(std::set(epochs[1].begin() + 1, epochs[1].end()).size(), 48u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(std::count(epochs[1].begin() + 1, epochs[1].end(), epochs[2][size_t(i)]), 0);
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(NDArrayIter, SeedRepeatsTheShuffles) {
  const auto run = [] {
    seed(9);
    NDArrayIter iter(arange(0, 20), {.batch_size = 5, .shuffle = true});
    auto batches = epoch(iter);
    iter.reset();
    for (const Numbers& batch : epoch(iter)) batches.push_back(batch);
    return batches;
  };
  const auto first = run();
  EXPECT_EQ(run(), first);
  EXPECT_NE(Numbers(first[0]), Numbers(first[4]));
}

TEST(NDArrayIter, RollOverGathersSamplesOverSeveralEpochsForABatchThatIsLargerThanTwoOfThem) {
  NDArrayIter iter(arange(0, 3), {.batch_size = 8, .last_batch_handle = "roll_over"});
  for (int round = 0; round < 2; ++round, iter.reset()) EXPECT_TRUE(epoch(iter).empty());
  const auto batch = iter.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->index, Numbers({0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_FALSE(iter.next());
  EXPECT_FALSE(iter.next());  // asking again changes nothing
  iter.reset();
  EXPECT_FALSE(iter.next());
  iter.reset();
  EXPECT_FALSE(iter.next());
  iter.reset();
  EXPECT_EQ(iter.next()->index, Numbers({2, 0, 1, 2, 0, 1, 2, 0}));
}

TEST(NDArrayIter, RollOverPadsTheFirstBatchWithWhatWasLeft) {
  NDArrayIter iter(arange(0, 10), {.batch_size = 4, .last_batch_handle = "roll_over"});
  const auto pads = [&] {
    Numbers found;
    while (iter.iter_next()) found.push_back(iter.getpad());
    iter.reset();
    return found;
  };
  EXPECT_EQ(pads(), Numbers({0, 0}));
  EXPECT_EQ(pads(), Numbers({2, 0, 0}));
  EXPECT_EQ(pads(), Numbers({0, 0}));
}

TEST(NDArrayIter, StepByStepItGivesTheSame) {
  NDArrayIter whole(counted({10, 2}), counted({10}), {.batch_size = 4}),
      steps(counted({10, 2}), counted({10}), {.batch_size = 4});
  while (steps.iter_next()) {
    const auto batch = whole.next();
    ASSERT_TRUE(batch);
    EXPECT_TRUE(same_bits(steps.getdata()[0], batch->data[0]));
    EXPECT_TRUE(same_bits(steps.getlabel()[0], batch->label[0]));
    EXPECT_EQ(steps.getpad(), batch->pad);
    EXPECT_EQ(steps.getindex(), batch->index);
  }
  EXPECT_FALSE(whole.next());
  EXPECT_TRUE(fails_with([&] { steps.getdata(); }, "no batch"));
}

TEST(NDArrayIter, AnyTypeAndRankIsGathered) {
  seed(1);
  for (const DType dtype : {DType::float64, DType::float16, DType::uint8, DType::int64})
    for (const Shape& shape : {Shape{5}, Shape{5, 2, 3}, Shape{5, 0, 3}}) {
      const NDArray data = testing::random_array(shape, 3, 0, 9, dtype);
      NDArrayIter iter(data, {.batch_size = 3, .shuffle = true});
      EXPECT_EQ(iter.provide_data()[0].dtype, dtype);
      while (const auto batch = iter.next()) {
        EXPECT_EQ(batch->data[0].dtype(), dtype);
        EXPECT_EQ(batch->data[0].shape(), shape.with(0, 3));
        for (int64_t i = 0; i < 3; ++i)
          EXPECT_TRUE(same_bits(batch->data[0].at(i), data.at(batch->index[static_cast<size_t>(i)])));
      }
    }
}

TEST(NDArrayIter, BatchesAreWhereTheArraysAre) {
  seed(2);
  for (const Context context : testing::all_devices()) {
    const NDArray data = counted({6, 4}, DType::float32, context);
    NDArrayIter iter(data, {.batch_size = 4, .shuffle = true});
    const auto batch = iter.next();
    EXPECT_EQ(batch->data[0].context(), context);
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_TRUE(same_bits(batch->data[0].at(i), data.at(batch->index[static_cast<size_t>(i)])));
  }
}

TEST(NDArrayIter, TakesNothingAnArrayAListOrNames) {
  const NDArray a = counted({4, 3}), b = counted({4, 2}), c = counted({4});
  const auto names = [](const std::vector<DataDesc>& descs) {
    std::vector<std::string> result;
    for (const DataDesc& desc : descs) result.push_back(desc.name);
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(NDArrayIter(a).provide_data()), Names{"data"});
  EXPECT_EQ(names(NDArrayIter(a, NDArray()).provide_label()), Names{});
  EXPECT_EQ(names(NDArrayIter({a}, c).provide_data()), Names{"data"});
  EXPECT_EQ(names(NDArrayIter({a, b}, {.batch_size = 2}).provide_data()), Names({"_0_data", "_1_data"}));
  EXPECT_EQ(names(NDArrayIter({{"right", a}, {"left", b}}, {{"digit", c}}).provide_data()), Names({"left", "right"}));
  EXPECT_EQ(names(NDArrayIter({{"right", a}}, {{"digit", c}}).provide_label()), Names{"digit"});
  EXPECT_EQ(names(NDArrayIter(std::vector<NDArray>{a, b}).provide_data()), Names({"_0_data", "_1_data"}));
  EXPECT_EQ(names(NDArrayIter(NamedArrays{{"x", a}}, {c, b}).provide_label()),
            Names({"_0_softmax_label", "_1_softmax_label"}));

  NDArrayIter iter({{"right", a}, {"left", b}}, {{"digit", c}}, {.batch_size = 2});
  const auto batch = iter.next();
  EXPECT_EQ(batch->data[0].shape(), Shape({2, 2}));
  EXPECT_EQ(batch->data[1].shape(), Shape({2, 3}));
  EXPECT_EQ(iter.batch_size(), 2);
  EXPECT_EQ(iter.num_data(), 4);
}

TEST(NDArrayIter, WithoutSamplesThereAreNoBatches) {
  for (const std::string handle : {"pad", "discard", "roll_over"}) {
    NDArrayIter iter(NDArray(Shape{0, 3}), {.batch_size = 2, .shuffle = true, .last_batch_handle = handle});
    for (int round = 0; round < 2; ++round, iter.reset()) EXPECT_FALSE(iter.next());
  }
}

TEST(NDArrayIter, WarnsWhenEverythingIsDiscarded) {
  std::string said;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view message) { said += message; });
  NDArrayIter iter(counted({3}), {.batch_size = 4, .last_batch_handle = "discard"});
  set_log_sink(before);
  EXPECT_NE(said.find("3 samples do not fill a batch of 4"), std::string::npos) << said;
  EXPECT_FALSE(iter.next());
}

TEST(NDArrayIter, SaysWhereItStands) {
  seed(5);
  NDArrayIter iter(counted({4}), counted({4}), {.batch_size = 2, .shuffle = true});
  EXPECT_EQ(iter.cursor(), -2);
  EXPECT_EQ(iter.data()[0].name, "data");
  EXPECT_EQ(iter.label()[0].array.shape(), Shape({4}));
  const auto batch = iter.next();
  EXPECT_EQ(iter.cursor(), 0);
  ASSERT_EQ(iter.order().size(), 4u);
  EXPECT_EQ(batch->index, std::vector<int64_t>(iter.order().begin(), iter.order().begin() + 2));
  EXPECT_TRUE(iter.options().shuffle);
}

TEST(NDArrayIter, WrongArgumentsAreRefused) {
  const NDArray data = counted({10, 3});
  EXPECT_TRUE(fails_with([&] { NDArrayIter(data, counted({9})); }, "[NDArrayIter]", "data has 10",
                         "softmax_label has 9", "(10,3)", "(9,)"));
  EXPECT_TRUE(fails_with(
      [&] {
        NDArrayIter(std::vector<NDArray>{data, counted({9})});
      },
      "_0_data has 10", "_1_data has 9"));
  EXPECT_TRUE(fails_with([&] { NDArrayIter(data, {.last_batch_handle = "keep"}); }, "last_batch_handle",
                         "pad, discard, roll_over", ": keep"));
  EXPECT_TRUE(fails_with([&] { NDArrayIter(data, {.batch_size = 0}); }, "batch_size", ": 0"));
  EXPECT_TRUE(fails_with([&] { NDArrayIter(IteratorArrays{}, data); }, "at least one array of data"));
  EXPECT_TRUE(fails_with([&] { NDArrayIter({data, NDArray()}, data); }, "_1_data", "empty"));
  EXPECT_TRUE(fails_with([&] { NDArrayIter(NDArray(Shape::scalar())); }, "data", "axis of samples", "()"));
}

}  // namespace
}  // namespace symbind
