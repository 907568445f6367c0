// Metrics that a GPU counts, against the host's counting of the same arrays.
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/passes/target.h"
#include "symbind/symbind.h"
#include "symbind/train/counting_work.h"

#include "tests/support/arrays.h"
#include "tests/support/gpu_test.h"
#include "tests/support/metric_cases.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

using Work = std::vector<FollowingWorkPtr>;

NamedList named(const char* name, const NDArray& array) { return {{name, array}}; }
NDArray on_gpu(const NDArray& array) { return array.as_copy_in(gpu(0)); }

Work work_for(EvalMetric& metric, const NDArray& label, const NDArray& pred, const Work& last = {}) {
  return counting_work(metric, named("label", label), named("output", pred), last);
}

using CudaMetric = GpuTest;

TEST_F(CudaMetric, CountsAsTheHostDoes) {
  for (const MetricCase& each : metric_cases()) {
    const NDArray label = on_gpu(each.label), pred = on_gpu(each.pred);
    EXPECT_EQ(work_for(*each.make(), label, pred).size(), 1u) << each;
    expect_same_counts(each, [&](EvalMetric& metric, const MetricCase&) {
      metric.update_dict_later(named("label", label), named("output", pred));
    });
  }
}

TEST_F(CudaMetric, CountsWithoutMemoryOfItsOwn) {
  for (const MetricCase& each : metric_cases()) {
    const EvalMetricPtr metric = each.make();
    const Work work = work_for(*metric, on_gpu(each.label), on_gpu(each.pred));
    const Device& device = Device::get(gpu(0));
    const int64_t live = device.memory().live, pooled = device.memory().pooled;
    work[0]->queue();
    EXPECT_EQ(device.memory().live, live) << each;
    EXPECT_EQ(device.memory().pooled, pooled) << each;
  }
}

TEST_F(CudaMetric, SumsAreTheSameBitForBit) {
  const NDArray label = on_gpu(random_array({1120}, 1, 0, 999, DType::int32)),
                pred = on_gpu(random_array({1120, 1000}, 2, 0.015625, 1));
  const auto state = [&](const char* name) {
    const EvalMetricPtr metric = EvalMetric::create(name);
    for (const FollowingWorkPtr& piece : work_for(*metric, label, pred)) piece->queue();
    return metric->state();
  };
  for (const char* name : {"acc", "ce", "loss"}) {
    const std::vector<double> first = state(name);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(state(name), first) << name;
  }
}

TEST_F(CudaMetric, AnErrorIsThrownOnceByTheCallThatFetches) {
  const NDArray halves = full({3000, 2}, 0.5, gpu(0));
  std::vector<double> labels(3000, 1);
  metric::CrossEntropy metric, host;
  const auto count = [&] {
    metric.update_dict_later(named("label", array(labels, {3000}, gpu(0))), named("output", halves));
  };
  count();
  labels[2999] = 9;
  labels[1500] = -7;
  count();
  labels[3] = 5;
  count();
  EXPECT_TRUE(fails_with([&] { metric.get(); }, "a label must be below the 2 classes: -7"));
  EXPECT_EQ(metric.sums().instances, 3000);
  labels[2] = std::numeric_limits<double>::quiet_NaN();
  count();
  const std::string wrong = error_of([&] { host.update({array(labels, {3000})}, {halves}); });
  EXPECT_EQ(error_of([&] { (void)metric.state(); }), wrong);
  count();
  metric.reset();  // nothing is left that could fail
  EXPECT_EQ(metric.sums().instances, 0);
}

TEST_F(CudaMetric, MayBeReadByAnotherThreadMeanwhile) {
  metric::Loss metric;
  const Work work = work_for(metric, NDArray(), ones({4}, gpu(0)));
  ASSERT_EQ(work.size(), 1u);
  constexpr int64_t rounds = 2000;
  std::thread reader([&] {
    while (metric.sums().instances < 4 * rounds) {
    }
  });
  for (int64_t i = 0; i < rounds; ++i) work[0]->queue();
  reader.join();
  EXPECT_EQ(metric.sums().instances, 4 * rounds) << "each is counted once";
}

