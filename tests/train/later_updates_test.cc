#include "symbind/train/later_updates.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/support/arrays.h"
#include "tests/support/waiting_updates.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::random_array;

// A copy of an array that arrives when the test says so, or when it is waited for.
struct Transfer final : Download {
  explicit Transfer(const NDArray& array) : values(array.bytes()) {
    std::memcpy(values.data(), array.data(), array.bytes());
  }
  bool arrived() override { return done; }
  const void* data() override {
    waits += !done;
    done = true;
    return values.data();
  }

  std::vector<std::byte> values;
  bool done = false;
  int waits = 0;
};

struct Sent {
  std::shared_ptr<Transfer> transfer;
  LaterUpdates::Arrays arrays;
};

Sent send(const NDArray& label, const NDArray& pred) {
  auto transfer = std::make_shared<Transfer>(pred);
  return {transfer, {{ArrivingArray(label)}, {ArrivingArray(pred.shape(), pred.dtype(), transfer)}}};
}

NDArray labels_of_batch(uint64_t batch) { return random_array({6}, 100 + batch, 0, 2, DType::int32); }
NDArray scores_of_batch(uint64_t batch) { return random_array({6, 3}, 200 + batch, 0.125, 1); }

// All values of a metric after `update` was called with each batch. Two of three are read as Speedometer does.
template <class Update>
std::vector<double> values_after(EvalMetric& metric, const std::vector<std::pair<NDArray, NDArray>>& batches,
                                 const Update& update) {
  std::vector<double> numbers;
  for (size_t i = 0; i < batches.size(); ++i) {
    update(batches[i].first, batches[i].second);
    if (i != 1) continue;
    for (const auto& [name, value] : metric.get()) numbers.push_back(value);
    metric.reset_local();
  }
  for (const auto& [name, value] : metric.get()) numbers.push_back(value);
  for (const auto& [name, value] : metric.get_global()) numbers.push_back(value);
  const std::vector<double> state = metric.state();
  numbers.insert(numbers.end(), state.begin(), state.end());
  return numbers;
}

std::vector<double> counted_later(EvalMetric& metric, const std::vector<std::pair<NDArray, NDArray>>& batches) {
  return values_after(metric, batches, [&](const NDArray& label, const NDArray& prediction) {
    LaterUpdates::add(metric, send(label, prediction).arrays);
  });
}

std::vector<double> counted_immediately(EvalMetric& metric, const std::vector<std::pair<NDArray, NDArray>>& batches) {
  return values_after(metric, batches,
                      [&](const NDArray& label, const NDArray& prediction) { metric.update({label}, {prediction}); });
}

