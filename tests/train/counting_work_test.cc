#include "symbind/train/counting_work.h"

#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/symbind.h"
#include "symbind/train/device_count.h"
#include "symbind/train/later_updates.h"

#include "tests/support/arrays.h"
#include "tests/support/metric_cases.h"
#include "tests/support/waiting_updates.h"

namespace symbind::testing {
namespace {

using Work = std::vector<FollowingWorkPtr>;

NamedList named(const char* name, const NDArray& array) { return {{name, array}}; }

Work work_for(EvalMetric& metric, const NDArray& label, const NDArray& pred, const Work& last = {}) {
  return counting_work_on(cpu(), metric, named("label", label), named("output", pred), last);
}

void queue_all(const Work& work) {
  for (const FollowingWorkPtr& piece : work) piece->queue();
}

const NDArray label = array({0, 1}), pred = array({{0.75, 0.25}, {0.75, 0.25}});

TEST(CountingWork, CountsAsTheMetricsDo) {
  for (const MetricCase& tried : metric_cases())
    expect_same_counts(tried, [](EvalMetric& metric, const MetricCase& batch) {
      const Work work = work_for(metric, batch.label, batch.pred);
      EXPECT_EQ(work.size(), 1u);
      queue_all(work);
    });
}

TEST(CountingWork, IsThereForTheMetricsThatADeviceCounts) {
  const auto pieces = [](const EvalMetricPtr& metric, const NDArray& labels, const NDArray& preds) {
    return work_for(*metric, labels, preds).size();
  };
  EXPECT_EQ(pieces(EvalMetric::create("acc"), label, pred), 1u);
  for (const char* name : {"f1", "mcc", "pcc", "pearsonr"})
    EXPECT_EQ(pieces(EvalMetric::create(name), label, pred), 0u) << name;
  EXPECT_EQ(pieces(metric::np([](const auto&, const auto&) { return 0.0; }), label, pred), 0u);
  struct Own final : metric::CrossEntropy {};
  EXPECT_EQ(pieces(std::make_shared<Own>(), label, pred), 0u) << "a derived class may read its sums anywhere";
  EXPECT_EQ(pieces(EvalMetric::create("mse"), array({0, 1}), pred), 0u) << "the label is repeated";
  EXPECT_EQ(pieces(EvalMetric::create("acc"), array({0, 1, 2}), pred), 0u) << "they do not fit";
  EXPECT_EQ(pieces(EvalMetric::create("acc"), label, pred.astype(DType::int32)), 0u);
  EXPECT_EQ(pieces(EvalMetric::create("acc"), zeros({0}), zeros({0, 3})), 0u);
  EXPECT_EQ(pieces(EvalMetric::create("loss"), NDArray(), pred), 1u) << "no label is read";

  metric::Accuracy accuracy;
  EXPECT_TRUE(counting_work(accuracy, named("label", label), named("output", pred), {}).empty()) << "on a CPU";
  EXPECT_TRUE(counting_work_on(cpu(1), accuracy, named("label", label), named("output", pred), {}).empty());
  EXPECT_TRUE(counting_work_on(cpu(), accuracy, {}, named("output", pred), {}).empty()) << "a label is missing";
  metric::Accuracy of_other(1, {"accuracy", {"other"}});
  EXPECT_TRUE(work_for(of_other, label, pred).empty()) << "the error is that of the update";
}

TEST(CountingWork, ReadsTheArraysThatTheMetricNames) {
  metric::Accuracy metric(1, {"accuracy", {"second"}, {"second_label"}});
  const NamedList labels{{"first_label", array({7, 7})}, {"second_label", label}};
  const NamedList preds{{"first", zeros({9})}, {"second", pred}};
  queue_all(counting_work_on(cpu(), metric, labels, preds, {}));
  EXPECT_EQ(metric.get()[0].second, 0.5);
}

TEST(CountingWork, AddsAllPairs) {
  metric::CrossEntropy counted, expected;
  const NamedList labels{{"a", label}, {"b", array({1, 1, 0})}};
  const NamedList preds{{"x", pred}, {"y", full({3, 2}, 0.5)}};
  const Work work = counting_work_on(cpu(), counted, labels, preds, {});
  ASSERT_EQ(work.size(), 1u);
  queue_all(work);
  expected.update_dict(labels, preds);
  EXPECT_TRUE(same_sums(counted, expected));
}

TEST(CountingWork, EveryReadAndEveryChangeSeesIt) {
  expect_reads_and_changes_see_waiting_updates(
      [](metric::Accuracy& metric) { queue_all(work_for(metric, label, pred)); });
}

TEST(CountingWork, IsAddedToUpdatesWhoseArraysWereCopied) {
  metric::Accuracy metric;
  queue_all(work_for(metric, label, pred));
  LaterUpdates::add(metric, {{ArrivingArray(array({1}))}, {ArrivingArray(array({{0, 1}}))}});
  EXPECT_EQ(metric.sums().sum, 2);
}

TEST(CountingWork, LaunchesOfRecordedWorkAreSeen) {
  metric::Accuracy metric;
  const Work work = work_for(metric, label, pred);
  queue_all(work);
  EXPECT_EQ(metric.sums().instances, 2);
  const DeviceCount& count = *LaterUpdates::count_on(metric, cpu());
  count.totals().copy_from(std::vector<double>{1, 3, 0, 0, 0});  // as a launch would
  EXPECT_EQ(metric.sums().instances, 2) << "nothing tells of it";
  const uint64_t version = count.totals().storage().version();
  work[0]->mark_written();
  EXPECT_GT(count.totals().storage().version(), version);
  EXPECT_EQ(metric.sums().instances, 5);
  work[0]->mark_written();
  EXPECT_EQ(metric.sums().instances, 5);
}

TEST(CountingWork, IsTheSameObjectForTheSameWork) {
  metric::Accuracy metric, other;
  const Work first = work_for(metric, label, pred);
  EXPECT_EQ(work_for(metric, label, pred, first), first);
  EXPECT_EQ(work_for(metric, label.reshape({2}), pred, first), first) << "another handle";
  EXPECT_NE(work_for(metric, label.copy(), pred, first), first);
  EXPECT_NE(work_for(metric, label, pred.copy(), first), first);
  EXPECT_NE(work_for(metric, label.slice(0, 1), pred.slice(0, 1), first), first);
  EXPECT_NE(work_for(other, label, pred, first), first);
  EXPECT_NE(work_for(metric, label, pred), first) << "nothing is said to be there";
  metric = metric::Accuracy(0);
  EXPECT_NE(work_for(metric, label, pred, first), first) << "it has another axis now";
}

TEST(CountingWork, OutlivesItsMetricAndHoldsItsArrays) {
  Work work;
  std::weak_ptr<Storage> held;
  {
    metric::Accuracy metric;
    const NDArray own = pred.copy();
    held = own.storage_ptr();
    work = work_for(metric, label, own);
  }
  EXPECT_FALSE(held.expired());
  queue_all(work);
  work[0]->mark_written();
  work.clear();
  EXPECT_TRUE(held.expired());
}

TEST(CountingWork, OfACompositeIsThatOfItsPartsOrNone) {
  auto accuracy = EvalMetric::create("acc"), entropy = EvalMetric::create("ce"), f1 = EvalMetric::create("f1");
  metric::Composite both({accuracy, std::make_shared<metric::Composite>(std::vector<EvalMetricPtr>{entropy})});
  const Work work = work_for(both, label, pred);
  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(work_for(both, label, pred, work), work);
  queue_all(work);
  EXPECT_EQ(accuracy->sums().instances, 2);
  EXPECT_EQ(entropy->sums().instances, 2);
  metric::Composite with_f1({accuracy, f1});
  EXPECT_TRUE(work_for(with_f1, label, pred).empty());
  EXPECT_TRUE(work_for(*std::make_shared<metric::Composite>(), label, pred).empty());

  metric::Composite of_second({EvalMetric::create("acc")}, {"composite", {"second"}, {"label"}});
  const NamedList preds{{"first", zeros({9})}, {"second", pred}};
  queue_all(counting_work_on(cpu(), of_second, named("label", label), preds, {}));
  EXPECT_EQ(of_second.get()[0].second, 0.5);
}

TEST(CountingWork, AnErrorIsThrownOnceByTheCallThatFetches) {
  metric::CrossEntropy metric;
  const NDArray halves = full({2, 2}, 0.5);
  queue_all(work_for(metric, array({0, 1}), halves));
  queue_all(work_for(metric, array({0, 7}), halves));
  queue_all(work_for(metric, array({-8, 9}), halves));
  queue_all(work_for(metric, array({1, 0}), halves));
  metric::CrossEntropy other;
  EXPECT_EQ(error_of([&] { metric.get(); }), error_of([&] { other.update({array({0, 7})}, {halves}); }));
  EXPECT_EQ(metric.sums().instances, 4) << "the batches before and after it";
  queue_all(work_for(metric, array({0, std::numeric_limits<double>::quiet_NaN()}), halves));
  EXPECT_TRUE(fails_with([&] { metric.state(); }, "a label must be below the 2 classes: NaN"));

  queue_all(work_for(metric, array({0, 7}), halves));
  metric.reset();  // nothing is left that could fail
  EXPECT_EQ(metric.sums().instances, 0);
}

TEST(CountingWork, HostArraysAreCountedByTheMetric) {
  metric::Accuracy metric;
  const NamedList labels = named("label", label), preds = named("output", pred);
  update_on_device(metric, labels, labels, preds);
  EXPECT_EQ(metric.get()[0].second, 0.5);
}

}  // namespace
}  // namespace symbind::testing
