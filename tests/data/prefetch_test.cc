#include "symbind/data/prefetch.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/data/ndarray_iter.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;
using Numbers = std::vector<int64_t>;
using Iters = std::vector<std::shared_ptr<DataIter>>;

// Batches of one number, 0 to `size` - 1, that does what a test wants before each.
class Counter : public DataIter {
 public:
  explicit Counter(int64_t size, std::function<void(int64_t)> before = {}) : size_(size), before_(std::move(before)) {}
  std::vector<DataDesc> provide_data() const override { return {{"data", {1}}}; }
  std::vector<DataDesc> provide_label() const override { return {}; }
  BucketKey default_bucket_key() const override { return "key"; }
  void reset() override {
    next_ = 0;
    ++resets;
  }
  std::optional<DataBatch> next() override {
    if (before_) before_(next_);
    if (next_ == size_) return std::nullopt;
    ++made;
    return DataBatch{.data = {array({static_cast<double>(next_++)})}};
  }

  std::atomic<int> made = 0;
  int resets = 0;

 private:
  int64_t size_, next_ = 0;
  std::function<void(int64_t)> before_;
};

Numbers rest(DataIter& iter) {
  Numbers numbers;
  while (const auto batch = iter.next()) numbers.push_back(static_cast<int64_t>(batch->data[0].item()));
  return numbers;
}

TEST(PrefetchingIter, GivesEveryBatchInOrderEpochAfterEpoch) {
  Counter counter(100);
  PrefetchingIter iter(counter);
  for (int epoch = 0; epoch < 3; ++epoch, iter.reset()) {
    const Numbers numbers = rest(iter);
    ASSERT_EQ(numbers.size(), 100u);
    for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int64_t>(i));
    EXPECT_FALSE(iter.next());
  }
  EXPECT_EQ(iter.batch_size(), 1);
  EXPECT_EQ(iter.default_bucket_key(), "key");
}

TEST(PrefetchingIter, MakesBatchesOnAnotherThreadWhileTheCallerIsBusy) {
  std::thread::id maker;
  Counter counter(3, [&](int64_t) { maker = std::this_thread::get_id(); });
  {
    PrefetchingIter iter(counter, {.prefetch_buffer = 3});
    EXPECT_EQ(counter.made, 0);  // the epoch has not begun
    iter.next();
    while (counter.made < 3) std::this_thread::yield();  // these have not been asked for yet
  }
  EXPECT_NE(maker, std::this_thread::get_id());
}

TEST(PrefetchingIter, RunsNoFurtherAheadThanItsBuffer) {
  Counter counter(100);
  PrefetchingIter iter(counter, {.prefetch_buffer = 4});
  for (int taken = 1; taken <= 5; ++taken) {
    iter.next();
    while (counter.made < taken + 4) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(counter.made, taken + 4);
  }
}

TEST(PrefetchingIter, EachIteratorHasAThreadOfItsOwn) {
  // Each waits for the other to have begun: on one thread this would never end.
  std::atomic<int> begun = 0;
  const auto meet = [&](int64_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  };
  PrefetchingIter iter(Iters{std::make_shared<Counter>(5, meet), std::make_shared<Counter>(5, meet)});
  const auto batch = iter.next();
  EXPECT_EQ(batch->data.size(), 2u);
}

TEST(PrefetchingIter, ResetInTheMiddleBeginsAgain) {
  Counter counter(50);
  PrefetchingIter iter(counter);
  for (int taken = 0; taken < 20; ++taken) {
    for (int i = 0; i < taken; ++i) EXPECT_EQ(iter.next()->data[0].item(), i);
    iter.reset();
  }
  EXPECT_EQ(rest(iter).size(), 50u);
  EXPECT_EQ(counter.resets, 20);
}

// Makes its second batch only when it is let, and notices a reset meanwhile.
class Watched final : public Counter {
 public:
  Watched()
      : Counter(3, [this](int64_t number) {
          if (number != 1) return;
          is_inside = true;
          while (!may_go_on) std::this_thread::yield();
          is_inside = false;
        }) {}
  void reset() override {
    if (is_inside) was_disturbed = true;
    Counter::reset();
  }
  std::atomic<bool> is_inside = false, may_go_on = false, was_disturbed = false;
};