TEST_F(CudaMetric, IsCountedByEachLaunchOfRecordedWork) {
  const NDArray label = array({0, 1, 1}, gpu(0)), pred = array({{2, 1}, {2, 1}, {2, 1}}, gpu(0));
  metric::Composite both({EvalMetric::create("acc"), EvalMetric::create("ce")});
  const Work work = work_for(both, label, pred);
  ASSERT_EQ(work.size(), 2u);
  for (const FollowingWorkPtr& piece : work) piece->queue();
  std::vector<QueueWork> following;
  for (const FollowingWorkPtr& piece : work) following.emplace_back([&piece] { piece->queue(); });
  const NDArray other = ones({3}, gpu(0));
  const auto captured = Target::get(gpu(0)).capture(
      Device::get(gpu(0)), [&] { other.fill(2); }, following);
  ASSERT_NE(captured, nullptr);
  EXPECT_EQ(both.get_metric(0)->sums().instances, 3) << "recording counts nothing";
  for (int i = 0; i < 3; ++i) {
    captured->launch();
    for (const FollowingWorkPtr& piece : work) piece->mark_written();
    if (i == 1) {
      EXPECT_EQ(both.get_metric(0)->sums().instances, 9);
    }
  }
  EXPECT_EQ(both.get_metric(0)->sums().sum, 4);
  EXPECT_EQ(both.get_metric(1)->sums().instances, 12);
}

// ---- Of a network ---------------------------------------------------------------------------------------------------

// Metrics that the GPU counts, and one that the host counts.
std::shared_ptr<metric::Composite> several() {
  return std::make_shared<metric::Composite>(
      std::vector{EvalMetric::create("acc"), EvalMetric::create("ce"), EvalMetric::create("pcc")});
}

void expect_same_composite(const metric::Composite& actual, const metric::Composite& expected) {
  for (size_t i = 0; i < expected.metrics().size(); ++i)
    EXPECT_TRUE(same_sums(*actual.get_metric(i), *expected.get_metric(i))) << i;
  EXPECT_EQ(actual.get_metric(2)->str(), expected.get_metric(2)->str());  // it may be NaN
}

// After each batch the outputs are counted by the module, and on the host from copies.
TEST_F(CudaMetric, AModuleCountsItsBatches) {
  Module module(small_network(), {.context = {gpu(0)}});
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module.init_params({.arg_params = first_values()});
  const auto counted = several(), expected = several();
  NDArrayIter data = batches(37);  // the last batch is padded
  for (int epoch = 0; epoch < 2; ++epoch, data.reset())
    while (const std::optional<DataBatch> batch = data.next()) {
      module.forward(*batch, false);
      module.update_metric(*counted, batch->label);
      const int64_t samples = 10 - batch->pad;
      expected->update_dict({{"softmax_label", batch->label[0].slice(0, samples)}},
                            {{"softmax_output", module.get_outputs()[0].as_copy_in(cpu()).slice(0, samples)}});
    }
  EXPECT_EQ(counted->get_metric(0)->sums().instances, 74);
  expect_same_composite(*counted, *expected);
}

TEST_F(CudaMetric, LabelsThatAreNotThoseOfTheBatchAreCopied) {
  Module module(small_network(), {.context = {gpu(0)}});
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module.init_params({.arg_params = first_values()});
  const DataBatch batch{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}};
  module.forward(batch, false);
  const NDArray outputs = module.get_outputs()[0].as_copy_in(cpu());
  const auto compare = [&](const NDArray& label) {
    const auto counted = several(), expected = several();
    module.update_metric(*counted, {label});
    expected->update_dict({{"softmax_label", label}}, {{"softmax_output", outputs}});
    expect_same_composite(*counted, *expected);
  };
  compare(batch.label[0]);
  compare(array({2, 2, 2, 2, 2, 1, 1, 1, 0, 0}));
  compare(batch.label[0].astype(DType::int64));
  batch.label[0].fill(1);
  compare(batch.label[0]);
  module.exec_group()->execs()[0]->arg_dict().at("softmax_label").fill(2);
  compare(batch.label[0]);
}

TEST_F(CudaMetric, FitSeesTheSameValuesAsWithAMetricOfTheHost) {
  const Quiet quiet;
  const auto values_of = [](const EvalMetricPtr& metric) {
    Module module(small_network(), {.context = {gpu(0)}});
    NDArrayIter data = batches();
    std::vector<double> values;
    FitArgs args;
    args.eval_metric = metric;
    args.num_epoch = 3;
    args.arg_params = first_values();
    args.batch_end_callback = {[&](const BatchEndParam& param) {
      values.push_back(param.eval_metric->get()[0].second);
      if (param.nbatch == 1) param.eval_metric->reset_local();
    }};
    module.fit(data, args);
    return values;
  };
  class HostEntropy final : public metric::CrossEntropy {};  // a derived class is counted by the host
  const std::vector<double> counted = values_of(EvalMetric::create("ce")),
                            expected = values_of(std::make_shared<HostEntropy>());
  EXPECT_TRUE(all_close(counted, expected, {1e-6, 1e-6}));
}

}  // namespace
}  // namespace symbind::testing