bool same_numbers(const std::vector<double>& a, const std::vector<double>& b) {  // NaN equals itself
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

TEST(LaterUpdates, GiveTheSameBitsForEveryBuiltInMetric) {
  std::vector<std::pair<NDArray, NDArray>> classes, two_classes, numbers;
  for (uint64_t i = 0; i < 3; ++i) {
    classes.emplace_back(labels_of_batch(i), scores_of_batch(i));
    two_classes.emplace_back(random_array({6}, 300 + i, 0, 1, DType::int32), random_array({6, 2}, 400 + i));
    numbers.emplace_back(random_array({6, 3}, 500 + i), scores_of_batch(i));
  }
  const auto check = [](const std::string& name, const std::map<std::string, std::string>& arguments,
                        const std::vector<std::pair<NDArray, NDArray>>& batches) {
    const EvalMetricPtr later = EvalMetric::create(name, arguments), immediate = EvalMetric::create(name, arguments);
    EXPECT_TRUE(LaterUpdates::allowed_for(*later)) << name;
    EXPECT_TRUE(same_numbers(counted_later(*later, batches), counted_immediately(*immediate, batches))) << name;
  };
  for (const char* name : {"acc", "ce", "nll_loss", "pcc"}) check(name, {}, classes);
  check("top_k_accuracy", {{"top_k", "2"}}, classes);
  check("perplexity", {{"ignore_label", "1"}}, classes);
  for (const char* average : {"macro", "micro"})
    for (const char* name : {"f1", "mcc"}) check(name, {{"average", average}}, two_classes);
  for (const char* name : {"mae", "mse", "rmse", "loss", "torch", "caffe"}) check(name, {}, numbers);
  for (const char* average : {"macro", "micro"}) check("pearsonr", {{"average", average}}, numbers);
}

TEST(LaterUpdates, AreCountedWhenTheyHaveArrived) {
  metric::Accuracy metric;
  const Sent first = send(labels_of_batch(0), scores_of_batch(0)),
             second = send(labels_of_batch(1), scores_of_batch(1)),
             third = send(labels_of_batch(2), scores_of_batch(2));
  LaterUpdates::add(metric, first.arrays);
  EXPECT_EQ(first.transfer->waits, 0);
  first.transfer->done = true;
  LaterUpdates::add(metric, second.arrays);
  EXPECT_EQ(second.transfer->waits, 0);
  LaterUpdates::add(metric, third.arrays);
  EXPECT_EQ(third.transfer->waits, 0);
  EXPECT_EQ(metric.sums().instances, 18) << "reading the metric waits for the rest";
  EXPECT_EQ(first.transfer->waits, 0);
  EXPECT_EQ(second.transfer->waits + third.transfer->waits, 2);
}

TEST(LaterUpdates, AFewAreInFlight) {
  metric::Accuracy metric;
  std::vector<Sent> sent;
  for (uint64_t i = 0; i < 10; ++i) {
    sent.push_back(send(labels_of_batch(i), scores_of_batch(i)));
    LaterUpdates::add(metric, sent.back().arrays);
    EXPECT_EQ(sent.back().transfer->waits, 0) << i;
  }
  int waits = 0;
  for (const Sent& each : sent) waits += each.transfer->waits;
  EXPECT_EQ(waits, 7) << "the oldest were waited for";
}

TEST(LaterUpdates, EveryReadAndEveryChangeSeesThem) {
  testing::expect_reads_and_changes_see_waiting_updates([](metric::Accuracy& metric) {
    LaterUpdates::add(metric, send(array({0, 1}), array({{1, 0}, {1, 0}})).arrays);
  });
}

TEST(LaterUpdates, LabelsMayBeOverwrittenMeanwhile) {
  metric::Accuracy metric;
  const NDArray label = array({0, 0});
  LaterUpdates::add(metric, send(label, array({{1, 0}, {1, 0}})).arrays);
  label.fill(1);
  EXPECT_EQ(metric.get()[0].second, 1);
}

TEST(LaterUpdates, AnErrorIsThrownOnceByTheCallThatCounts) {
  metric::CrossEntropy metric;
  LaterUpdates::add(metric, send(array({0, 1}), array({{0.5, 0.5}, {0.5, 0.5}})).arrays);
  LaterUpdates::add(metric, send(array({0, 7}), array({{0.5, 0.5}, {0.5, 0.5}})).arrays);
  LaterUpdates::add(metric, send(array({1, 0}), array({{0.5, 0.5}, {0.5, 0.5}})).arrays);
  EXPECT_TRUE(fails_with([&] { metric.get(); }, "a label must be below the 2 classes: 7"));
  EXPECT_EQ(metric.sums().instances, 4) << "the batches before and after it";

  LaterUpdates::add(metric, send(array({0, 7}), array({{0.5, 0.5}, {0.5, 0.5}})).arrays);
  metric.reset();  // nothing is left that could fail
  EXPECT_EQ(metric.sums().instances, 0);
}

// Calls a function in the middle of each update.
class Interrupted final : public metric::CrossEntropy {
 public:
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override {
    if (const auto call = std::exchange(during_update, nullptr)) call();
    CrossEntropy::update(labels, preds);
  }
  std::function<void()> during_update;
};

TEST(LaterUpdates, AreNotLostWhenTheMetricIsReadDuringAnUpdateOfAnotherThread) {
  Interrupted metric;
  bool failed = false;
  metric.during_update = [&] {
    LaterUpdates::add(metric, send(labels_of_batch(0), scores_of_batch(0)).arrays);
    std::thread([&] { failed = static_cast<bool>(fails_with([&] { metric.get(); }, "is in use")); }).join();
  };
  metric.update_dict({{"label", labels_of_batch(1)}}, {{"output", scores_of_batch(1)}});
  EXPECT_TRUE(failed);
  EXPECT_EQ(metric.sums().instances, 12);
}

TEST(LaterUpdates, TrainingWaitsForAThreadThatReadsTheMetric) {
  Interrupted metric;
  const auto while_another_thread_reads = [&](const std::function<void()>& train) {
    LaterUpdates::add(metric, send(labels_of_batch(0), scores_of_batch(0)).arrays);
    std::promise<void> reading;
    metric.during_update = [&] {
      reading.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    const std::jthread reader([&] { metric.get(); });
    reading.get_future().wait();
    train();
  };
  while_another_thread_reads([&] { LaterUpdates::add(metric, send(labels_of_batch(1), scores_of_batch(1)).arrays); });
  EXPECT_EQ(metric.sums().instances, 12);
  while_another_thread_reads([&] { metric.reset(); });
  EXPECT_EQ(metric.sums().instances, 0);
}

class OwnEntropy final : public metric::CrossEntropy {
 public:
  NameValues get() const override { return {{"own", sum_metric_}}; }  // does not know of updates that come later
};

TEST(LaterUpdates, OtherClassesAreUpdatedImmediately) {
  EXPECT_FALSE(LaterUpdates::allowed_for(OwnEntropy()));
  EXPECT_FALSE(LaterUpdates::allowed_for(*metric::np([](const auto&, const auto&) { return 0.0; })));
  int calls = 0;
  const EvalMetricPtr custom = metric::np([&](const auto&, const auto&) { return static_cast<double>(++calls); });
  custom->update_dict_later({{"label", array({0})}}, {{"output", array({1})}});
  EXPECT_EQ(calls, 1);
}

TEST(LaterUpdates, HostArraysAreCountedImmediately) {
  EvalMetricPtr several = EvalMetric::create(std::vector<std::string>{"acc", "ce"});
  const NDArray label = array({0, 1}), pred = array({{0.75, 0.25}, {0.75, 0.25}});
  several->update_dict_later({{"softmax_label", label}}, {{"softmax_output", pred}});
  label.fill(0);
  EXPECT_EQ(several->get()[0].second, 0.5);
  EXPECT_TRUE(fails_with(
      [&] {
        metric::Accuracy(1, {"accuracy", {"other"}}).update_dict_later({{"l", label}}, {{"softmax_output", pred}});
      },
      "unknown output 'other'"));
}

}  // namespace
}  // namespace symbind