TEST(PrefetchingIter, ResetWaitsForTheBatchThatIsBeingMade) {
  const auto watched = std::make_shared<Watched>();
  PrefetchingIter iter(Iters{watched});
  iter.next();
  while (!watched->is_inside) std::this_thread::yield();
  std::thread resetting([&] { iter.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a reset that does not wait would be done
  watched->may_go_on = true;
  resetting.join();
  EXPECT_FALSE(watched->was_disturbed);
  EXPECT_EQ(rest(iter), (Numbers{0, 1, 2}));
}

TEST(PrefetchingIter, CanBeDestroyedAtAnyTime) {
  for (int taken = 0; taken < 8; ++taken)
    for (int round = 0; round < 20; ++round) {
      PrefetchingIter iter(Iters{std::make_shared<Counter>(5), std::make_shared<Counter>(5)});
      for (int i = 0; i < taken; ++i) EXPECT_EQ(iter.next().has_value(), i < 5) << "batch " << i;
      if (round % 3 == 0) iter.reset();
    }
}

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(PrefetchingIter, PassesAnExceptionOnInOrderAndUntilReset) {
  std::atomic<bool> broken = true;
  Counter counter(10, [&](int64_t next) {
    if (next == 3 && broken) throw Broken("the disk is gone");
  });
  PrefetchingIter iter(counter);
  for (int round = 0; round < 2; ++round, iter.reset()) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(iter.next()->data[0].item(), i);
    for (int again = 0; again < 3; ++again) EXPECT_THROW(iter.next(), Broken);
  }
  iter.reset();
  broken = false;
  iter.reset();
  EXPECT_EQ(rest(iter).size(), 10u);
}

TEST(PrefetchingIter, AnExceptionOfOneIteratorStopsThemAll) {
  PrefetchingIter iter(Iters{std::make_shared<Counter>(10), std::make_shared<Counter>(10, [](int64_t next) {
                               if (next == 2) throw Broken("no");
                             })});
  EXPECT_TRUE(iter.next());
  EXPECT_TRUE(iter.next());
  for (int again = 0; again < 20; ++again) EXPECT_THROW(iter.next(), Broken);
}

TEST(PrefetchingIter, AResetThatThrowsCanBeTriedAgain) {
  class Stubborn : public Counter {
   public:
    Stubborn() : Counter(4) {}
    void reset() override {
      if (++tries < 3) throw Broken("not yet");
      Counter::reset();
    }
    int tries = 0;
  } stubborn;
  PrefetchingIter iter(stubborn);
  EXPECT_EQ(rest(iter).size(), 4u);
  EXPECT_THROW(iter.reset(), Broken);
  EXPECT_THROW(iter.next(), Broken);
  EXPECT_THROW(iter.reset(), Broken);
  iter.reset();
  EXPECT_EQ(rest(iter).size(), 4u);
}

TEST(PrefetchingIter, ShufflesAreThoseOfTheIteratorAlone) {
  const auto epochs = [](DataIter& iter) {
    Numbers all;
    for (int epoch = 0; epoch < 3; ++epoch, iter.reset())
      while (const auto batch = iter.next()) all.insert(all.end(), batch->index.begin(), batch->index.end());
    return all;
  };
  const auto make = [] {
    seed(4);
    return NDArrayIter(arange(0, 30), {.batch_size = 4, .shuffle = true});
  };
  NDArrayIter alone = make();
  const Numbers expected = epochs(alone);
  NDArrayIter inner = make();
  PrefetchingIter iter(inner);
  EXPECT_EQ(epochs(iter), expected);
}

TEST(PrefetchingIter, ShufflesAreDrawnWhenTheEpochBegins) {
  const auto make = [] {
    return std::make_shared<NDArrayIter>(arange(0, 30), NDArrayIterOptions{.batch_size = 4, .shuffle = true});
  };
  const auto first = make(), second = make();
  seed(4);
  const auto of_first = first->next()->data[0], of_second = second->next()->data[0];
  for (int round = 0; round < 20; ++round) {
    PrefetchingIter both(Iters{make(), make()});
    for (int epoch = 0; epoch < 2; ++epoch, both.reset()) {
      seed(4);
      const auto batch = both.next();
      EXPECT_EQ(batch->data[0].to_vector<float>(), of_first.to_vector<float>());
      EXPECT_EQ(batch->data[1].to_vector<float>(), of_second.to_vector<float>());  // one draws after the other
    }
  }
}

TEST(PrefetchingIter, BatchesThatDescribeThemselvesAreRenamedToo) {
  class Bucketed : public Counter {
   public:
    Bucketed() : Counter(2) {}
    std::optional<DataBatch> next() override {
      auto batch = Counter::next();
      if (batch) {
        batch->bucket_key = "20";
        batch->provide_data = {{"data", {1, 20}}};
      }
      return batch;
    }
  };
  PrefetchingIter iter(Iters{std::make_shared<Bucketed>(), std::make_shared<Counter>(2)},
                       {.rename_data = {{{"data", "left"}}, {{"data", "right"}}}});
  const auto batch = iter.next();
  EXPECT_EQ(batch->bucket_key, "20");
  EXPECT_EQ(*batch->provide_data, (std::vector<DataDesc>{{"left", {1, 20}}, {"right", {1}}}));
  EXPECT_FALSE(batch->provide_label);
}

TEST(PrefetchingIter, IteratorsThatDoNotFitTogetherAreRefused) {
  const auto numbered = [](int64_t samples) {
    return std::make_shared<NDArrayIter>(zeros({samples, 2}), NDArrayIterOptions{.batch_size = 4});
  };
  PrefetchingIter lengths(Iters{numbered(8), numbered(12)}), pads(Iters{numbered(6), numbered(7)});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(lengths.next());
  for (int again = 0; again < 3; ++again)
    EXPECT_TRUE(fails_with([&] { lengths.next(); }, "same number of batches", "iterator 0 ended before iterator 1"));
  EXPECT_TRUE(pads.next());
  EXPECT_TRUE(
      fails_with([&] { pads.next(); }, "same number of samples", "iterator 0 has pad 2", "iterator 1 has pad 1"));
}

TEST(PrefetchingIter, WrongArgumentsAreRefused) {
  Counter counter(3);
  const auto shared = std::make_shared<Counter>(3);
  EXPECT_TRUE(fails_with([] { PrefetchingIter{Iters{}}; }, "at least one iterator"));
  EXPECT_TRUE(fails_with([] { PrefetchingIter{Iters{nullptr}}; }, "iterator 0 is missing"));
  EXPECT_TRUE(fails_with([&] { PrefetchingIter{Iters{shared, shared}}; }, "iterator 1 was given before"));
  EXPECT_TRUE(fails_with([&] { PrefetchingIter(counter, {.prefetch_buffer = 0}); }, "prefetch_buffer", ": 0"));
  EXPECT_TRUE(fails_with(
      [&] {
        PrefetchingIter(counter, {.rename_data = {{{"data", "a"}}, {}}});
      },
      "rename_data", "2 for 1 iterators"));
  EXPECT_TRUE(fails_with(
      [&] {
        PrefetchingIter(counter, {.rename_data = {{{"dat", "a"}}}});
      },
      "rename_data[0]", "data is not among dat"));
}

}  // namespace
}  // namespace symbind
