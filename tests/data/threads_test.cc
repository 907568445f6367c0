// Iterators used by several threads. Also run under the thread sanitizer.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/data/ndarray_iter.h"
#include "symbind/data/prefetch.h"
#include "symbind/data/resize_iter.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;

// Batches of one number, the first of which is made when the test says so.
class Gate : public DataIter {
 public:
  std::vector<DataDesc> provide_data() const override { return {{"data", {1}}}; }
  std::vector<DataDesc> provide_label() const override { return {}; }
  void reset() override {}
  std::optional<DataBatch> next() override {
    std::unique_lock lock(mutex_);
    inside_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    return DataBatch{.data = {array({1})}};
  }

  void wait_for_caller() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool inside_ = false, open_ = false;
};

TEST(IteratorThreads, AnIteratorThatIsDrawingABatchRefusesOtherThreads) {
  Gate gate;
  ResizeIter iter(gate, 2);
  std::thread other([&] { iter.next(); });
  gate.wait_for_caller();
  EXPECT_TRUE(fails_with([&] { iter.next(); }, "[next] this iterator", "another thread", "PrefetchingIter"));
  EXPECT_TRUE(fails_with([&] { iter.reset(); }, "[reset] this iterator"));
  EXPECT_EQ(iter.batch_size(), 1);
  gate.open();
  other.join();
  EXPECT_TRUE(iter.next());
  EXPECT_FALSE(iter.next());
}

// Whatever the threads do, each call gives a batch or says why not, and the iterator stays whole.
TEST(IteratorThreads, ConcurrentCallsNeverTearTheIterator) {
  NDArrayIter iter(zeros({1000, 2}), {.batch_size = 1, .shuffle = true});
  std::atomic<int64_t> batches = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (bool over = false; !over;) try {
          const auto batch = iter.next();
          over = !batch;
          if (batch) ++batches;
        } catch (const Error&) {
          ++refused;
          std::this_thread::yield();
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(batches, 1000);
}

TEST(IteratorThreads, APrefetchingIterGivesEachBatchToOneOfItsCallers) {
  std::vector<float> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  NDArrayIter source(array(numbers, {1000}), {.batch_size = 1});
  PrefetchingIter iter(source);
  for (int epoch = 0; epoch < 2; ++epoch, iter.reset()) {
    std::mutex mutex;
    std::multiset<float> seen;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        while (const auto batch = iter.next()) {
          const auto number = static_cast<float>(batch->data[0].item());
          EXPECT_EQ(iter.provide_data()[0].shape, (Shape{1}));
          const std::lock_guard lock(mutex);
          seen.insert(number);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(seen, std::multiset<float>(numbers.begin(), numbers.end()));
  }
}

TEST(IteratorThreads, APrefetchingIterLeavesABlockedSourceBehind) {
  const auto gate = std::make_shared<Gate>();
  {
    PrefetchingIter iter({gate});
    std::string error;
    std::thread waiting([&] { error = testing::error_of([&] { iter.next(); }); });
    gate->wait_for_caller();
    EXPECT_FALSE(iter.stop(std::chrono::milliseconds(1)));
    waiting.join();
    EXPECT_NE(error.find("stopped"), std::string::npos) << error;
    EXPECT_TRUE(fails_with([&] { iter.next(); }, "stopped"));
  }  // does not wait for the source
  EXPECT_GT(gate.use_count(), 1) << "the thread that was left behind keeps the iterator";
  gate->open();
  while (gate.use_count() > 1) std::this_thread::yield();
}

TEST(IteratorThreads, APrefetchingIterEndsThreadsThatWait) {
  NDArrayIter source(zeros({10, 1}), {.batch_size = 1});
  PrefetchingIter iter(source);
  EXPECT_TRUE(iter.next());
  EXPECT_TRUE(iter.stop(std::chrono::seconds(10)));
  EXPECT_TRUE(fails_with([&] { iter.next(); }, "stopped"));
  EXPECT_TRUE(fails_with([&] { iter.reset(); }, "stopped"));
}

}  // namespace
}  // namespace symbind
